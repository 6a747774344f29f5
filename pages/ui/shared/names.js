// For screen readers: file fields have a name, but a role that hides it; the column of checkboxes in
// a table has no heading.
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
