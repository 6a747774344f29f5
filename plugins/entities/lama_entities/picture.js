// Draws the picture that fits the width, and another one when the width changes.
export default function ({ data, parentElement }) {
  const state = (parentElement.lamaPicture ??= {})
  if (!state.place) {
    state.place = document.createElement("div")
    parentElement.append(state.place)
    state.watch = new ResizeObserver(() => state.draw())
    state.watch.observe(state.place)
  }
  state.draw = () => {
    const { pictures } = data
    const fits = ([width]) => width <= state.place.clientWidth + 2
    const [, text] = pictures.find(fits) ?? pictures.at(-1)
    if (state.drawn === text) return // keeps the focus
    state.drawn = text
    const picture = new DOMParser().parseFromString(text, "image/svg+xml").documentElement
    state.place.replaceChildren(document.adoptNode(picture))
  }
  state.draw()
  return () => state.watch.disconnect()
}
