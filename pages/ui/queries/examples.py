"""Examples: the queries of LAMA's Table 3 with the answers of chosen models and BERT-large.

The chosen models are queried with the open example; with all of them after a click, a few in each
run of a fragment, so that answers appear one by one and the visitor can stop.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from html import escape

import pandas as pd
import streamlit as st

from lama_core.models.sources.catalog import find_model
from lama_core.models.sources.locations import is_here
from lama_core.progress import Pace, Progress
from lama_core.progress import describe as describe_progress
from lama_core.published import SOURCES, PublishedExample, published_examples
from lama_core.queries.blank_answers import ModelAnswer, marked_answer
from lama_core.queries.cloze import ClozeRequest, fill
from lama_core.requests import field_values
from lama_core.rounding import counted, fixed
from lama_core.views.colours import PUBLISHED
from pages.ui.queries import widgets
from pages.ui.queries.form import DrawField, Form
from pages.ui.queries.tab import describe_kind
from pages.ui.shared import cache, links, predictions, screens, url_state
from pages.ui.shared.export import draw_export, made_with
from pages.ui.shared.messages import errors_shown
from pages.ui.shared.model_columns import query_models
from pages.ui.shared.query_queue import if_cached, queue_last

TOP_K = 5
WIDTH, GAP = 1240, 32  # of the page and between columns, in pixels
ASKING = "examples asked"  # in the session: the requests of all queries, and their pace
AT_A_TIME = 1.0  # seconds of querying until the answers are shown
ALL = "both"
PAPER_MODEL = "BERT-large, published"
Known = dict[str, list[ModelAnswer | None]]  # model -> its answer to each example, if cached


@dataclass(frozen=True, slots=True)
class RankedList:
    """The best words for one query.

    Attributes:
        words: Words and their log-probabilities, best first.
        right: Index of the gold answer in `words`, or None.
        gold: The gold answer's rank, as a text.
        over: The words over which the probabilities sum to 1, as a text.
        begins: Word -> the longer word that the model makes of it.
        outside: The likelier token that isn't ranked, as text; empty if there is none.
    """

    words: tuple[tuple[str, float], ...]
    right: int | None
    gold: str
    over: str
    begins: Mapping[str, str] = field(default_factory=dict)
    outside: str = ""

    @property
    def is_right(self) -> bool | None:
        """Whether the gold answer is first; None if a likelier token isn't ranked."""
        return None if self.right == 0 and self.outside else self.right == 0


def requests_for(
    examples: Sequence[PublishedExample], request: ClozeRequest
) -> tuple[ClozeRequest, ...]:
    """The requests that give the models' best words for the examples, with a request's options."""
    return tuple(replace(request, text=one.query, gold=one.gold) for one in examples)


def draw_published_examples() -> None:
    """Draw the tab."""
    published = published_examples()
    titles = {example.source: SOURCES[example.source] for example in published}
    st.caption(
        "The queries of Table 3 of Petroni et al. 2019, the paper that introduced LAMA, with "
        "BERT-large's published answers next to those of your models."
    )
    query_box, source_box = st.columns([5, 3], vertical_alignment="bottom")
    models_box, more = st.columns([5, 3], vertical_alignment="bottom")
    source = url_state.pick("Facts of", (ALL, *titles.values()), key="of_source", place=source_box)
    examples = [one for one in published if source in (ALL, titles[one.source])]
    queries = [one.query for one in examples]
    chosen = queries.index(url_state.choose("Query", queries, key="example", place=query_box))

    def layout(draw: DrawField) -> None:
        with models_box:
            draw("models")
        with more, st.popover("Options", icon=":material/tune:"):
            widgets.draw_cloze_options(draw)

    options = Form(ClozeRequest, {"models": widgets.MODELS, **widgets.CLOZE_OPTIONS}, layout)
    request = options.draw(text=published[0].query, top_k=TOP_K)
    request.check()
    _draw_example(examples[chosen], request)
    requests = requests_for(examples, request)
    asks = st.session_state.get(ASKING, (None,))[0] == requests
    draw = partial(_draw_answers, examples, request, requests)
    (st.fragment(draw, run_every=AT_A_TIME / 2) if asks else draw)()


