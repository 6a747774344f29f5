"""The addresses of the pages of 0.1 and /ask, and the screens that replaced them."""

from pages.ui.shared.screens import ASK, DATA, HELP, LESSONS, MODELS, RESULTS

Params = dict[str, str]
FACTS = {"tab": "Wrong answers", "facts": "all"}
# Path and parameters of the old address, then page and parameters of the new one.
MOVED: tuple[tuple[str, Params, str, Params], ...] = (
    ("", {}, ASK, {}),
    ("ask", {"tab": "Batch"}, ASK, {"tab": "Batch"}),
    ("cloze", {"text": "Rome is ___."}, ASK, {"text": "Rome is ___."}),
    ("analogy", {}, ASK, {"tab": "Analogy"}),
    (
        "analogy",
        {"a": "walk", "b": "walked", "c": "play", "d": "played"},
        ASK,
        {"tab": "Analogy", "solve": "walk : walked :: play : ?", "solution": "played"},
    ),
    ("results", {}, RESULTS, {}),
    ("results", {"tab": "Compare"}, RESULTS, {"tab": "Compare"}),
    ("facts", {}, RESULTS, FACTS),
    ("prompts", {}, RESULTS, {"tab": "Prompts", "prompts_view": "Prompts"}),
    ("method", {}, HELP, {"paper": "All"}),
    ("data", {}, DATA, {}),
    ("data", {"tab": "Runs"}, DATA, {"tab": "Runs"}),
    ("models", {}, MODELS, {}),
    ("lessons", {}, LESSONS, {}),
)
