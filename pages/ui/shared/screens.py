"""The pages and their tabs, and the screens that replaced those of older URLs."""

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from lama_core.published import published_examples

ASK = "pages/ask.py"
LESSONS = "pages/lessons.py"
RESULTS = "pages/results.py"
DATA = "pages/data.py"
MODELS = "pages/models.py"
HELP = "pages/help.py"
POLL = "pages/poll.py"  # not in the menu

Params = Mapping[str, str | Sequence[str]]
# Views of Ask, as URL parameters.
ONLY_THESE = {"score": "Only these answers"}
WHOLE_SENTENCES = {"score": "Whole sentences"}
LIST = {"tab": "Several"}
ALTERNATIVES = {**LIST, "what": "Alternatives"}
WORDINGS = {**LIST, "what": "Wordings"}
# Tabs that other pages link to, as URL parameters.
ANALOGIES: Params = {"tab": "Analogy"}
WRONG_ANSWERS: Params = {"tab": "Wrong answers"}
ALL_FACTS: Params = {**WRONG_ANSWERS, "facts": "all"}  # without filters
FIRST_MODEL = "first"  # stands for the first shown model among the models that are wrong
CONFIDENT_FIRST = "most confident first"  # an order of the facts
CONFIDENT_AND_WRONG: Params = {**WRONG_ANSWERS, "wrong": FIRST_MODEL, "sort": CONFIDENT_FIRST}
PROMPTS: Params = {"tab": "Prompts"}
# Charts of Overview that have the width of the page if the URL parameter `large` names them; and
# published scores next to this project's.
CURVES, LAMA_TREX = "P@k curves", "LAMA T-REx"
# Two views of the tab Prompts, and parts of them.
ALL_RELATIONS, ONE_RELATION = "All relations", "One relation"
ENSEMBLES, ANALYSES, IN_PAPER = "Ensembles", "Analyses", "In the paper"
# Charts of the More tab.
RANKS = "Rank distribution"
WAYS = "Ways of asking"
TRAINING = "Training"
ALL_TOGETHER, READINGS = "all together", "readings"  # lines, and a part, of Training
TRACES = "Causal traces"
ANALOGY_PROBES: Params = {"tab": "More", "chart": "Analogy probes"}
NEW_PROBE: Params = {**ANALOGY_PROBES, "new_probe": "true"}  # with the form first
IMPORT: Params = {"tab": "Import"}
RUNS = {"tab": "Runs"}
NEW_RUN = {**RUNS, "new": "run"}  # with the form instead of the list
NEW_STUDY = {**RUNS, "new": "study"}
# The parameters with the open tab of Results, and the chart or view in it.
OPENED = ("tab", "large", "chart", "view")

# Screens with numbers, and the paper that defines the numbers; the first match is used.
_PAPERS: tuple[tuple[str, Params, str], ...] = (
    (ASK, ANALOGIES, "Analogy probes"),
    (RESULTS, ANALOGY_PROBES, "Analogy probes"),
    (RESULTS, PROMPTS, "LPAQA"),
    (ASK, {}, "LAMA"),
    (RESULTS, {}, "LAMA"),
)


# Path of a page of version 0.1 -> the screen that replaced it. Its other parameters are kept.
_MOVED: dict[str, tuple[str, Params]] = {
    "cloze": (ASK, {}),
    "analogy": (ASK, ANALOGIES),
    "facts": (RESULTS, ALL_FACTS),
    "prompts": (RESULTS, PROMPTS),
    "method": (HELP, {"paper": "All"}),
}
OLD_PAGES = tuple(_MOVED)
# Path that redirects to another page -> file. The first page's own path is empty.
REDIRECTS = {name: f"pages/{name}.py" for name in OLD_PAGES} | {"ask": "pages/cloze.py"}
# Tab of Ask in an earlier version -> the view that replaced it.
_MOVED_TABS: dict[str, Params] = {
    "Answers": ONLY_THESE,
    "Batch": LIST,
    "Grid": ALTERNATIVES,
    "Wordings": WORDINGS,
    "Examples": {},
}
# View of Prompts in an earlier version -> the view that replaced it.
_OF_ONE = {"prompts_view": ONE_RELATION}
_MOVED_PROMPTS: dict[str, Params] = {
    "Try and compare": _OF_ONE,
    "Try a prompt": _OF_ONE,
    "Prompts": _OF_ONE,
    "Ensembles and the paper": {**_OF_ONE, "relation_part": ENSEMBLES},
    "Ensembles": {**_OF_ONE, "relation_part": ENSEMBLES},
    "Analyses and the paper": {"prompts_view": ALL_RELATIONS, "prompts_part": ANALYSES},
}
# Tab of Data and runs in an earlier version -> the screen that replaced it.
_MOVED_TABS_OF_DATA: dict[str, Params] = {
    "Data sets": {},
    "New run": NEW_RUN,
    "New study": NEW_STUDY,
}
# The query of the former tab Answers if its URL has none.
_RANKED = {
    "statement": "The capital of Brazil is ___.",
    "answers": "Brasília\nRio de Janeiro\nSão Paulo\nBuenos Aires",
    "right_answer": "Brasília",
}
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