def _draw_example(example: PublishedExample, request: ClozeRequest) -> None:
    """Draw an example with BERT-large's and the models' answers side by side."""
    (request,) = requests_for([example], request)
    text = predictions.with_blank(example.query.split("___"))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.html(
            f'<div class="lx-sentence">{text} <span class="lx-muted">{escape(example.relation)}, '
            f"{escape(SOURCES[example.source])}</span></div>",
            width="content",
        )
        kept = links.params_without(("tab", "of_source", "example"))
        params = kept | {"text": example.query, "gold": example.gold}
        links.draw_link("Edit and inspect", "edit", screens.ASK, params)
    n = max(1, min(4, len(request.models)))
    width = (WIDTH - n * GAP) / (n + 1) + GAP / 2
    with st.container(key="published"):
        theirs, ours = st.columns([width, WIDTH - width], gap="medium")
    with theirs.container(border=True, height="stretch"):
        predictions.draw_head(PAPER_MODEL, "BERT-large", PUBLISHED, "masked · published answers")
        st.html(_list(_published(example), example.gold))
    with ours:
        query_models(
            request.models,
            lambda name, here: cache.answer(fill.kind, replace(request, models=here), name),
            describe_kind,
            draw=lambda column: st.html(_list(_ranked_list(column.answer), example.gold)),
        )


def _draw_answers(
    examples: Sequence[PublishedExample],
    request: ClozeRequest,
    requests: tuple[ClozeRequest, ...],
) -> None:
    here = tuple(name for name in request.models if is_here(find_model(name)))
    asking, pace = st.session_state.get(ASKING, (None, Pace()))
    with errors_shown():
        known = _answers(requests, here)
        done = sum(one is not None for answers in known.values() for one in answers)
        total = len(requests) * len(here)
        rights = {"BERT-large": [_published(one).is_right for one in examples]}
        for name, answers in known.items():
            right = [_ranked_list(one).is_right for one in answers if one is not None]
            if len(right) == len(examples):
                rights[predictions.short_title(name)] = right
        counts = (f"{escape(title)} <b>{each.count(True)}</b>" for title, each in rights.items())
        predictions.draw_conclusion(
            f"Right answer first, of {len(examples)} queries: {', '.join(counts)}"
        )
        if done < total:
            _draw_asking(requests, Progress("Received", done, total, "answers"), pace)
        elif asking == requests:
            del st.session_state[ASKING]
            st.rerun()
        opened = st.session_state.get("example")
        queries = [one.query for one in examples]
        table, columns = _make_table(examples, known)
        url_state.draw_choice_table(table, queries, key="example", column_config=columns)
        if st.session_state.get("example") != opened:
            st.rerun()
        if done:
            _draw_export(examples, known, replace(request, models=here))
        if asking == requests:
            _answers(requests, here, seconds=AT_A_TIME)  # drawn by the next run of the fragment


def _answers(
    requests: Sequence[ClozeRequest], here: tuple[str, ...], seconds: float = 0.0
) -> Known:
    """The models' cached answers; others are asked until that many seconds have passed."""
    until = time.monotonic() + seconds
    known: Known = {name: [None] * len(requests) for name in here}
    for number, request in enumerate(requests):
        for name in here:
            ask = partial(cache.answer, fill.kind, replace(request, models=here), name)
            found = if_cached(ask)
            if found is None and seconds and time.monotonic() < until:
                queue_last()
                found = ask()
            known[name][number] = found
    return known


def _draw_asking(requests: tuple[ClozeRequest, ...], step: Progress, pace: Pace) -> None:
    """Draw the button that asks all queries, or while they are asked the progress and Stop."""
    if st.session_state.get(ASKING, (None,))[0] != requests:
        st.button(
            f"Ask all {len(requests)} queries",
            key="ask examples",
            icon=":material/play_arrow:",
            on_click=st.session_state.update,
            args=({ASKING: (requests, Pace())},),
        )
        return
    pace.see(step)
    asked = (
        f"{counted(len(requests), 'query')}, {counted((step.total or 0) // len(requests), 'model')}"
    )
    st.progress(step.done / (step.total or 1), f"{describe_progress(step, pace)} ({asked})")
    if st.button("Stop", key="stop examples", icon=":material/stop:"):
        del st.session_state[ASKING]
        st.rerun()


def _make_table(
    examples: Sequence[PublishedExample], known: Known
) -> tuple[pd.DataFrame, dict[str, str]]:
    """A row per query: the right answer and each first answer; and the columns' labels."""
    columns: dict[str, list[str]] = {
        "query": [one.query for one in examples],
        "right answer": [one.gold for one in examples],
        "BERT-large": [_first(_published(one)) for one in examples],
    }
    labels = {}
    for name, answers in known.items():
        if any(answers):
            columns[name] = [_first(_ranked_list(one)) if one else "–" for one in answers]
            labels[name] = predictions.short_title(name)
    return pd.DataFrame(columns), labels


