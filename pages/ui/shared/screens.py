"""The pages and their tabs, and the screens that replaced those of older URLs."""

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

ASK = "pages/ask.py"
LESSONS = "pages/lessons.py"
RESULTS = "pages/results.py"
DATA = "pages/data.py"
MODELS = "pages/models.py"
HELP = "pages/help.py"
POLL = "pages/poll.py"  # not in the menu

Params = Mapping[str, str | Sequence[str]]
# Tabs that other pages link to, as URL parameters.
ANALOGIES: Params = {"tab": "Analogy"}
WRONG_ANSWERS: Params = {"tab": "Wrong answers"}
ALL_FACTS: Params = {**WRONG_ANSWERS, "facts": "all"}  # without filters
FIRST_MODEL = "first"  # stands for the first shown model among the models that are wrong
CONFIDENT_FIRST = "most confident first"  # an order of the facts
CONFIDENT_AND_WRONG: Params = {**WRONG_ANSWERS, "wrong": FIRST_MODEL, "sort": CONFIDENT_FIRST}
PROMPTS: Params = {"tab": "Prompts"}
# Charts of the More tab.
CURVES, RANKS = "P@k curves", "Rank distribution"
WAYS = "Ways of asking"
TRAINING = "Training"
TRACES = "Causal traces"
ANALOGY_PROBES: Params = {"tab": "More", "chart": "Analogy probes"}
NEW_PROBE: Params = {**ANALOGY_PROBES, "new_probe": "true"}  # with the form first
NEW_RUN: Params = {"tab": "New run"}
IMPORT: Params = {"tab": "Import"}
RUNS: Params = {"tab": "Runs"}
FOLDED = "Analyses and the paper"  # a view of the tab Prompts
# The parameters with the open tab of Results, and the chart or view in it.
OPENED = ("tab", "chart", "view")

# Screens with numbers, and the paper that defines the numbers; the first match is used.
_PAPERS: tuple[tuple[str, Params, str], ...] = (
    (ASK, ANALOGIES, "Analogy probes"),
    (RESULTS, ANALOGY_PROBES, "Analogy probes"),
    (RESULTS, PROMPTS, "LPAQA"),
    (ASK, {}, "LAMA"),
    (RESULTS, {}, "LAMA"),
)


def _charts(**names: str) -> dict[str, tuple[str, Params]]:
    """Tabs that became charts of the More tab. names: tab -> chart."""
    return {tab: (RESULTS, {"tab": "More", "chart": chart}) for tab, chart in names.items()}


def _prompts(view: str, **more: str) -> tuple[str, Params]:
    return RESULTS, {**PROMPTS, "prompts_view": view, **more}


def _views(page: str, tab: Params, key: str, *names: str) -> dict[str, tuple[str, Params]]:
    """Tabs that became views of one tab, which opens the first view by default."""
    return {name: (page, {**tab, key: name} if at else tab) for at, name in enumerate(names)}


# Page of an older URL -> the parameter that named its tab, and tab -> the page and tab that
# replaced it. URLs without the parameter open the first tab.
_OLD: dict[str, tuple[str, dict[str, tuple[str, Params]]]] = {
    "cloze": (
        "view",
        {
            "Sentence": (ASK, {}),
            "Subject and relation": (ASK, {"tab": "Wordings"}),
            "Rank my answers": (ASK, {"tab": "Answers"}),
            "Compare sentences": (ASK, {"tab": "Answers", "score": "Whole sentences"}),
            "Many at once": (ASK, {"tab": "Batch"}),
            "The paper's examples": (ASK, {"tab": "Examples"}),
        },
    ),
    "analogy": (
        "view",
        _views(ASK, ANALOGIES, "analogy", "Solve", "Score") | {"Probes": (RESULTS, ANALOGY_PROBES)},
    ),
    "results": (
        "tab",
        {"P@k": (RESULTS, {}), "New run": (DATA, NEW_RUN)}
        | _charts(Curves=CURVES, Ranks=RANKS, Types="Relation types", Calibration="Calibration")
        | _charts(Correlations="Correlations", Slices="Slices", Margins="Margins")
        | _charts(Wording="Wording and negation", **{"LAMA T-REx": "LAMA T-REx"}),
    ),
    "facts": (
        "view",
        _views(RESULTS, ALL_FACTS, "view", "Facts", "Confusion")
        | {"Wrong answers": (RESULTS, {**ALL_FACTS, "view": "Frequent answers"})},
    ),
    "prompts": (
        "tab",
        {
            "Prompts": _prompts("Prompts"),
            "Try a prompt": (RESULTS, PROMPTS),
            "Ensembles": _prompts("Ensembles"),
            "One fact": _prompts("One fact"),
            "Weights": _prompts("Ensembles"),
            "Analyses": _prompts(FOLDED),
            "In the paper": _prompts(FOLDED, prompts_part="In the paper"),
            "New study": (DATA, {"tab": "New study"}),
        },
    ),
    "data": ("tab", {"Sources": (DATA, {})}),
    "method": ("view", {"Departures": (HELP, {"paper": "All"}), "Glossary": (HELP, {})}),
}
OLD_PAGES = tuple(name for name in _OLD if name not in ("results", "data"))
# Path that redirects to another page -> file. The first page's own path is empty.
REDIRECTS = {name: f"pages/{name}.py" for name in OLD_PAGES} | {"ask": "pages/cloze.py"}
# The words of an analogy in a URL of an earlier version, and their values if the URL has none.
_SLOTS = {"a": "Paris", "b": "France", "c": "Rome", "d": ""}
_NAMES = {PurePosixPath(page).stem: page for page in (LESSONS, RESULTS, DATA, MODELS, HELP, POLL)}


def paper_of(page: str, params: Mapping[str, object]) -> str:
    """The paper that defines a screen's numbers; empty for a page without numbers.

    Args:
        page: The page's file.
        params: The open tab and chart, as URL parameters.
    """
    return next(
        (
            paper
            for there, tab, paper in _PAPERS
            if there == page and all(params.get(name) == value for name, value in tab.items())
        ),
        "",
    )


def _in_one_line(params: Params) -> Params:
    """The parameters with an analogy in one line; earlier versions had one for each word."""
    if "solve" in params or not any(slot in params for slot in _SLOTS):
        return params
    words = {slot: _first(params.get(slot, word)) for slot, word in _SLOTS.items()}
    blank = _first(params.get("blank", "D")).lower()
    solution = words.get(blank, "")
    a, b, c, d = ("?" if slot == blank else word for slot, word in words.items())
    rest = {name: value for name, value in params.items() if name not in (*_SLOTS, "blank")}
    return {**rest, "solve": f"{a} : {b} :: {c} : {d}", "solution": solution}


def _first(value: str | Sequence[str]) -> str:
    """The first value of a parameter; empty if it has none."""
    return value if isinstance(value, str) else (*value, "")[0]


def resolve(name: str, params: Params) -> tuple[str, Params]:
    """The page and parameters of a URL, which may be from an earlier version.

    Args:
        name: The last part of the URL's path; empty for the first page.
        params: The URL parameters.
    """
    page = _NAMES.get(name, ASK)
    params = _in_one_line(params)
    key, tabs = _OLD.get(name or "cloze", ("", {}))
    tab = _first(params.get(key, ""))
    if not tabs or (name not in OLD_PAGES and tab not in tabs):
        return page, params
    page, more = tabs.get(tab) or next(iter(tabs.values()))
    rest = {param: value for param, value in params.items() if param != key or tab not in tabs}
    return page, {**rest, **more}
