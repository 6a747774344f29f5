"""What was asked in this browser session, newest first, one click back to it.

A question is the request of its view, as the command line has it; its address is made from it.
Nothing of it leaves the session.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import streamlit as st

from lama_core.probes.analogy.score import ScoreRequest
from lama_core.probes.analogy.solve import SolveRequest
from lama_core.probes.analogy.templates import SLOTS, template_label
from lama_core.probes.cloze.batch import ManyRequest
from lama_core.probes.cloze.query import ClozeRequest
from lama_core.probes.cloze.wordings import RelationRequest
from lama_core.probes.statements.sentences import SentencesRequest
from lama_core.probes.statements.typed_answers import RankRequest
from lama_core.requests import Request, values
from pages.ui.shared import cache, links, screens, url_state
from pages.ui.shared.messages import counted, faults_shown, plain
from pages.ui.shared.run_choice import relation_label

MAX_ENTRIES = 50
MAX_TITLE = 70
# In the session: the entries, the one that was chosen, and a text too long for its address.
HISTORY, GOING, TEXT = "asked so far", "asked again", "asked text"


@dataclass(frozen=True, slots=True)
class Entry:
    """Something that was asked. text: of many sentences, as they were typed."""

    request: Request
    text: str = ""

    @property
    def view(self) -> "View":
        """Where it was asked."""
        return VIEWS[type(self.request)]

    @property
    def title(self) -> str:
        """What was asked, in one line."""
        title = " ".join(self.view.title(self).split())
        return title if len(title) <= MAX_TITLE else f"{title[: MAX_TITLE - 1]}…"

    @property
    def models(self) -> tuple[str, ...]:
        """The models that were asked."""
        return cast(Any, self.request).models

    def params(self) -> dict[str, str | list[str]]:
        """The parameters of its address."""
        found = {**self.view.tab, "models": self.models, **self.view.params(self)}
        return {name: _written(value) for name, value in found.items() if value is not None}


@dataclass(frozen=True, slots=True)
class View:
    """A screen of the Ask page. name: of its tab, or of the view in it.

    tab: parameters of its address. title: of the query. given: parameter of the address -> field
    of the request. more: parameters that are made of several fields.
    """

    name: str
    tab: screens.Params
    title: Callable[[Entry], str]
    given: Mapping[str, str]
    more: Callable[[Any], dict[str, Any]] = lambda _: {}

    def params(self, entry: Entry) -> dict[str, Any]:
        """The parameters of an entry's address besides its models."""
        found = {name: getattr(entry.request, field) for name, field in self.given.items()}
        return found | self.more(entry.request)


def _written(value: object) -> str | list[str]:
    """A value as widgets write it into the address."""
    if isinstance(value, bool):
        return str(value).lower()
    return list(map(str, value)) if isinstance(value, tuple) else str(value)


def _relation(asked: RelationRequest) -> dict[str, Any]:
    relation = cache.dataset_of(asked.dataset).relation(asked.relation)
    return {"relation": relation_label(relation.name, relation.label)} | _words(asked)


def _words(asked: Any) -> dict[str, Any]:
    """Which sides of the blank are seen, of a view that ranks words there."""
    return {"context": asked.context or "auto"}


def _solve(asked: SolveRequest) -> dict[str, Any]:
    at = asked.text.index("___")
    words = [asked.gold if number == at else word for number, word in enumerate(asked.text)]
    slots = {slot.lower(): word for slot, word in zip(SLOTS, words, strict=True)}
    template = {"template": template_label(asked.template) if asked.template else None}
    return slots | template | {"blank": SLOTS[at]} | _words(asked)


def _score(asked: ScoreRequest) -> dict[str, Any]:
    template = template_label(asked.template) if asked.template else None
    return {"pairs": ", ".join(asked.pairs), "score_template": template}


def _many_title(entry: Entry) -> str:
    n = sum(bool(line.strip()) for line in entry.text.split("\n"))
    return f"{counted(n, 'sentence')}: {entry.text[:MAX_TITLE]}"


def _titled(form: str) -> Callable[[Entry], str]:
    """The title of an entry by the fields of its request."""

    def title(entry: Entry) -> str:
        fields = values(entry.request).items()
        texts = {name: " / ".join(one) if isinstance(one, tuple) else one for name, one in fields}
        return form.format(**texts)

    return title


