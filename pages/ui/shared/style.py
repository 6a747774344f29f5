"""The look that Streamlit's theme can't set: tables of predictions, chips, spacing; and names for
what Streamlit leaves without one.

Colours follow the theme (currentColor, --st-*), so light and dark need no second set.
"""

import streamlit as st

CSS = """
.stMainBlockContainer { padding-top: 3.6rem; max-width: 90rem; }
.lx { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums; }
.lx td, .lx th { border: 0; padding: .28rem .4rem; text-align: left; vertical-align: middle; }
.lx th { font-size: .78rem; font-weight: 400; opacity: .7; padding-top: 0; }
.lx .rank { width: 1.6em; opacity: .6; text-align: right; }
.lx .word { min-width: 8.4em; max-width: 13em; overflow-wrap: anywhere; font-size: 1.05rem; }
.lx .bar { width: 45%; }
.lx .bar > div { height: .85rem; border-radius: 2px; min-width: 1px; }
.lx .bar { background: linear-gradient(color-mix(in srgb, currentColor 8%, transparent) 0 0)
           center / calc(100% - .8rem) .85rem no-repeat; }
.lx .num { text-align: right; width: 4em; white-space: nowrap; }
.lx .num + .word, .lx th.num + th:not(.num) { padding-left: 1.4rem; }
.lx .muted, .lx-muted { opacity: .68; font-size: .86rem; }
.lx-gold { margin-top: .35rem; }
.lx tr.gold .word { font-weight: 700; }
.lx tr.gold .word::after { content: " ✓"; }
.lx .shared { font-size: .74rem; border: 1px solid currentColor; border-radius: 1em; opacity: .75;
              padding: 0 .45em; margin-left: .45em; white-space: nowrap; }
.lx-head { display: flex; gap: .5rem; align-items: baseline; flex-wrap: wrap; }
.lx-dot { width: .75rem; height: .75rem; border-radius: 50%; display: inline-block; }
.lx-name { font-weight: 650; font-size: 1.12rem; overflow-wrap: anywhere; }
.lx-chip { display: inline-block; border-radius: 1em; padding: .1em .7em; margin: .1em .25em .1em 0;
           background: color-mix(in srgb, currentColor 9%, transparent); overflow-wrap: anywhere; }
.lx-sentence { font-size: 1.35rem; line-height: 1.5; overflow-wrap: anywhere; }
.lx-sentence b { border-bottom: 2px solid currentColor; padding: 0 .15em; }
.lx-examples { display: grid; gap: 1rem;
               grid-template-columns: repeat(auto-fit, minmax(min(100%, 34rem), 1fr)); }
.lx-example { border: 1px solid color-mix(in srgb, currentColor 18%, transparent);
              border-radius: .5rem; padding: .7rem .9rem; overflow-wrap: anywhere; }
.lx-example a { font-weight: 650; color: inherit; }
.lx-lists { display: grid; gap: .2rem 1.4rem; margin-top: .5rem;
            grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); }
.lx-who { white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
.lx-lists > div { min-width: 0; }
.lx-lists .lx { margin: .2rem 0; }
.lx-lists .lx td { padding: .08rem .2rem; }
.lx-lists .lx .word { min-width: 0; font-size: 1rem; }
[data-testid="stCaptionContainer"] { color: inherit !important; opacity: .78; }
.st-key-share { align-items: flex-end; position: relative; top: 1.6rem; margin-bottom: -3.4rem;
                z-index: 1; pointer-events: none; }
.st-key-share button { pointer-events: auto; }
[data-testid="stWidgetLabelRequired"] { display: none; }
.st-key-history button { justify-content: flex-start; text-align: left; }
.st-key-address, .st-key-names { position: absolute; height: 0; overflow: hidden; }
@media (max-width: 640px) {
  .st-key-share button p { position: absolute; width: 1px; height: 1px; overflow: hidden;
                           clip-path: inset(50%); }
  .lx td, .lx th { padding: .28rem .2rem; }
  .lx .bar { width: 30%; background-size: calc(100% - .4rem) .85rem; }
  .lx .word { min-width: 7em; }
  .lx .num { width: 3em; }
  .stMainBlockContainer { padding: 3.6rem 1rem; }
  .st-key-confusion-chart { overflow-x: auto; }
  .st-key-confusion-chart > div { min-width: 38rem; }
}
"""
# Streamlit writes white on the primary colour, which in the dark is a light one (2.5 to 1).
DARK = """
[data-testid^="stBaseButton-primary"]:enabled, [data-testid^="stBaseButton-primary"]:enabled *,
[data-tag], [data-tag] * { color: %s !important; }
"""


# For screen readers: the field for a file has a name and says that it is nothing; the column of a
# table in which rows are picked has no heading.
NAMES_JS = """
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
"""


def draw_style() -> None:
    """Put the style sheet on the page; call once a run, in the router."""
    with st.container(key="names"):
        st.components.v2.component("lama_names", js=NAMES_JS)(key="names of parts")
    dark = st.context.theme.type == "dark"
    more = DARK % st.get_option("theme.dark.backgroundColor") if dark else ""
    st.html(f"<style>{CSS}{more}</style>")
