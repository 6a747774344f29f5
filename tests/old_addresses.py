"""The addresses of the pages of 0.1 and /ask, and the screens that replaced them."""

from pages.ui.shared.screens import ASK, DATA, HELP, RESULTS

Params = dict[str, str]
FACTS = {"tab": "Wrong answers", "facts": "all"}
PROMPTS = {"tab": "Prompts"}
ALL, ONE = {"prompts_view": "All relations"}, {"prompts_view": "One relation"}
ENSEMBLES = ONE | {"relation_part": "Ensembles"}
SEVERAL = {"tab": "Several"}
RANKED = {"score": "Only these answers", "text": "The capital of Brazil is ___.",
          "answers": "Brasília\nRio de Janeiro\nSão Paulo\nBuenos Aires",
          "right_answer": "Brasília"}  # fmt: skip
# Path and parameters of the old address, then page and parameters of the new one.
MOVED: tuple[tuple[str, Params, str, Params], ...] = (
    ("", {}, ASK, {}),
    ("ask", {"tab": "Batch"}, ASK, SEVERAL),
    ("", {"tab": "Batch", "sentences_many": "A ___."}, ASK, SEVERAL | {"sentences_many": "A ___."}),
    ("", {"tab": "Grid", "grid": "{a|b} ___."}, ASK,
     SEVERAL | {"what": "Alternatives", "grid": "{a|b} ___."}),
    ("cloze", {"tab": "Wordings", "subject": "Peru"}, ASK,
     SEVERAL | {"what": "Wordings", "subject": "Peru"}),
    ("", {"tab": "Answers"}, ASK, RANKED),
    ("", {"tab": "Answers", "score": "Answers to a blank", "statement": "A ___.",
          "answers": "b\nc"},
     ASK, RANKED | {"text": "A ___.", "answers": "b\nc", "right_answer": ""}),
    ("", {"tab": "Answers", "statement": "A ___.", "right_answer": "São Paulo"},
     ASK, RANKED | {"text": "A ___.", "right_answer": "São Paulo"}),
    ("", {"tab": "Answers", "score": "Whole sentences", "sentences": "a\nb"},
     ASK, {"score": "Whole sentences", "sentences": "a\nb"}),
    ("", {"tab": "Examples", "of_source": "T-REx", "example": "Ravens can ___."},
     ASK, {"text": "Ravens can ___.", "gold": "fly"}),
    ("cloze", {"text": "Rome is ___."}, ASK, {"text": "Rome is ___."}),
    ("analogy", {}, ASK, {"tab": "Analogy"}),
    ("analogy", {"a": "walk", "b": "walked", "c": "play", "d": "played"}, ASK,
     {"tab": "Analogy", "solve": "walk : walked :: play : ?", "solution": "played"}),
    ("", {"tab": "Analogy", "a": "walk", "b": "walked", "c": "play", "blank": "B"}, ASK,
     {"tab": "Analogy", "solve": "walk : ? :: play : ", "solution": "walked"}),
    ("results", {"tab": "Compare"}, RESULTS, {"tab": "Compare"}),
    ("facts", {}, RESULTS, FACTS),
    ("results", {"tab": "More", "chart": "LAMA T-REx"}, RESULTS, {"large": "LAMA T-REx"}),
    ("prompts", {}, RESULTS, PROMPTS),
    ("results", PROMPTS | {"prompts_view": "Try and compare"}, RESULTS, PROMPTS | ONE),
    ("results", PROMPTS | {"prompts_view": "Ensembles and the paper"},
     RESULTS, PROMPTS | ENSEMBLES),
    ("results", PROMPTS | {"prompts_view": "Ensembles and the paper", "scope": "all relations"},
     RESULTS, PROMPTS | ALL),
    ("results", PROMPTS | {"prompts_view": "Analyses and the paper"},
     RESULTS, PROMPTS | ALL | {"prompts_part": "Analyses"}),
    ("results",
     PROMPTS | {"prompts_view": "Analyses and the paper", "prompts_part": "In the paper"},
     RESULTS, PROMPTS | ALL | {"prompts_part": "In the paper"}),
    ("method", {}, HELP, {"paper": "All"}),
    ("data", {"tab": "Runs"}, DATA, {"tab": "Runs"}),
    ("data", {"tab": "Data sets", "source": "starter"}, DATA, {"source": "starter"}),
    ("data", {"tab": "New run", "run_limit": "7"}, DATA,
     {"tab": "Runs", "new": "run", "run_limit": "7"}),
)  # fmt: skip