PRECISION = {"precision": "precision"}
WORDS = PRECISION | {
    "candidates": "candidates",
    "rescored": "n_rescored",
    "renormalise": "renormalise",
}
VIEWS: dict[type, View] = {
    ClozeRequest: View(
        "Sentence",
        {},
        _titled("{text}"),
        WORDS | {"text": "text", "gold": "gold", "k": "top_k", "book": "open_book"},
        _words,
    ),
    RelationRequest: View(
        "Wordings",
        {"tab": "Wordings"},
        _titled("{relation} of {subject}"),
        WORDS | {"data": "dataset", "subject": "subject", "object": "gold", "mined": "mined"},
        _relation,
    ),
    RankRequest: View(
        "Answers",
        {"tab": "Answers"},
        _titled("{text}"),
        PRECISION
        | {
            "statement": "text",
            "right_answer": "gold",
            "part": "part",
            "aggregate": "aggregate",
            "hiding": "hiding",
        },
        lambda asked: {"answers": "\n".join(asked.answers)},
    ),
    SentencesRequest: View(
        "Whole sentences",
        {"tab": "Answers", "score": "Whole sentences"},
        _titled("{texts}"),
        PRECISION | {"hiding": "hiding"},
        lambda asked: {"sentences": "\n".join(asked.texts)},
    ),
    # Its sentences may be too long for an address: `take_text`.
    ManyRequest: View("Batch", {"tab": "Batch"}, _many_title, WORDS, _words),
    SolveRequest: View(
        "Analogy",
        screens.ANALOGIES,
        lambda entry: cast(SolveRequest, entry.request).question().query.text("___"),
        WORDS | {"keep": "keep_query_words", "k": "top_k"},
        _solve,
    ),
    ScoreRequest: View(
        "Score analogies",
        {**screens.ANALOGIES, "analogy": "Score"},
        _titled("{query} :: {pairs}"),
        PRECISION | {"query": "query", "normalise": "normalise"},
        _score,
    ),
}


def note(request: Request, text: str = "") -> None:
    """Take note of what is asked now. Of the same with other options the last one stays."""
    entry = Entry(request, text)
    same = (entry.view.name, entry.title, entry.models, entry.text)
    others = [
        one
        for one in st.session_state.get(HISTORY, ())
        if (one.view.name, one.title, one.models, one.text) != same
    ]
    st.session_state[HISTORY] = (entry, *others)[:MAX_ENTRIES]


def entries() -> tuple[Entry, ...]:
    """What was asked, newest first."""
    return cast(tuple[Entry, ...], st.session_state.get(HISTORY, ()))


def follow() -> None:
    """Go to what was chosen from the history; call before a page is drawn."""
    entry = st.session_state.pop(GOING, None)
    if entry is not None:
        with faults_shown():  # what was asked may be gone: data that were deleted
            st.session_state[TEXT] = entry.text
            links.go(screens.ASK, entry.params())


def take_text() -> str:
    """The sentences of the entry that was gone to; once."""
    return cast(str, st.session_state.pop(TEXT, ""))


def choose(entry: Entry) -> None:
    """Go to an entry with the next run; for a button's `on_click`."""
    st.session_state[GOING] = entry


def draw() -> None:
    """The list, a button an entry, as what a popover holds."""
    found = entries()
    if not found:
        st.caption("Your queries appear here for as long as this browser tab is open.")
        return
    st.caption(
        "Asked in this browser tab, newest first. A click leads back to it."
        + f" The last {MAX_ENTRIES} are kept." * (len(found) == MAX_ENTRIES)
    )
    with st.container(
        height=320 if len(found) > 6 else "content",
        border=False,
        gap=None,
        key="history",
    ):
        for number, entry in enumerate(found):
            models = ", ".join(map(url_state.title_of, entry.models))
            st.button(
                f"{plain(entry.title)} :gray[{entry.view.name} · {plain(models)}]",
                key=f"history {number}",
                type="tertiary",
                on_click=choose,
                args=(entry,),
            )
    st.button("Forget these", icon=":material/delete:", on_click=_forget)


def _forget() -> None:
    st.session_state.pop(HISTORY, None)
