// The arrow keys press a lesson's Back and Next buttons, except while the user types or chooses.
const BUTTONS = { ArrowLeft: "lesson-back", ArrowRight: "lesson-next", PageUp: "lesson-back", PageDown: "lesson-next" }
const BUSY = "input:not([type=radio]), textarea, select, [contenteditable], [role=listbox], [role=tab]"

export default function () {
  const press = (event) => {
    const name = BUTTONS[event.key]
    if (!name || event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey) return
    if (event.target.closest && event.target.closest(BUSY)) return
    if (event.key.startsWith("Arrow") && event.target.type === "radio") return
    const button = document.querySelector(`.st-key-${name} button`)
    if (button) button.click()
  }
  window.addEventListener("keydown", press)
  return () => window.removeEventListener("keydown", press)
}
