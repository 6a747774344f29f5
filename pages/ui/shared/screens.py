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
PAPERS: tuple[tuple[str, Params, str], ...] = (
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
# Path that redirects to another page -> file. The first page's own path is empty.
REDIRECTS = {name: f"pages/{name}.py" for name in _MOVED} | {"ask": "pages/cloze.py"}
# The words of an analogy in a URL of version 0.1, and their values if the URL has none.
_SLOTS = {"a": "Paris", "b": "France", "c": "Rome", "d": ""}
_NAMES = {PurePosixPath(page).stem: page for page in (LESSONS, RESULTS, DATA, MODELS, HELP, POLL)}


def chart(name: str) -> Params:
    """The screen with a chart of Results, as URL parameters."""
    return {"large": name} if name in (CURVES, LAMA_TREX) else {"tab": "More", "chart": name}


def resolve(name: str, params: Params) -> tuple[str, Params]:
    """The page and parameters of a URL, which may be from version 0.1.

    An analogy is in one line; version 0.1 had a parameter for each word.

    Args:
        name: The last part of the URL's path; empty for the first page.
        params: The URL parameters.
    """
    page, screen = _MOVED.get(name, (_NAMES.get(name, ASK), {}))
    if "solve" not in params and any(slot in params for slot in _SLOTS):
        values = _SLOTS | {"blank": "D"}
        given = {slot: params.get(slot, value) for slot, value in values.items()}
        words = {slot: v if isinstance(v, str) else (*v, "")[0] for slot, v in given.items()}
        blank = words.pop("blank").lower()
        a, b, c, d = ("?" if slot == blank else word for slot, word in words.items())
        params = {name: value for name, value in params.items() if name not in values}
        params |= {"solve": f"{a} : {b} :: {c} : {d}", "solution": words.get(blank, "")}
    return page, {**params, **screen}
