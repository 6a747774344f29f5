"""Examples: the queries of LAMA's Table 3 with the answers of chosen models and BERT-large."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import product
from urllib.parse import urlencode

import streamlit as st

from lama_core import rounding
from lama_core.models.sources.catalog import find_model
from lama_core.models.sources.locations import is_here
from lama_core.progress import Pace, Progress
from lama_core.progress import describe as describe_progress
from lama_core.published import SOURCES, PublishedExample, published_examples
from lama_core.queries.blank_answers import ModelAnswer
from lama_core.queries.cloze import ClozeRequest, fill
from lama_core.requests import field_values
from lama_core.views.colours import PUBLISHED, model_colours
from pages.ui.queries import widgets
from pages.ui.queries.form import DrawField, Form
from pages.ui.queries.wordings import describe_contexts
from pages.ui.shared import cache, links, predictions, screens, url_state
from pages.ui.shared.export import Rows, draw_export, made_with
from pages.ui.shared.messages import counted
from pages.ui.shared.model_columns import Column, query_models
from pages.ui.shared.query_queue import if_cached

TOP_K = 5
ASKED = "examples asked"  # in the session: the queries that the visitor wants to be asked
FEW = 10  # queries on screen, until the user wants all
ALL = "both"
PAPER_MODEL = "BERT-large, published"
# URL parameters that a link to one of the queries replaces or drops.
REPLACED = ("tab", "of_source", "text", "gold")
Answers = tuple[ModelAnswer, ...]


@dataclass(frozen=True, slots=True)
class RankedList:
    """The best words for one query.

    Attributes:
        words: Words and their log-probabilities, best first.
        right: Index of the gold answer in `words`, or None.
        gold: The gold answer's rank, as a text.
        over: The words over which the probabilities sum to 1, as a text.
    """

    words: tuple[tuple[str, float], ...]
    right: int | None
    gold: str
    over: str


@dataclass(frozen=True, slots=True)
class Answerer:
    """A model or a published source, with its list for each query."""

    name: str
    title: str
    colour: str
    lists: tuple[RankedList, ...]

    @property
    def over(self) -> str:
        """The words over which the probabilities of most lists sum to 1, as a text."""
        return Counter(one.over for one in self.lists).most_common(1)[0][0]

    def summary(self) -> str:
        """How often the model is right, and which words its probabilities are over."""
        return f"{count_right(self.lists)} Probabilities {self.over}."


def requests_for(
    examples: Sequence[PublishedExample], request: ClozeRequest
) -> tuple[ClozeRequest, ...]:
    """The requests that give the models' best words for the examples, with a request's options."""
    return tuple(replace(request, text=one.query, gold=one.gold) for one in examples)


def count_right(lists: Sequence[RankedList]) -> str:
    """How often the gold answer is first, and among the first five, as a sentence."""
    n = len(lists)
    first = sum(one.right == 0 for one in lists)
    among = sum(one.right is not None for one in lists)
    return f"The right answer is first in {first} of {n}, among the first five in {among} of {n}."


def draw_published_examples() -> None:
    """Draw the tab."""
    st.caption(
        "The queries of Table 3 of Petroni et al. 2019, with BERT-large's five best words from the "
        "paper next to those of the models that you choose. ✓ marks the right answer. Click "
        "a query to ask it."
    )
    published = published_examples()
    titles = {example.source: SOURCES[example.source] for example in published}
    models_box, source_box, more = st.columns([5, 3, 1.4], vertical_alignment="bottom")
    source = url_state.pick("Facts of", (ALL, *titles.values()), key="of_source", place=source_box)

    def layout(draw: DrawField) -> None:
        with models_box:
            draw("models")
        with more, st.popover("Options", icon=":material/tune:", width="stretch"):
            widgets.draw_cloze_options(draw)

    options = Form(ClozeRequest, {"models": widgets.MODELS, **widgets.CLOZE_OPTIONS}, layout)
    request = options.draw(text=published[0].query, top_k=TOP_K)
    request.check()
    examples = [one for one in published if source in (ALL, titles[one.source])]
    answerers = [_published(examples)]
    above = st.container()
    of_all = len(examples) <= FEW or st.toggle(
        f"All {len(examples)} queries", key="all_examples", bind=url_state.BOUND
    )
    table = st.empty()

    def draw_grid() -> None:
        table.html(_grid(examples if of_all else examples[:FEW], answerers))

    def add(answerer: Answerer) -> None:
        answerers.append(answerer)
        draw_grid()

    draw_grid()
    requests = requests_for(examples, request)
    with above:
        columns = _query_in_columns(requests, add) if _may_ask(requests) else {}
        st.caption(f"{PAPER_MODEL}: {answerers[0].summary()}")
    if columns:
        _draw_export(examples, answerers, columns, request)


def _may_ask(requests: Sequence[ClozeRequest]) -> bool:
    """Whether the models may be queried: the visitor wanted it, or all answers are cached.

    Draws the button with which the visitor asks for it.
    """
    names = requests[0].models
    here = tuple(name for name in names if is_here(find_model(name)))

    def ask() -> None:
        st.session_state[ASKED] = requests

    def answers() -> bool:
        for request, name in product(requests, here):
            cache.answer(fill.kind, replace(request, models=here), name)
        return True

    if st.session_state.get(ASKED) == requests or if_cached(answers):
        return True
    st.button(
        f"Ask {counted(len(names), 'model')} these {len(requests)} queries",
        key="ask examples",
        icon=":material/play_arrow:",
        on_click=ask,
    )
    return False


def _query_in_columns(
    requests: Sequence[ClozeRequest], add: Callable[[Answerer], None]
) -> dict[str, Column[Answers]]:
    """Query each model in a column that shows the progress, then how often the model is right.

    Calls `add` with a model's lists when the model has answered all queries.
    """
    names = requests[0].models
    colours = model_colours(names)

    def query_model(name: str, installed: tuple[str, ...]) -> Answers:
        bar, pace = st.progress(0.0), Pace()
        answers = []
        for number, request in enumerate(requests, start=1):
            answers.append(cache.answer(fill.kind, replace(request, models=installed), name))
            pace.see(step := Progress("Asked", number, len(requests), "queries"))
            bar.progress(number / len(requests), describe_progress(step, pace))
        lists = tuple(map(_ranked_list, answers))
        add(Answerer(name, url_state.title_of(name), colours[name], lists))
        return tuple(answers)

    columns = query_models(names, query_model, _describe)
    for name, column in columns.items():
        lists = tuple(map(_ranked_list, column.answer))
        column.place.caption(Answerer(name, name, column.colour, lists).summary())
    return columns


def _describe(answers: Answers) -> str:
    first, contexts = answers[0], [answer.context for answer in answers]
    return describe_contexts(first.kind, contexts, first.precision, first.device, "queries")


def _published(examples: Sequence[PublishedExample]) -> Answerer:
    lists = tuple(
        RankedList(
            example.answers,
            example.rank - 1 if example.rank else None,
            f"rank {example.rank}" if example.rank else "not among the five",
            "over BERT's vocabulary",
        )
        for example in examples
    )
    return Answerer(PAPER_MODEL, "BERT-large (published)", PUBLISHED, lists)


def _ranked_list(answer: ModelAnswer) -> RankedList:
    """A model's list. `right` is None for a gold answer that isn't a candidate."""
    blank = answer.blanks[0]
    gold = blank.gold
    right, rank = None, ""
    if gold is not None:
        if gold.in_candidates and gold.rank <= len(blank.predictions):
            right = gold.rank - 1
        note = "" if gold.in_candidates else ", not among the candidates"
        rank = f"rank {gold.rank:,}, {gold.shown_log_prob()}{note}"
    words = tuple((item.token, item.log_prob) for item in blank.predictions)
    return RankedList(words, right, rank, f"over {blank.shown_over()}")


def _grid(examples: Sequence[PublishedExample], answerers: Sequence[Answerer]) -> str:
    """HTML of all queries, each with the list of every answerer."""
    kept, page = links.params_without(REPLACED), links.path_of(screens.ASK)
    cards = []
    for number, example in enumerate(examples):
        query = urlencode({**kept, "text": example.query, "gold": example.gold}, doseq=True)
        lists = "".join(_list(answerer, answerer.lists[number]) for answerer in answerers)
        cards.append(
            f'<section class="lx-example"><div><a href="{escape(f"{page}?{query}")}" '
            f'target="_self">{escape(example.query)}</a></div><div class="lx-muted">'
            f"{escape(example.relation)}, {escape(SOURCES[example.source])} · right answer "
            f'<b>{escape(example.gold)}</b></div><div class="lx-lists">{lists}</div></section>'
        )
    return f'<div class="lx-examples">{"".join(cards)}</div>'


def _list(answerer: Answerer, ranked: RankedList) -> str:
    over = f"<br>{escape(ranked.over)}" * (ranked.over != answerer.over)
    rows = "".join(
        f'<tr class="{"gold" if index == ranked.right else ""}"><td class="word">{escape(word)}'
        f'</td><td class="num">{rounding.fixed(log_prob, 1)}</td></tr>'
        for index, (word, log_prob) in enumerate(ranked.words)
    )
    return (
        f'<div><div class="lx-who" title="{escape(answerer.title)}">'
        f'<span class="lx-dot" style="background:{answerer.colour}"></span> '
        f"{escape(answerer.title.partition(' (')[0])}</div>"
        f"<table class='lx'><tbody>{rows}</tbody></table>"
        f'<div class="lx-muted">right answer: {escape(ranked.gold)}{over}</div></div>'
    )


def _draw_export(
    examples: Sequence[PublishedExample],
    answerers: Sequence[Answerer],
    columns: dict[str, Column[Answers]],
    request: ClozeRequest,
) -> None:
    """Draw a caption on the ranked words and their probabilities, and the export."""
    request = replace(request, models=tuple(columns))
    first = [column.answer[0] for column in columns.values()]
    candidates = cache.candidates_of(request)
    st.caption(
        predictions.describe_candidates(candidates, [one.n_candidates for one in first])
        + " The number after a word is its log-probability (natural logarithm), over the words "
        "that the model's box names; a list over other words names them. BERT-large's numbers are "
        "from the paper, which ranked other candidates."
    )
    made = made_with(field_values(request), first)
    how = requests_for(examples, request)
    draw_export("paper-examples", lambda: _rows(examples, answerers), made, how)


def _rows(examples: Sequence[PublishedExample], answerers: Sequence[Answerer]) -> Rows:
    return [
        {
            "source": example.source,
            "relation": example.relation,
            "query": example.query,
            "gold": example.gold,
            "model": answerer.name,
            "rank": rank,
            "word": word,
            "log_prob": log_prob,
            "over": ranked.over,
            "is_gold": ranked.right == rank - 1,
            "gold_place": ranked.gold,
        }
        for number, example in enumerate(examples)
        for answerer in answerers
        for ranked in (answerer.lists[number],)
        for rank, (word, log_prob) in enumerate(ranked.words, start=1)
    ]
