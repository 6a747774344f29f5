// `run` tells a new order from the same order drawn again. A browser reports a new URL by a popstate
// event, which Streamlit handles.
export default function ({ data }) {
  const { path, query, act, run } = data
  if (window.lamaAddress === run) return
  window.lamaAddress = run
  const address = path + (query ? "?" + query : "")
  if (act !== "write") {
    if (act === "go") window.history.pushState({}, "", address)
    else window.history.replaceState({}, "", address)
    window.dispatchEvent(new PopStateEvent("popstate"))
  } else if (window.location.pathname === path) {
    window.history.replaceState({}, "", address)
  }
}
