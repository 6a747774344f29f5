"""Only these answers: typed words and phrases, ranked by the score of the filled sentence."""

from collections.abc import Sequence
from html import escape
from typing import cast

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from lama_core.glossary import explain
from lama_core.queries.answers import (
    MAX_RANKED,
    TIE,
    AskedAnswers,
    ModelRanking,
    RankedAnswer,
    RankRequest,
    Typed,
    rank,
)
from lama_core.queries.kind import Answer
from lama_core.rounding import counted, fixed
from lama_core.scoring.statement_scores import (
    AGGREGATES,
    PARTS,
    TOKENS_OF,
    answer_tokens,
    shown_tokens,
)
from pages.ui.queries import widgets
from pages.ui.queries.form import DrawField, Form
from pages.ui.queries.tab import Tab, describe_sums, describe_tokens
from pages.ui.shared import links, predictions, screens, url_state
from pages.ui.shared.messages import plain
from pages.ui.shared.model_columns import ModelColumn, reserve_line
from pages.ui.shared.token_strips import heat_scale, heat_strip

# Sentence, answers, right answer.
EXAMPLES = (
    (
        "The capital of France is ___.",
        ("Paris", "Lyon", "Marseille", "the city of London"),
        "Paris",
    ),
    (
        "The capital of Australia is ___.",
        ("Canberra", "Sydney", "Melbourne", "Adelaide"),
        "Canberra",
    ),
    (
        "The capital of Brazil is ___.",
        ("Brasília", "Rio de Janeiro", "São Paulo", "Buenos Aires"),
        "Brasília",
    ),
    (
        "Don Quixote was written by ___.",
        ("Miguel de Cervantes", "William Shakespeare", "Gabriel García Márquez"),
        "Miguel de Cervantes",
    ),
    (
        "Insulin is made in the ___.",
        ("pancreas", "liver", "adrenal glands", "thyroid gland"),
        "pancreas",
    ),
)
MOST_SHOWN = 20
KEPT = "answers of sentences"  # in the session


def kept_answers() -> dict[str, str]:
    """Sentence -> its answers, one per line: those of the examples, and proposed or typed ones."""
    first = {text: "\n".join(answers) for text, answers, _ in EXAMPLES}
    return cast(dict[str, str], st.session_state.setdefault(KEPT, first))


def _layout(draw: DrawField) -> None:
    url_state.SENTENCE.start(with_gold=False)
    (text,) = widgets.draw_with_ask(draw, "text", label="Rank")
    kept = kept_answers()
    known = kept.get(text, "")
    url_state.follow_query(text, {"answers": known or st.session_state.get("answers", "")})
    if "answers" not in st.query_params:
        links.set_param("answers", [st.session_state.setdefault("answers", known)])
    widgets.draw_chips(
        widgets.Example(text, {"text": text, "answers": "\n".join(answers), "right_answer": right})
        for text, answers, right in EXAMPLES
    )
    widgets.draw_in(draw, ("answers", "gold"), st.columns([3, 2], gap="medium"))
    kept[text] = st.session_state["answers"]
    widgets.draw_models_and_options(draw, "part", "aggregate", "hiding", "start_token", "precision")


FORM = Form(
    RankRequest,
    {
        "text": widgets.example_field(
            url_state.SENTENCE,
            "text",
            "Sentence with one blank",
            help="Write ___ (three underscores), [MASK], <mask> or [Y] where the answer is "
            "missing. The first letter is scored as a capital.",
        ),
        "answers": widgets.list_field(
            "answers",
            "Answers, one per line",
            first=(),
            between="\n",
            height=130,
            help=f"Words or phrases, at most {MAX_RANKED}.",
        ),
        "gold": widgets.gold_field(
            "text",
            "answers",
            "Right answer (optional)",
            key="right_answer",
            golds={text: gold for text, _, gold in EXAMPLES},
            help="Highlighted; its rank and margin are shown. The margin is its log-probability "
            "minus that of the best other answer.",
        ),
        "models": widgets.MODELS,
        "part": widgets.choice_field(
            "part", "Tokens that count", PARTS, help=explain("Tokens that count")
        ),
        "aggregate": widgets.choice_field(
            "aggregate", "Log-probabilities", AGGREGATES, help=explain("Sum and mean")
        ),
        "hiding": widgets.HIDING,
        "start_token": widgets.START_TOKEN,
        "precision": widgets.PRECISION,
    },
    _layout,
)


