"""Examples: the queries of LAMA's Table 3, asked now, next to BERT-large's answers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from html import escape
from urllib.parse import urlencode

import streamlit as st

from lama_core import rounding
from lama_core.models.protocols import KINDS
from lama_core.papers.published import SOURCES, PublishedExample, published_examples
from lama_core.probes.cloze.query import ModelAnswer
from lama_core.scoring.shared_fields import ClozeSettings
from pages.ui.shared import cache, links, predictions, screens, url_state
from pages.ui.shared.colours import PUBLISHED, model_colours
from pages.ui.shared.export import Rows, draw_export, made_with
from pages.ui.shared.model_columns import Column, ask_each

TOP_K = 5
ALL = "both"
PAPER_MODEL = "BERT-large, published"
# What stands in the address for this tab, or for a sentence, alone.
OWN = ("tab", "of_source", "text", "gold")
PYTHON = """from lama_core.scoring.blanks import parse_query
from lama_core.scoring.shared_fields import ClozeSettings, choose_candidates, load_models
from lama_core.papers.published import published_examples
from lama_core.probes.cloze.query import ask_all

settings = {settings}
models = load_models(settings)
candidates = choose_candidates(settings, models)
options = {{"context": settings.context, "n_rescored": settings.n_rescored,
           "renormalise": {renormalise}}}
answers = [
    ask_all(models, parse_query(one.query), candidates, gold=one.gold, **options)
    for one in published_examples()
]
"""

Answers = tuple[ModelAnswer, ...]


@dataclass(frozen=True, slots=True)
class Listed:
    """The best words for one query, with their log-probabilities.

    right: which of them is the gold, from 0; None where none is. gold: its rank, in words. over:
    what the probabilities are over, in words.
    """

    words: tuple[tuple[str, float], ...]
    right: int | None
    gold: str
    over: str


@dataclass(frozen=True, slots=True)
class Answerer:
    """Who answered, and what, an entry a query."""

    name: str
    title: str
    colour: str
    lists: tuple[Listed, ...]


def counted(lists: Sequence[Listed]) -> str:
    """How often the gold is first, and among the five, in words."""
    n = len(lists)
    first = sum(one.right == 0 for one in lists)
    among = sum(one.right is not None for one in lists)
    return f"The right answer is first in {first} of {n}, among the five in {among} of {n}."


def draw_paper() -> None:
    """The whole tab."""
    st.caption(
        "The queries of Table 3 of Petroni et al. 2019 with the five words that BERT-large put "
        "there, and the words of the models that you choose. ✓ marks the right answer. Click a "
        "query to ask it."
    )
    models_box, source_box, more = st.columns([5, 3, 1.4], vertical_alignment="bottom")
    with models_box:
        names = url_state.choose_models()
    titles = {one.source: SOURCES[one.source] for one in published_examples()}
    source = url_state.pick("Facts of", (ALL, *titles.values()), key="of_source", place=source_box)
    with more, st.popover("Options", icon=":material/tune:", width="stretch"):
        choice = url_state.choose_cloze_options(names, lists=False)
    choice.settings.check()
    examples = [one for one in published_examples() if source in (ALL, titles[one.source])]
    theirs = _published(examples)
    above, table = st.container(), st.empty()
    answerers = [theirs]
    with above:

        def draw(more: Answerer | None = None) -> None:
            answerers.extend([more] if more else [])
            table.html(_grid(examples, answerers))

        draw()
        columns = _ask(examples, choice, draw)
        st.caption(f"{PAPER_MODEL}: {counted(theirs.lists)}")
    if columns:
        settings = replace(choice.settings, models=tuple(columns))
        _draw_taken(examples, answerers, columns, settings, choice.renormalise)


def _ask(
    examples: Sequence[PublishedExample],
    choice: url_state.ClozeChoice,
    draw: Callable[[Answerer], None],
) -> dict[str, Column[Answers]]:
    """A box a model: how far it is, then how often it is right. Each query is a question.

    draw: is given a model's answers when it has them all.
    """
    colours = model_colours(choice.settings.models)

    def ask(name: str, here: tuple[str, ...]) -> Answers:
        settings, bar = replace(choice.settings, models=here), st.progress(0.0)
        found = []
        for number, one in enumerate(examples, start=1):
            answer = cache.cloze_answer(
                settings, name, one.query, one.gold, TOP_K, choice.renormalise
            )
            found.append(answer)
            bar.progress(number / len(examples), f"{number} of {len(examples)} queries")
        lists = tuple(map(_listed, found))
        draw(Answerer(name, url_state.title_of(name), colours[name], lists))
        return tuple(found)

    columns = ask_each(choice.settings.models, ask, _describe)
    for column in columns.values():
        column.place.caption(counted(tuple(map(_listed, column.answer))))
    return columns


def _describe(answers: Answers) -> str:
    """A model's kind, and in how many of the queries it is shown the left side only."""
    one, n = answers[0], len(answers)
    n_left = sum(answer.context == "left" for answer in answers)
    seen = f"sees the left side only in {n_left} of {n} queries"
    if n_left in (0, n):
        seen = predictions.CONTEXTS[one.context]
    return predictions.with_how(
        KINDS[one.kind].title, seen, precision=one.precision, device=one.device
    )


