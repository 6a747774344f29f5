"""Every address of the nine pages of 0.1 and /ask, and the screen that shows the same now."""

from pages.ui.shared.screens import ASK, DATA, HELP, LESSONS, MODELS, RESULTS

Params = dict[str, str]


def chart(name: str) -> Params:
    return {"tab": "More", "chart": name}


def prompts(view: str) -> Params:
    return {"tab": "Prompts", "prompts_view": view}


# Path and parameters of the old address, then page and parameters of the new one.
MOVED: tuple[tuple[str, Params, str, Params], ...] = (
    ("", {}, ASK, {}),
    ("ask", {"tab": "Batch"}, ASK, {"tab": "Batch"}),
    ("", {"view": "Sentence"}, ASK, {}),
    ("", {"view": "Subject and relation"}, ASK, {"tab": "Wordings"}),
    ("", {"view": "Rank my answers"}, ASK, {"tab": "Answers"}),
    ("", {"view": "Compare sentences"}, ASK, {"tab": "Answers", "score": "Whole sentences"}),
    ("", {"view": "Many at once"}, ASK, {"tab": "Batch"}),
    ("", {"view": "The paper's examples"}, ASK, {"tab": "Examples"}),
    ("analogy", {}, ASK, {"tab": "Analogy"}),
    ("analogy", {"view": "Solve"}, ASK, {"tab": "Analogy"}),
    ("analogy", {"view": "Score"}, ASK, {"tab": "Analogy", "analogy": "Score"}),
    ("analogy", {"view": "Probes"}, RESULTS, chart("Analogy probes")),
    ("results", {}, RESULTS, {}),
    ("results", {"tab": "P@k"}, RESULTS, {}),
    ("results", {"tab": "LAMA T-REx"}, RESULTS, chart("LAMA T-REx")),
    ("results", {"tab": "Curves"}, RESULTS, chart("P@k curves")),
    ("results", {"tab": "Ranks"}, RESULTS, chart("Rank distribution")),
    ("results", {"tab": "Margins"}, RESULTS, chart("Margins")),
    ("results", {"tab": "Types"}, RESULTS, chart("Relation types")),
    ("results", {"tab": "Slices"}, RESULTS, chart("Slices")),
    ("results", {"tab": "Calibration"}, RESULTS, chart("Calibration")),
    ("results", {"tab": "Correlations"}, RESULTS, chart("Correlations")),
    ("results", {"tab": "Wording"}, RESULTS, chart("Wording and negation")),
    ("results", {"tab": "Compare"}, RESULTS, {"tab": "Compare"}),
    ("results", {"tab": "New run"}, DATA, {"tab": "New run"}),
    ("facts", {}, RESULTS, {"tab": "Wrong answers", "facts": "all"}),
    ("facts", {"view": "Facts"}, RESULTS, {"tab": "Wrong answers", "facts": "all"}),
    (
        "facts",
        {"view": "Confusion"},
        RESULTS,
        {"tab": "Wrong answers", "facts": "all", "view": "Confusion"},
    ),
    (
        "facts",
        {"view": "Wrong answers"},
        RESULTS,
        {"tab": "Wrong answers", "facts": "all", "view": "Frequent answers"},
    ),
    ("prompts", {}, RESULTS, prompts("Prompts")),
    ("prompts", {"tab": "Prompts"}, RESULTS, prompts("Prompts")),
    ("prompts", {"tab": "Ensembles"}, RESULTS, prompts("Ensembles")),
    ("prompts", {"tab": "One fact"}, RESULTS, prompts("One fact")),
    ("prompts", {"tab": "Weights"}, RESULTS, prompts("Ensembles")),
    ("prompts", {"tab": "Try a prompt"}, RESULTS, {"tab": "Prompts"}),
    ("prompts", {"tab": "Analyses"}, RESULTS, prompts("Analyses and the paper")),
    (
        "prompts",
        {"tab": "In the paper"},
        RESULTS,
        {**prompts("Analyses and the paper"), "prompts_part": "In the paper"},
    ),
    ("prompts", {"tab": "New study"}, DATA, {"tab": "New study"}),
    ("method", {}, HELP, {"paper": "All"}),
    ("method", {"view": "Departures"}, HELP, {"paper": "All"}),
    ("method", {"view": "Glossary"}, HELP, {}),
    ("data", {}, DATA, {}),
    ("data", {"tab": "Sources"}, DATA, {}),
    ("data", {"tab": "Runs"}, DATA, {"tab": "Runs"}),
    ("models", {}, MODELS, {}),
    ("lessons", {}, LESSONS, {}),
)
