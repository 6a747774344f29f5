// For screen readers: the field for a file has a name and says that it is nothing; the column of a
// table in which rows are picked has no heading.
export default function () {
  if (window.lamaNames) return
  const name = () => {
    for (const field of document.querySelectorAll("[data-testid=stFileUploaderDropzone][role]"))
      field.removeAttribute("role")
    for (const heading of document.querySelectorAll("th[role=columnheader]:empty"))
      heading.textContent = "pick"
  }
  window.lamaNames = new MutationObserver(name)
  window.lamaNames.observe(document.body, { childList: true, subtree: true })
  name()
}
