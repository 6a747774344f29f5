"""The pages and their tabs, and where the screens of older addresses are now."""

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

ASK = "pages/ask.py"
LESSONS = "pages/lessons.py"
RESULTS = "pages/results.py"
DATA = "pages/data.py"
MODELS = "pages/models.py"
HELP = "pages/help.py"

Params = Mapping[str, str | Sequence[str]]
# Tabs that other pages link to, as parameters of their page's address.
ANALOGIES: Params = {"tab": "Analogy"}
WRONG_ANSWERS: Params = {"tab": "Wrong answers"}
PROMPTS: Params = {"tab": "Prompts"}
CURVES, RANKS = "P@k curves", "Rank distribution"  # charts of the More tab
ANALOGY_PROBES: Params = {"tab": "More", "chart": "Analogy probes"}
NEW_RUN: Params = {"tab": "New run"}
IMPORT: Params = {"tab": "Import"}
RUNS: Params = {"tab": "Runs"}
FOLDED = "Analyses and the paper"  # a view of the tab Prompts
# The parameters that say which tab of Results is open, and which chart or view in it.
OPENED = ("tab", "chart", "view")

# Screens with numbers, and the paper whose rules the numbers follow; the first that fits counts.
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
    """Tabs that became views of one tab; the first is its default."""
    return {name: (page, {**tab, key: name} if at else tab) for at, name in enumerate(names)}


# Of a page of an older address, its parameter that named the tab, and the page and tab that show
# the same now; the first is the tab that was open where the address named none.
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
        _views(RESULTS, WRONG_ANSWERS, "view", "Facts", "Confusion", "Wrong answers"),
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
    "method": (
        "view",
        {"Departures": (HELP, {"paper": "All"}), "Glossary": (HELP, {})},
    ),
}
OLD_PAGES = tuple(name for name in _OLD if name not in ("results", "data"))
_NAMES = {PurePosixPath(page).stem: page for page in (LESSONS, RESULTS, DATA, MODELS, HELP)}


def paper_of(page: str, params: Mapping[str, object]) -> str:
    """The paper whose rules the numbers of a screen follow; empty for a page without numbers.

    params: Tab and chart that are open, as parameters of the page's address.
    """
    return next(
        (
            paper
            for there, tab, paper in _PAPERS
            if there == page and all(params.get(name) == value for name, value in tab.items())
        ),
        "",
    )


def resolve(name: str, params: Params) -> tuple[str, Params]:
    """The page and parameters that show what an address shows, or showed in an earlier version.

    name: the last part of the address's path; empty for the first page.
    """
    page = _NAMES.get(name, ASK)
    key, tabs = _OLD.get(name or "cloze", ("", {}))
    asked = params.get(key, "")
    named = asked if isinstance(asked, str) else (*asked, "")[0]
    if not tabs or (name not in OLD_PAGES and named not in tabs):
        return page, params
    page, more = tabs.get(named) or next(iter(tabs.values()))
    rest = {one: value for one, value in params.items() if one != key or named not in tabs}
    return page, {**rest, **more}


def names() -> frozenset[str]:
    """The last parts of all paths that the app answers, but for the first page's."""
    return frozenset((*_NAMES, *OLD_PAGES))
