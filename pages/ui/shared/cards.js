// Draws a table's rows as cards. The user can pick cards, or values if `picks` is single-cell.
const STEP = 30
const unbroken = (text) => text.replaceAll("–", "\u2060–\u2060") // keeps ranges on one line
const details = (text) => // a line breaks between details, not in them
  unbroken(text).split(", ").map((one) => one.replaceAll(" ", "\u00a0")).join(", ")

export default function ({ data, parentElement, setStateValue }) {
  const { cards, n, nShown, picks } = data
  const state = (parentElement.lamaCards ??= { shown: nShown, picked: [], clicks: 0, marks: [] })
  if (state.drawn === JSON.stringify(data)) return // keeps the focus
  state.drawn = JSON.stringify(data)
  const make = (tag, className, text, parent) => {
    const made = document.createElement(tag)
    if (className) made.className = className
    made.textContent = text
    parent.append(made)
    if (tag === "button") made.type = "button"
    return made
  }
  const isPicked = (row, column) => state.picked.some(([r, c]) => r === row && c === column)
  const pickable = (element, row, column) => {
    state.marks.push(() => element.setAttribute("aria-pressed", isPicked(row, column)))
    element.onclick = () => {
      const others = picks === "multi-row" ? state.picked.filter(([r]) => r !== row) : []
      const unpicks = picks === "multi-row" && isPicked(row, column)
      state.picked = unpicks ? others : [...others, [row, column, ++state.clicks]]
      state.marks.forEach((mark) => mark())
      setStateValue("picked", state.picked)
    }
  }
  const draw = () => {
    const list = document.createElement("ul")
    list.className = "lx-cards"
    state.marks = []
    cards.slice(0, state.shown).forEach(({ title, lines }, row) => {
      const item = make("li", "", "", list)
      const card = make(picks?.endsWith("row") ? "button" : "div", "lx-card", "", item)
      if (picks?.endsWith("row")) pickable(card, row, "")
      make("b", "", title, card)
      let isSecond = false // of two short lines side by side
      lines.forEach(({ label, value, column, more, wide }, at) => {
        const isFirst = !isSecond && !wide && lines[at + 1]?.wide === false
        const className = isFirst || isSecond ? "lx-line" : "lx-line wide"
        const line = make(picks === "single-cell" ? "button" : "span", className, "", card)
        isSecond = isFirst
        if (picks === "single-cell") pickable(line, row, column)
        make("span", "lx-muted", label, line)
        const values = make("span", "", unbroken(value), line)
        if (more) make("span", "lx-muted", details(more), values)
      })
    })
    if (state.shown < cards.length) {
      const rest = (n - state.shown).toLocaleString("en")
      const button = make("button", "lx-more", `Show more (${rest})`, make("li", "", "", list))
      button.onclick = () => { state.shown += STEP; draw() }
    } else if (n > cards.length)
      make("li", "lx-muted", `The first ${cards.length} of ${n.toLocaleString("en")} rows.`, list)
    state.marks.forEach((mark) => mark())
    parentElement.replaceChildren(list)
  }
  draw()
}
