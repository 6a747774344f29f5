// Each order has another `run`, so an order that is drawn again is ignored. A browser reports a new
// URL by a popstate event, which Streamlit handles.
//
// Streamlit makes an entry in the browser's history for each changed parameter, or none. Here a click
// that changes the URL makes one entry, and typing replaces the current one.
function keepOneEntry() {
  const push = window.history.pushState.bind(window.history)
  const replace = window.history.replaceState.bind(window.history)
  const now = { isActing: false, isTyping: false }
  const write = (address) => {
    if (new URL(address, window.location.href).href === window.location.href) return
    if (now.isActing && !now.isTyping) push({}, "", address)
    else replace({}, "", address)
    now.isActing = now.isTyping = false
  }
  window.history.pushState = window.history.replaceState = (state, title, address) => write(address)
  const act = () => { now.isActing = true }
  document.addEventListener("pointerdown", act, true)
  document.addEventListener("keydown", (event) => {
    if (/^(Enter| |Arrow.*)$/.test(event.key)) act()
  }, true)
  const typed = "textarea, input[type=text]:not([role=combobox])"
  document.addEventListener("input", (event) => {
    if (event.target.matches(typed)) now.isTyping = true
  }, true)
  window.addEventListener("popstate", () => { now.isActing = now.isTyping = false }, true)
  return { push, replace, write }
}

export default function ({ data }) {
  const { path, query, act, run } = data
  window.lamaEntries ??= keepOneEntry()
  if (window.lamaAddress === run) return
  window.lamaAddress = run
  const address = path + (query ? "?" + query : "")
  const withoutSlash = (path) => path.replace(/\/$/, "")
  if (act !== "write") {
    if (act === "go") window.lamaEntries.push({}, "", address)
    else window.lamaEntries.replace({}, "", address)
    window.dispatchEvent(new PopStateEvent("popstate"))
  } else if (withoutSlash(window.location.pathname) === withoutSlash(path)) {
    window.lamaEntries.write(address)
  }
}