def chart(name: str) -> Params:
    """The screen with a chart of Results, as URL parameters."""
    return {"large": name} if name in (CURVES, LAMA_TREX) else {"tab": "More", "chart": name}


def resolve(name: str, params: Params) -> tuple[str, Params]:
    """The page and parameters of a URL, which may be from an earlier version.

    An analogy is in one line; earlier versions had a parameter for each word.

    Args:
        name: The last part of the URL's path; empty for the first page.
        params: The URL parameters.
    """
    page, screen = _MOVED.get(name, (_NAMES.get(name, ASK), {}))
    if page == ASK:
        params = _from_moved_tab(params)
    taken, rest = _taken(params, {"tab": ""})
    if page == DATA and taken["tab"] in _MOVED_TABS_OF_DATA:
        params = {**rest, **_MOVED_TABS_OF_DATA[taken["tab"]]}
    if "solve" not in params and any(slot in params for slot in _SLOTS):
        words, rest = _taken(params, _SLOTS | {"blank": "D"})
        blank = words.pop("blank").lower()
        a, b, c, d = ("?" if slot == blank else word for slot, word in words.items())
        params = {**rest, "solve": f"{a} : {b} :: {c} : {d}", "solution": words.get(blank, "")}
    if page == RESULTS:
        params = _from_moved_view(params)
    return page, {**params, **screen}


def _from_moved_tab(params: Params) -> Params:
    """The parameters of a screen of Ask, of which the tab may be one of an earlier version."""
    taken, rest = _taken(params, dict.fromkeys(("tab", "score", "example", "of_source"), ""))
    view = _MOVED_TABS.get(taken["tab"])
    if view is None:
        return params
    if taken["tab"] == "Examples":
        golds = {one.query: one.gold for one in published_examples()}
        return {**rest, "text": taken["example"], "gold": golds.get(taken["example"], "")}
    if taken["tab"] != "Answers":
        return {**rest, **view}
    if taken["score"] == WHOLE_SENTENCES["score"]:
        return {**rest, **WHOLE_SENTENCES}
    query, rest = _taken(rest, _RANKED)
    if query["right_answer"] not in query["answers"].split("\n"):
        query["right_answer"] = ""
    return {**rest, **view, "text": query.pop("statement"), **query}


def _from_moved_view(params: Params) -> Params:
    """The parameters of a screen of Results, of which the view may be one of an earlier version."""
    taken, rest = _taken(params, dict.fromkeys(("tab", "chart", "prompts_view", "scope"), ""))
    if taken["chart"] in (CURVES, LAMA_TREX):
        return {**rest, **chart(taken["chart"])}
    view = _MOVED_PROMPTS.get(taken["prompts_view"])
    if view is None:
        return params
    if taken["scope"] == "all relations" or "prompts_part" in rest:
        view = {"prompts_view": ALL_RELATIONS}
    return {**view, **rest, **PROMPTS}


def _taken(params: Params, values: Mapping[str, str]) -> tuple[dict[str, str], Params]:
    """Some parameters, each with its first value or the given one, and the other parameters."""
    found = {name: params.get(name, value) for name, value in values.items()}
    first = {name: v if isinstance(v, str) else (*v, "")[0] for name, v in found.items()}
    return first, {name: value for name, value in params.items() if name not in values}
