"""What was asked in this browser session, newest first, one click back to it.

A question is the request of its view, as the command line has it; its address is made from it.
Nothing of it leaves the session.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import streamlit as st

from lama_core.probes.analogy.score import ScoreRequest
from lama_core.probes.analogy.solve import SolveRequest
from lama_core.probes.analogy.templates import SLOTS, template_label
from lama_core.probes.cloze.ask import ClozeRequest
from lama_core.probes.cloze.by_relation import RelationRequest
from lama_core.probes.cloze.many import ManyRequest
from lama_core.probes.statements.rank import RankRequest
from lama_core.probes.statements.sentences import SentencesRequest
from lama_core.requests import Request
from pages.ui.shared import cache, links, state
from pages.ui.shared.choice import relation_label
from pages.ui.shared.messages import faults_shown, plain

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
        found = {"view": self.view.name, "models": self.models, **self.view.params(self)}
        return {name: _written(value) for name, value in found.items() if value is not None}


@dataclass(frozen=True, slots=True)
class View:
    """A tab that asks. page: its page. name: the tab's."""

    page: str
    name: str
    title: Callable[[Entry], str]
    params: Callable[[Entry], dict[str, Any]]


def _written(value: object) -> str | list[str]:
    """A value as widgets write it into the address."""
    if isinstance(value, bool):
        return str(value).lower()
    return list(map(str, value)) if isinstance(value, tuple) else str(value)


def _words(request: Any) -> dict[str, Any]:
    """The options of a view that ranks words at a blank."""
    return {
        "candidates": request.candidates, "context": request.context or "auto",
        "rescored": request.n_rescored, "renormalise": request.renormalise,
        "precision": request.precision,
    }  # fmt: skip


def _sentence(entry: Entry) -> dict[str, Any]:
    asked = cast(ClozeRequest, entry.request)
    return {
        "text": asked.text,
        "gold": asked.gold,
        "k": asked.top_k,
        "book": asked.open_book,
        **_words(asked),
    }


def _relation(entry: Entry) -> dict[str, Any]:
    asked = cast(RelationRequest, entry.request)
    relation = cache.dataset_of(asked.dataset).relation(asked.relation)
    return {
        "data": asked.dataset, "relation": relation_label(relation.name, relation.label),
        "subject": asked.subject, "object": asked.gold, "mined": asked.mined, **_words(asked),
    }  # fmt: skip


def _ranking(entry: Entry) -> dict[str, Any]:
    asked = cast(RankRequest, entry.request)
    return {
        "statement": asked.text, "answers": "\n".join(asked.answers), "right_answer": asked.gold,
        "part": asked.part, "aggregate": asked.aggregate, "hiding": asked.hiding,
        "precision": asked.precision,
    }  # fmt: skip


def _sentences(entry: Entry) -> dict[str, Any]:
    asked = cast(SentencesRequest, entry.request)
    return {
        "sentences": "\n".join(asked.texts), "hiding": asked.hiding, "precision": asked.precision,
    }  # fmt: skip


def _many(entry: Entry) -> dict[str, Any]:
    return _words(entry.request)  # the sentences may be too long for an address: `take_text`


def _many_title(entry: Entry) -> str:
    n = sum(bool(line.strip()) for line in entry.text.split("\n"))
    return f"{n:,} sentences: {entry.text[:MAX_TITLE]}"


def _solve(entry: Entry) -> dict[str, Any]:
    asked = cast(SolveRequest, entry.request)
    at = asked.text.index("___")
    words = [asked.gold if number == at else word for number, word in enumerate(asked.text)]
    return {
        **{slot.lower(): word for slot, word in zip(SLOTS, words, strict=True)},
        "blank": SLOTS[at], "template": _template(asked.template), "keep": asked.keep_query_words,
        "k": asked.top_k, **_words(asked),
    }  # fmt: skip


def _template(name: str | None) -> str | None:
    return template_label(name) if name else None


def _score(entry: Entry) -> dict[str, Any]:
    asked = cast(ScoreRequest, entry.request)
    return {
        "query": asked.query, "pairs": ", ".join(asked.pairs),
        "score_template": _template(asked.template), "normalise": asked.normalise,
        "precision": asked.precision,
    }  # fmt: skip


def _titled(name: str) -> Callable[[Entry], str]:
    def title(entry: Entry) -> str:
        value = getattr(entry.request, name)
        return " / ".join(value) if isinstance(value, tuple) else str(value)

    return title


VIEWS: dict[type, View] = {
    ClozeRequest: View(links.CLOZE, "Sentence", _titled("text"), _sentence),
    RelationRequest: View(
        links.CLOZE, "Subject and relation",
        lambda entry: " of ".join((_titled("relation")(entry), _titled("subject")(entry))),
        _relation,
    ),
    RankRequest: View(links.CLOZE, "Rank my answers", _titled("text"), _ranking),
    SentencesRequest: View(links.CLOZE, "Compare sentences", _titled("texts"), _sentences),
    ManyRequest: View(links.CLOZE, "Many at once", _many_title, _many),
    SolveRequest: View(
        links.ANALOGY, "Solve",
        lambda entry: cast(SolveRequest, entry.request).question().query.text("___"), _solve,
    ),
    ScoreRequest: View(
        links.ANALOGY, "Score",
        lambda entry: f"{_titled('query')(entry)} :: {_titled('pairs')(entry)}", _score,
    ),
}  # fmt: skip


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
            links.go(entry.view.page, entry.params())


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
        st.caption(
            "What you ask on Cloze and Analogy stands here, for as long as this tab is open."
        )
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
            models = ", ".join(map(state.title_of, entry.models))
            st.button(
                f"{plain(entry.title)} :gray[{entry.view.name} · {plain(models)}]",
                key=f"history {number}", type="tertiary", on_click=choose, args=(entry,),
            )  # fmt: skip
    st.button("Forget these", icon=":material/delete:", on_click=_forget)


def _forget() -> None:
    st.session_state.pop(HISTORY, None)
