// Each order has another `run`, so an order that is drawn again is ignored. A browser reports a new
// URL by a popstate event, which Streamlit handles.
//
// Streamlit makes an entry in the browser's history for each changed parameter, or none. Here a click
// that changes the URL makes one entry, and typing replaces the current one. After a step in the
// history, `entry` is the query where it led, until a run for it is over: what is written by runs
// from before, which the step interrupts, would replace the entry. What Streamlit writes after the
// order that ends a run, without an act of the user, lacks parameters without a widget: `settled`.
function keepOneEntry() {
  const push = window.history.pushState.bind(window.history)
  const replace = window.history.replaceState.bind(window.history)
  const now = { isActing: false, isTyping: false, entry: null, settled: false }
  const write = (address) => {
    if (now.settled || now.entry !== null || new URL(address, window.location.href).href === window.location.href) return
    if (now.isActing && !now.isTyping) push({}, "", address)
    else replace({}, "", address)
    now.isActing = now.isTyping = false
  }
  window.history.pushState = window.history.replaceState = (state, title, address) => write(address)
  const order = (address) => {
    now.settled = false
    write(address)
    now.settled = true
  }
  const act = () => { now.isActing = true; now.settled = false }
  document.addEventListener("pointerdown", act, true)
  document.addEventListener("keydown", (event) => {
    if (/^(Enter| |Arrow.*)$/.test(event.key)) act()
  }, true)
  const typed = "textarea, input[type=text]:not([role=combobox])"
  document.addEventListener("input", (event) => {
    now.settled = false
    if (event.target.matches(typed)) now.isTyping = true
  }, true)
  window.addEventListener("popstate", () => {
    now.isActing = now.isTyping = now.settled = false
    now.entry = sorted(window.location.search)
  }, true)
  const arrive = (asked) => {
    if (asked.some((query) => sorted(query) === now.entry)) now.entry = null
  }
  return { push, replace, order, arrive }
}

function sorted(query) {
  const params = new URLSearchParams(query)
  params.sort()
  return params.toString()
}

export default function ({ data }) {
  const { path, query, asked, act, run } = data
  window.lamaEntries ??= keepOneEntry()
  if (window.lamaAddress === run) return
  window.lamaAddress = run
  window.lamaEntries.arrive(asked)
  const address = path + (query ? "?" + query : "")
  const withoutSlash = (path) => path.replace(/\/$/, "")
  if (act !== "write") {
    if (act === "go") window.lamaEntries.push({}, "", address)
    else window.lamaEntries.replace({}, "", address)
    window.dispatchEvent(new PopStateEvent("popstate"))
  } else if (withoutSlash(window.location.pathname) === withoutSlash(path)) {
    window.lamaEntries.order(address)
  }
}