def _draw_ranking(asked: AskedAnswers, column: ModelColumn[ModelRanking]) -> None:
    """Draw a model's ranking with bars, the gold answer's rank, and each answer's tokens."""
    ranking, colour = column.answer, column.colour
    rows = [_row(one, colour) for one in ranking.answers]
    head = (
        f'<thead><tr><th>#</th><th>answer</th><th class="num" colspan="2" '
        f'title="of the {counted(ranking.n_ranked, "answer")}">share</th>'
        f'<th class="num {predictions.DETAIL}">'
        f"{'log-prob.' if asked.request.aggregate == 'sum' else 'mean log-prob.'}</th></tr></thead>"
    )
    table = f'<table class="lx">{head}<tbody>{"".join(rows[:MOST_SHOWN])}</tbody></table>'
    if rest := rows[MOST_SHOWN:]:
        table += (
            f"<details><summary>{len(rest)} more</summary>"
            f'<table class="lx">{head}<tbody>{"".join(rest)}</tbody></table></details>'
        )
    notes = "".join(f'<div class="lx-muted">{escape(one)}</div>' for one in ranking.notes())
    strips = "".join(
        f'<div class="lx-pair"><b>{escape(one.answer)}</b></div>{heat_strip(one.tokens, colour)}'
        for one in ranking.answers[:MOST_SHOWN]
    )
    st.html(
        f"{table}{_margin_line(ranking)}{notes}<details><summary>Tokens</summary>"
        f"{heat_scale(colour)}{strips}</details>"
    )


def _row(one: RankedAnswer, colour: str) -> str:
    score = fixed(one.score, 2) if one.score is not None else "no tokens"
    share = predictions.probability(one.prob) if one.rank is not None else ""
    hint = escape("\n".join(shown_tokens(answer_tokens(one.tokens))))
    return (
        f'<tr class="{"gold" if one.is_gold else ""}" title="{hint}">'
        f'<td class="rank">{one.ranks}</td><td class="word">{escape(one.answer)}</td>'
        f"{predictions.bar_cell(one.prob, f'background:{colour}')}"
        f'<td class="num" title="{one.prob:.2g}, log-prob. {score}">{share}</td>'
        f'<td class="num muted {predictions.DETAIL}">{score}</td></tr>'
    )


def _margin_line(ranking: ModelRanking) -> str:
    """The gold answer's rank and margin; without a gold answer, the lead of the first answer."""
    margin, gold = ranking.margin, ranking.gold
    equal = margin is not None and abs(margin) <= TIE
    if not ranking.has_gold and margin is not None:
        lead = "No answer leads" if equal else f"The first answer leads by {fixed(margin, 2)}"
        return f'<div class="lx-gold {predictions.DETAIL}">{lead} in log-prob.</div>'
    if gold is None:
        return ""
    place = "no rank, as this model has no tokens for it"
    if gold.rank:
        place = f"rank <b>{gold.ranks}</b> of {ranking.n_ranked}"
    if equal:
        place += ", equal to the best other answer"
    elif margin is not None:
        than = "below the first" if margin < 0 else "above the second"
        place += predictions.unbroken(f", log-prob. {fixed(abs(margin), 2)} {than}")
    return (
        f'<div class="lx-gold {predictions.DETAIL}" title="margin: its log-probability minus that '
        f'of the best other answer">Right answer <b>{escape(gold.answer)}</b>: {place}</div>'
    )


def _draw_notes(
    answer: Answer[RankRequest, Typed, ModelRanking], lines: Sequence[DeltaGenerator], _: object
) -> None:
    """Draw the models' first answers into the line above, and how the answers are scored."""
    request, gold = answer.asked.request, answer.asked.shared[2]
    tied = {one.name: [row for row in one.answers if row.rank == 1] for one in answer.models}
    firsts = {name: ", ".join(row.answer for row in rows) for name, rows in tied.items() if rows}
    # An answer that shares the first rank is neither right nor wrong.
    rights = {name: bool(rows[0].is_gold) for name, rows in tied.items() if gold and len(rows) == 1}
    lines[0].html(f"<div>{predictions.describe_first_answers(firsts, rights)}</div>")
    st.caption(
        "Share: softmax of the typed answers' log-probabilities, so it isn't a probability. "
        f"Log-probabilities: natural logarithms, the {request.aggregate} over "
        f"{TOKENS_OF[request.part]} (“{plain(answer.models[0].answers[0].statement)}”)."
        f"{describe_sums(answer.models)}"
    )


ANSWERS = Tab(
    kind=rank.kind,
    name="Only these answers",
    opens=screens.ONLY_THESE,
    caption="Type your own answers of any length. Each model ranks them by the filled sentence.",
    form=FORM,
    draw=_draw_ranking,
    describe=describe_tokens,
    language_of=lambda request: request.text,
    above=lambda _: [reserve_line("ranking")],
    below=_draw_notes,
    exported="answers",
    has_details=True,
)
