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
      link.closest("[data-testid=stMain]")?.scrollTo(0, 0) // the new screen from its beginning
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
    item.dataset.row = label
    const top = make("div", "top", "", item)
    const named = make("span", "label", sentence ? "" : label, top)
    if (sentence) makeLink(label, alone, sentence, named)
    if (likelier) make("span", "likelier", likelier, top).title = note
    if (right) make("span", "right", right, top).title = right
    if (!words.length) continue // not listed
    const line = make("div", "line", "", item)
    const others = make("span", "others", "", line)
    words.forEach(({ text, longer, value, verdict, name, opens }, at) => {
      const part = make("span", at ? "other" : "first", "", at ? others : line)
      makeLink(text, opens, `Open the card of ${name}`, part)
      if (longer) make("span", "value", ` → ${longer}`, part)
      if (verdict) make("span", verdict === "✓" ? "yes" : "no", `\u00a0${verdict}`, part)
      if (at) make("span", "value", `\u00a0${value}`, part)
    })
    line.append(others) // after the first
    make("span", "prob", words[0].value, line)
    const bar = make("div", "bar", "", item)
    make("div", "", "", bar).style.width = words[0].width
  }
  parentElement.querySelector(".lx-card-rows")?.remove() // its style stays
  parentElement.append(list)
  window.lamaCards ??= new ResizeObserver(align)
  window.lamaCards.observe(list)
}

// Makes the rows of cards side by side equally high, if they have the same ones.
function align() {
  const lists = [...document.querySelectorAll(".lx-card-rows")]
  const rowsOf = (list) => [...list.children]
  const namesOf = (list) => rowsOf(list).map((row) => row.dataset.row).join("|")
  for (const row of lists.flatMap(rowsOf)) row.style.minHeight = ""
  const groups = Map.groupBy(lists, (list) => `${list.getBoundingClientRect().top.toFixed()} ${namesOf(list)}`)
  for (const group of groups.values()) {
    if (group.length < 2) continue
    rowsOf(group[0]).forEach((_, at) => {
      const heights = group.map((list) => list.children[at].getBoundingClientRect().height)
      for (const list of group) list.children[at].style.minHeight = `${Math.max(...heights)}px`
    })
  }
}