def _first(ranked: RankedList) -> str:
    word = ranked.words[0][0]
    return marked_answer(word, ranked.begins.get(word), ranked.is_right, ranked.outside)


def _published(example: PublishedExample) -> RankedList:
    return RankedList(
        example.answers,
        example.rank - 1 if example.rank else None,
        f"rank {example.rank}" if example.rank else "not among the five",
        "over BERT's vocabulary",
    )


def _ranked_list(answer: ModelAnswer) -> RankedList:
    """A model's list. `right` is None for a gold answer that isn't a candidate."""
    blank = answer.blanks[0]
    gold = blank.gold
    right, rank = None, ""
    if gold is not None:
        if gold.in_candidates and gold.proposed and gold.rank <= len(blank.predictions):
            right = gold.rank - 1
        note = "" if gold.in_candidates else ", not among the candidates"
        note += ", not proposed" * (not gold.proposed)
        value = gold.shown_log_prob()
        if gold.log_prob is not None:
            value = f"log-prob. {fixed(gold.log_prob, 1)}"  # as in the list
        rank = f"rank {gold.rank:,}, {value}{note}"
    words = tuple((item.token, item.log_prob) for item in blank.predictions)
    begins = {item.token: item.begins for item in blank.predictions if item.begins}
    outside = blank.describe_outside()
    return RankedList(words, right, rank, f"over {blank.shown_over()}", begins, outside)


def _list(ranked: RankedList, gold: str) -> str:
    """HTML of a published list."""
    rows = "".join(
        f'<tr class="{"gold" if index == ranked.right else ""}"><td class="rank">{index + 1}</td>'
        f'<td class="word">{escape(word)}{predictions.longer_word(ranked.begins.get(word))}</td>'
        f'<td class="num muted">{fixed(log_prob, 1)}</td></tr>'
        for index, (word, log_prob) in enumerate(ranked.words)
    )
    likelier = f'<div class="lx-muted">Likelier: {escape(ranked.outside)}</div>'
    return (
        likelier
        * bool(ranked.outside)
        + '<table class="lx"><thead><tr><th>#</th><th>word</th><th class="num">log-prob.</th></tr>'
        f'</thead><tbody>{rows}</tbody></table><div class="lx-gold">Right answer '
        f"<b>{escape(gold)}</b>: {predictions.unbroken(escape(ranked.gold))}</div>"
    )


def _draw_export(examples: Sequence[PublishedExample], known: Known, request: ClozeRequest) -> None:
    """Draw a caption on the ranked words and their probabilities, and the export."""
    numbers = [n for n in range(len(examples)) if all(each[n] for each in known.values())]
    if not numbers:
        return
    asked = [examples[number] for number in numbers]
    found = {name: [one for one in each if one is not None] for name, each in known.items()}
    first = [each[0] for each in found.values()]
    sizes = {name: each[0].n_candidates for name, each in found.items()}
    golds = [one.blanks[0].gold for one in next(iter(found.values()))]
    outside = sum(gold is not None and not gold.in_candidates for gold in golds)
    no_candidate = f" In {outside} of these queries the right answer isn't among the candidates."
    st.caption(
        predictions.describe_candidates(cache.candidates_of(request), sizes)
        + no_candidate * bool(outside)
        + " Log-probabilities are natural logarithms. BERT-large's are from the paper, which "
        "ranked other candidates. →: how the model continues the word. Tick a row, or tap a "
        "card, to open its query."
    )
    lists = [
        {PAPER_MODEL: _published(examples[number])}
        | {name: _ranked_list(one) for name, each in known.items() if (one := each[number])}
        for number in numbers
    ]
    made = made_with(field_values(request), first)
    how = requests_for(asked, request)
    draw_export(
        "paper-examples",
        lambda: [
            {
                "source": example.source,
                "relation": example.relation,
                "query": example.query,
                "gold": example.gold,
                "model": name,
                "rank": rank,
                "word": word,
                "log_prob": log_prob,
                "over": ranked.over,
                "is_gold": ranked.right == rank - 1,
                "gold_place": ranked.gold,
                "not_ranked": ranked.outside,
            }
            for example, answers in zip(asked, lists, strict=True)
            for name, ranked in answers.items()
            for rank, (word, log_prob) in enumerate(ranked.words, start=1)
        ],
        made,
        how,
    )
