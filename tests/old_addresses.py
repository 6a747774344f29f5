"""The addresses of the pages of 0.1 and /ask, and the screens that replaced them."""

from pages.ui.shared.screens import ASK, DATA, HELP, RESULTS

Params = dict[str, str]
FACTS = {"tab": "Wrong answers", "facts": "all"}
PROMPTS = {"tab": "Prompts"}
# Path and parameters of the old address, then page and parameters of the new one.
MOVED: tuple[tuple[str, Params, str, Params], ...] = (
    ("", {}, ASK, {}),
    ("ask", {"tab": "Several"}, ASK, {"tab": "Several"}),
    ("cloze", {"text": "Rome is ___."}, ASK, {"text": "Rome is ___."}),
    ("analogy", {}, ASK, {"tab": "Analogy"}),
    ("analogy", {"a": "walk", "b": "walked", "c": "play", "d": "played"}, ASK,
     {"tab": "Analogy", "solve": "walk : walked :: play : ?", "solution": "played"}),
    ("", {"tab": "Analogy", "a": "walk", "b": "walked", "c": "play", "blank": "B"}, ASK,
     {"tab": "Analogy", "solve": "walk : ? :: play : ", "solution": "walked"}),
    ("results", {"tab": "Compare"}, RESULTS, {"tab": "Compare"}),
    ("facts", {}, RESULTS, FACTS),
    ("prompts", {}, RESULTS, PROMPTS),
    ("method", {}, HELP, {"paper": "All"}),
    ("data", {"tab": "Runs"}, DATA, {"tab": "Runs"}),
)  # fmt: skip
