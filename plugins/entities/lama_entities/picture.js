// Draws the widest picture that fits, enlarged to the width, and another one when the width changes.
// Pointing at a name leaves its lines. A click on a link opens it in the app, as one entry of the browser's history.
export default function ({ data, parentElement, setTriggerValue }) {
  const state = (parentElement.lamaPicture ??= {})
  if (!state.place) {
    state.place = document.createElement("div")
    parentElement.append(state.place)
    state.watch = new ResizeObserver(() => state.draw())
    state.watch.observe(state.place)
    // Only the lines of the name that is pointed at, or that has the focus.
    const point = (event) => {
      const there = event.type === "focusout" ? event.relatedTarget : event.target
      const name = there?.closest("a")?.dataset.node
      for (const line of state.place.querySelectorAll("g[data-ends]")) {
        const ends = line.dataset.ends.split(" ")
        line.style.opacity = name === undefined ? "" : ends.includes(name) ? 1 : 0.05
      }
    }
    for (const kind of ["pointerover", "pointerleave", "focusin", "focusout"]) state.place.addEventListener(kind, point)
    state.place.onclick = (event) => {
      const link = event.target.closest("a")
      if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return // a new tab of the browser
      event.preventDefault()
      state.open(new URL(link.getAttribute("href"), location.href).search.slice(1))
    }
  }
  state.open = (query) => setTriggerValue("opened", query)
  state.draw = () => {
    const { pictures } = data
    const fits = ([width]) => width <= state.place.clientWidth + 2
    const [width, text] = pictures.find(fits) ?? pictures.at(-1)
    if (state.drawn === text) return // keeps the focus
    state.drawn = text
    const picture = new DOMParser().parseFromString(text, "image/svg+xml").documentElement
    picture.setAttribute("style", `width: 100%; height: auto; max-width: ${1.25 * width}px`)
    state.place.replaceChildren(document.adoptNode(picture))
  }
  state.draw()
  return () => state.watch.disconnect()
}
