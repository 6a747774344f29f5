// For screen readers: file fields have a name, but a role that hides it; the column of checkboxes in
// a table has no heading. For papers: charts can be saved as SVG, too, not only as PNG.
const PNG = "Download as PNG"

const saveAsSvg = (button, name) => {
  const svg = button.closest("[data-testid=stFullScreenFrame]").querySelector("svg.marks")
  const picture = new XMLSerializer().serializeToString(svg)
  const link = document.createElement("a")
  link.href = URL.createObjectURL(new Blob([picture], { type: "image/svg+xml" }))
  link.download = `${name.replace(/[^\p{L}\p{N}@]+/gu, "-").toLowerCase()}.svg`
  link.click()
  URL.revokeObjectURL(link.href)
}

const addSvgTo = (png) => {
  const place = png.closest("[data-testid=stElementToolbarButton]")
  const frame = png.closest("[data-testid=stFullScreenFrame]")
  if (!frame?.querySelector("svg.marks") || place.nextSibling?.dataset.svg) return
  const copy = place.cloneNode(true)
  const button = copy.querySelector("button")
  copy.dataset.svg = "true"
  button.setAttribute("aria-label", png.ariaLabel.replace("PNG", "SVG"))
  button.title = "Download as SVG"
  button.onclick = () => saveAsSvg(button, png.ariaLabel.slice(PNG.length + 2) || "chart")
  place.after(copy)
}

export default function () {
  if (window.lamaNames) return
  const name = () => {
    for (const field of document.querySelectorAll("[data-testid=stFileUploaderDropzone][role]"))
      field.removeAttribute("role")
    for (const heading of document.querySelectorAll("th[role=columnheader]:empty"))
      heading.textContent = "pick"
    document.querySelectorAll(`button[aria-label^="${PNG}"]`).forEach(addSvgTo)
  }
  window.lamaNames = new MutationObserver(name)
  window.lamaNames.observe(document.body, { childList: true, subtree: true })
  name()
}