def _published(examples: Sequence[PublishedExample]) -> Answerer:
    lists = tuple(
        Listed(
            one.answers,
            one.rank - 1 if one.rank else None,
            f"rank {one.rank}" if one.rank else "not among the five",
            "over BERT's vocabulary",
        )
        for one in examples
    )
    return Answerer(PAPER_MODEL, PAPER_MODEL, PUBLISHED, lists)


def _listed(answer: ModelAnswer) -> Listed:
    """A model's list. A gold outside the candidates has a rank, and is none of the words."""
    blank = answer.blanks[0]
    gold = blank.gold
    right, said = None, ""
    if gold is not None:
        known = gold.in_candidates and gold.rank <= len(blank.predictions)
        right = gold.rank - 1 if known else None
        more = "" if gold.in_candidates else ", not among the candidates"
        said = f"rank {gold.rank:,}, {gold.shown_log_prob()}{more}"
    words = tuple((item.token, item.log_prob) for item in blank.predictions)
    return Listed(words, right, said, f"over {blank.shown_over()}")


def _grid(examples: Sequence[PublishedExample], answerers: Sequence[Answerer]) -> str:
    """All queries, each with a list a model; a list has the words, and the gold's place."""
    kept, page = links.kept(OWN), links.path_of(screens.ASK)
    cards = []
    for number, one in enumerate(examples):
        address = f"{page}?{urlencode({**kept, 'text': one.query, 'gold': one.gold}, doseq=True)}"
        lists = "".join(_list(answerer, answerer.lists[number]) for answerer in answerers)
        cards.append(
            f'<section class="lx-example"><div><a href="{escape(address)}" target="_self">'
            f'{escape(one.query)}</a></div><div class="lx-muted">{escape(one.relation)}, '
            f"{escape(SOURCES[one.source])} · right answer <b>{escape(one.gold)}</b></div>"
            f'<div class="lx-lists">{lists}</div></section>'
        )
    return f'<div class="lx-examples">{"".join(cards)}</div>'


def _list(who: Answerer, given: Listed) -> str:
    rows = "".join(
        f'<tr class="{"gold" if place == given.right else ""}"><td class="word">{escape(word)}'
        f'</td><td class="num">{rounding.fixed(log_prob, 1)}</td></tr>'
        for place, (word, log_prob) in enumerate(given.words)
    )
    return (
        f'<div><div class="lx-who" title="{escape(who.title)}">'
        f'<span class="lx-dot" style="background:{who.colour}"></span> '
        f"{escape(who.title)}</div><table class='lx'><tbody>{rows}</tbody></table>"
        f'<div class="lx-muted">gold: {escape(given.gold)}<br>{escape(given.over)}</div></div>'
    )


def _draw_taken(
    examples: Sequence[PublishedExample],
    answerers: Sequence[Answerer],
    columns: dict[str, Column[Answers]],
    settings: ClozeSettings,
    renormalise: bool,
) -> None:
    """Which words were ranked, what the probabilities are over, and what can be taken away."""
    first = [column.answer[0] for column in columns.values()]
    candidates, _ = cache.candidates_of(settings)
    st.caption(
        predictions.describe_candidates(candidates, [one.n_candidates for one in first])
        + " The number behind a word is its log-probability (natural logarithm), over what stands "
        "under the list. BERT-large's are the paper's, which ranked a list of its own."
    )
    made = made_with({"settings": settings, "renormalise": renormalise}, first)
    how = PYTHON.format(settings=settings, renormalise=renormalise)
    draw_export("paper-examples", lambda: _rows(examples, answerers), made, how)


def _rows(examples: Sequence[PublishedExample], answerers: Sequence[Answerer]) -> Rows:
    return [
        {
            "source": one.source,
            "relation": one.relation,
            "query": one.query,
            "gold": one.gold,
            "model": who.name,
            "rank": rank,
            "word": word,
            "log_prob": log_prob,
            "over": who.lists[number].over,
            "is_gold": who.lists[number].right == rank - 1,
            "gold_place": who.lists[number].gold,
        }
        for number, one in enumerate(examples)
        for who in answerers
        for rank, (word, log_prob) in enumerate(who.lists[number].words, start=1)
    ]
