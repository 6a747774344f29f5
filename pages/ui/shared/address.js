// Each order has another `run`, so an order that is drawn again is ignored. A browser reports a new
// URL by a popstate event, which Streamlit handles.
export default function ({ data }) {
  const { path, query, act, run } = data
  if (window.lamaAddress === run) return
  window.lamaAddress = run
  const address = path + (query ? "?" + query : "")
  const withoutSlash = (path) => path.replace(/\/$/, "")
  if (act !== "write") {
    if (act === "go") window.history.pushState({}, "", address)
    else window.history.replaceState({}, "", address)
    window.dispatchEvent(new PopStateEvent("popstate"))
  } else if (withoutSlash(window.location.pathname) === withoutSlash(path)) {
    window.history.replaceState({}, "", address)
  }
}
