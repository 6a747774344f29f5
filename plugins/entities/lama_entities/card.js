// Draws one model's card: a row for each relation, whose answers are links to further cards.
export default function ({ data, parentElement, setTriggerValue }) {
  const mark = JSON.stringify(data)
  if (parentElement.lamaCard === mark) return // keeps the focus
  parentElement.lamaCard = mark
  const make = (tag, className, text, parent) => {
    const made = document.createElement(tag)
    if (className) made.className = className
    made.textContent = text
    parent.append(made)
    return made
  }
  const makeLink = (text, { params, address }, title, parent) => {
    const link = make("a", "", text, parent)
    link.href = address
    link.title = title
    link.onclick = (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return // a new tab of the browser
      event.preventDefault()
      setTriggerValue("opened", params)
    }
  }
  const list = document.createElement("ul")
  list.className = "lx-card-rows"
  list.style.setProperty("--model", data.colour)
  for (const { heading, label, sentence, alone, right, likelier, note, words } of data.rows) {
    const item = make("li", heading ? "heading" : "", "", list)
    if (heading) {
      item.textContent = heading
      continue
    }
    const top = make("div", "top", "", item)
    const named = make("span", "label", sentence ? "" : label, top)
    if (sentence) makeLink(label, alone, sentence, named)
    if (likelier) make("span", "likelier", likelier, top).title = note
    if (right) make("span", "right", right, top).title = right
    const line = make("div", "line", "", item)
    words.forEach(({ text, longer, value, verdict, name, opens }, at) => {
      const part = make("span", at ? "other" : "first", "", line)
      makeLink(text, opens, `Open the card of ${name}`, part)
      if (longer) make("span", "value", ` → ${longer}`, part)
      if (verdict) make("span", verdict === "✓" ? "yes" : "no", `\u00a0${verdict}`, part)
      if (at) make("span", "value", `\u00a0${value}`, part)
    })
    make("span", "prob", words[0].value, line)
    const bar = make("div", "bar", "", item)
    make("div", "", "", bar).style.width = words[0].width
  }
  parentElement.querySelector(".lx-card-rows")?.remove() // its style stays
  parentElement.append(list)
}
