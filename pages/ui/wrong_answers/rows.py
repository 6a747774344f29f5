"""The rows of Wrong answers, one fact opened, and the words that models fall back on."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from lama_core.glossary import explain
from lama_core.metrics.fact_answers import JoinedAnswers, fallbacks
from lama_core.models.protocols import KINDS
from lama_core.probes.cloze.query import BlankAnswer, Gold, Over, Prediction
from lama_core.runs.info import RunInfo
from lama_core.runs.tags import SEPARATOR
from pages.ui.shared import cache, charts, links, predictions, screens, visitors
from pages.ui.shared.export import draw_export
from pages.ui.shared.messages import plain
from pages.ui.shared.model_columns import boxes_of
from pages.ui.shared.run_choice import RunChoice
from pages.ui.shared.url_state import BOUND, DEFAULT_MODELS
from pages.ui.wrong_answers.answer_scores import draw_scores_of_answers
from pages.ui.wrong_answers.filters import SORTS, FactsChoice, narrow
from pages.ui.wrong_answers.tags import draw_fact_tags, draw_picked_tags

PAGE_SIZE = 100
N_PREDICTIONS = 10
N_WORDS = 15
Ints = NDArray[np.int64]


def sort_rows(joined: JoinedAnswers, rows: Ints, chosen: FactsChoice) -> Ints:
    """The rows in the chosen order; ties keep the order of the data, unknown values come last."""
    focus = joined.runs[chosen.filter.of]
    keys = {
        "best rank first": focus.rank,
        "worst rank first": -focus.rank,
        "most confident first": -focus.confidence,
        "least confident first": focus.confidence,
        "most frequent gold first": -joined.facts["object_count"].to_numpy(),
    }
    if chosen.sort not in keys:
        return rows
    return rows[np.argsort(keys[chosen.sort][rows], kind="stable")]


def fact_key(joined: JoinedAnswers, row: int) -> str:
    """What names a row in the address bar: the fact, and which of its prompts."""
    line = joined.facts.iloc[row]
    return f"{line['fact_id']}#{line['prompt']}"


def find_fact(joined: JoinedAnswers, key: str) -> int | None:
    """The row of that key; None if it isn't among them."""
    name, _, prompt = key.rpartition("#")
    facts = joined.facts
    at = np.flatnonzero((facts["fact_id"] == name) & (facts["prompt"].astype(str) == prompt))
    return int(at[0]) if len(at) else None


def whole_answers(joined: JoinedAnswers, rows: Ints, choice: RunChoice) -> dict[int, list[str]]:
    """What wrong answers of left-to-right models begin, a text a row, empty where they are whole.

    By the run's number; only of models that are here.
    """
    found = {}
    for number, info in enumerate(choice.runs):
        if not cache.goes_on(info):
            continue
        run = joined.runs[number]
        wrong = [at for at, row in enumerate(rows) if run.at[row] >= 0 and run.rank[row] > 1]
        queries = joined.facts["query"].iloc[rows[wrong]].astype(str)
        answers = pd.Series(run.answer[rows[wrong]]).astype(str)
        whole = cache.whole_words(
            info.model, info.precision, info.fold_case, tuple(queries), tuple(answers)
        )
        found[number] = [""] * len(rows)
        for at, word in zip(wrong, whole, strict=True):
            found[number][at] = word or ""
    return found


def make_table(
    joined: JoinedAnswers,
    rows: Ints,
    of: int,
    choice: RunChoice,
    whole: Mapping[int, Sequence[str]] | None = None,
) -> pd.DataFrame:
    """What is shown of some rows: the fact, and for each run its answer and the gold's place.

    of: the run whose tags are shown, if it has any. whole: as `whole_answers` gives them.
    """
    facts = joined.facts.iloc[rows]
    labels = choice.labels
    columns: dict[str, Any] = {
        "subject": facts["subject"].astype(str).to_numpy(),
        "relation": [labels.get(str(name), str(name)) for name in facts["relation"]],
        "gold": facts["object"].astype(str).to_numpy(),
        "gold in data": facts["object_count"].to_numpy(),
    }
    if facts["prompt"].any():
        columns["query"] = facts["query"].to_numpy()  # the same fact is asked in several ways
    tags = joined.tags(of)
    if any(tags):
        columns["tags"] = [list(tags[row]) for row in rows]
    for number, name in enumerate(choice.names):
        run = joined.runs[number]
        right = joined.right(number, choice.k)[rows]
        answers = pd.Series(run.answer[rows]).astype(object)
        reasons = pd.Series(run.excluded[rows]).astype(object)
        marked = np.where(right & (choice.k == 1), answers.astype(str) + " ✓", answers)
        if whole and number in whole:
            longer = pd.Series(list(whole[number]), dtype=object)
            marked = np.where(longer != "", answers.astype(str) + " → " + longer, marked)
        left_out = "left out: " + reasons.astype(str)
        unasked = left_out.where(reasons.notna(), None)
        columns[f"{name} answer"] = np.where(answers.notna(), marked, unasked)
        columns[f"{name} prob"] = run.confidence[rows]
        columns[f"{name} rank"] = run.rank[rows]
        columns[f"{name} log-prob"] = run.log_prob[rows]
        if run.run.info.ranks_statements:
            columns[f"{name} margin"] = run.margin[rows]
    return pd.DataFrame(columns)


def export_table(joined: JoinedAnswers, rows: Ints, choice: RunChoice) -> pd.DataFrame:
    """The same to be taken away: plain values, the sentence that was asked, a column a reason."""
    facts = joined.facts.iloc[rows]
    columns: dict[str, Any] = {"fact_id": facts["fact_id"].to_numpy()}
    for name in ("relation", "source", "type", "subject", "object", "query"):
        columns[name] = facts[name].astype(object).to_numpy()
    columns["object_count"] = facts["object_count"].to_numpy()
    for number, (name, run) in enumerate(zip(choice.names, joined.runs, strict=True)):
        tags = joined.tags(number)
        columns[f"{name} tags"] = [SEPARATOR.join(tags[row]) for row in rows]
        columns[f"{name} answer"] = pd.Series(run.answer[rows]).astype(object)
        columns[f"{name} prob"] = run.confidence[rows].astype(float)
        columns[f"{name} rank"] = pd.array(run.rank[rows]).astype("Int64")
        columns[f"{name} log_prob"] = run.log_prob[rows].astype(float)
        if run.run.info.ranks_statements:
            columns[f"{name} margin"] = run.margin[rows].astype(float)
        columns[f"{name} left out"] = pd.Series(run.excluded[rows]).astype(object)
    return pd.DataFrame(columns)


def draw_rows(joined: JoinedAnswers, rows: Ints, chosen: FactsChoice, choice: RunChoice) -> None:
    """One page of rows; the one that is picked opens next to them, or several are tagged."""
    sort_box, more_box, pages_box = st.columns([2, 3, 4], vertical_alignment="bottom")
    switches = more_box.container(horizontal=True)
    sort = sort_box.selectbox(
        "Order", SORTS, key="sort", bind=BOUND, help=f"Ranks and probabilities of {chosen.of}."
    )
    chosen = replace(chosen, sort=sort)
    several = visitors.may("manage") and switches.toggle(
        "Tag several", key="several", help="Pick rows of the table and put the same tags on them."
    )
    go_on = any(map(cache.goes_on, choice.runs)) and switches.toggle(
        "Whole words",
        key="whole",
        bind=BOUND,
        help="A left-to-right model's wrong answer may be the first token of a longer word: `new` "
        "of New York. On: the model is asked how each goes on (of the page that is shown).",
    )
    n_pages = max(1, -(-len(rows) // PAGE_SIZE))
    page = 1
    if n_pages > 1:
        with pages_box, st.container(horizontal=True, horizontal_alignment="right"):
            page = min(st.pagination(n_pages, key="page", bind=BOUND), n_pages)
    rows = sort_rows(joined, rows, chosen)
    shown = rows[(page - 1) * PAGE_SIZE : page * PAGE_SIZE]
    with st.spinner("Asking how the answers go on", show_time=True):
        whole = whole_answers(joined, shown, choice) if go_on else None
    table = make_table(joined, shown, chosen.filter.of, choice, whole)
    number = st.column_config.NumberColumn
    config: dict[str, Any] = {
        "gold in data": number(
            "frequency", help="Facts of the relation with this gold in the data."
        ),
        "subject": st.column_config.TextColumn(pinned=True),
        "gold": st.column_config.TextColumn("right answer"),
        "tags": st.column_config.ListColumn(help=f"Kept with the run of {chosen.of}."),
    }
    for name in choice.names:
        config |= {
            f"{name} answer": st.column_config.TextColumn(name, help="The model's first answer."),
            f"{name} prob": number("prob.", format="%.3f", help="Probability of that answer."),
            f"{name} margin": number("margin", format="%.2f", help=explain("Margin")),
            f"{name} rank": number("rank", format="localized"),
            f"{name} log-prob": number("its log-prob.", format="%.2f"),
        }
    if len(set(table["relation"])) == 1 and len(choice.relations) == 1:
        table = table.drop(columns="relation")
    if not len(table):
        st.info("No fact passes these filters: loosen one.", icon=":material/filter_alt_off:")
        return
    widget = f"facts {hash(shown.tobytes())} {'|'.join(choice.names)}{' several' * several}"

    def open_row() -> None:
        picked = st.session_state[widget]["selection"]["rows"]
        if picked:
            st.query_params["fact"] = fact_key(joined, int(shown[picked[0]]))

    key = st.query_params.get("fact", "")
    row = find_fact(joined, key) if key and not several else None
    with st.container(key="facts-and-panel"):
        list_box, panel = st.columns([3, 2]) if row is not None else (st.container(), None)
    event: Any = list_box.dataframe(
        table,
        hide_index=True,
        column_config=config,
        key=widget,
        on_select="rerun" if several else open_row,
        selection_mode="multi-row" if several else "single-row",
        placeholder="",
        height=600 if len(table) > 15 else "content",
    )
    if several:
        picked = [int(shown[at]) for at in event["selection"]["rows"] if at < len(shown)]
        draw_picked_tags(joined, picked, chosen)
    elif row is not None and panel is not None:
        with panel:
            draw_fact(joined, row, rows, chosen, choice)
    made = choice.made() | describe_filter(chosen)
    lines = python_of(chosen, choice)
    draw_export("facts", lambda: export_table(joined, rows, choice), made, lines)


def _draw_neighbours(joined: JoinedAnswers, row: int, rows: Ints) -> None:
    """Buttons to the facts before and after this one, in the order of the list, and to close it."""
    at = np.flatnonzero(rows == row)
    place = int(at[0]) if len(at) else None
    with st.container(horizontal=True, vertical_alignment="center"):
        for label, icon, step in (("Previous", "arrow_back", -1), ("Next", "arrow_forward", 1)):
            there = None if place is None else place + step
            inside = there is not None and 0 <= there < len(rows)
            if st.button(
                f"{label} fact", icon=f":material/{icon}:", type="tertiary", disabled=not inside
            ):
                assert there is not None
                st.query_params["fact"] = fact_key(joined, int(rows[there]))
                st.rerun()
        if place is not None:
            st.caption(f"{place + 1:,} of {len(rows):,}", width="content")
        if st.button("Close", icon=":material/close:", type="tertiary"):
            del st.query_params["fact"]
            st.rerun()


def draw_fact(
    joined: JoinedAnswers, row: int, rows: Ints, chosen: FactsChoice, choice: RunChoice
) -> None:
    """One fact: the query, its tags, and each run's ten best answers.

    rows: of the list that it is opened from, in their order.
    """
    fact = joined.facts.iloc[row]
    gold = str(fact["object"])
    with st.container(border=True):
        _draw_neighbours(joined, row, rows)
        with st.container(horizontal=True, vertical_alignment="center"):
            relation = choice.labels.get(str(fact["relation"]), str(fact["relation"]))
            st.markdown(
                f"**{plain(fact['query'])}**  \n{plain(str(fact['subject']))} · {plain(relation)} "
                f"· right answer **{plain(gold)}**"
            )
            if fact["query"] and st.button("Ask it", icon=":material/edit_note:", type="primary"):
                named = (run.model for run in choice.runs if run.model_kind in KINDS)
                models = tuple(dict.fromkeys(named))
                asked = () if models == DEFAULT_MODELS else models
                link = {"text": str(fact["query"]), "gold": gold, "models": asked}
                links.go(screens.ASK, link)
        draw_fact_tags(joined, row, chosen)
        for number in range(len(choice.names)):
            with st.container():
                _draw_one(joined, row, number, choice, gold)


def _draw_one(joined: JoinedAnswers, row: int, number: int, choice: RunChoice, gold: str) -> None:
    run, name = joined.runs[number], choice.names[number]
    at = int(run.at[row])
    of_words = not choice.runs[number].ranks_statements
    detail = f"{choice.runs[number].prompts}{' prompts' * of_words}, {choice.ranking} rank"
    predictions.draw_head(choice.runs[number].model, name, choice.colours[name], detail)
    if at < 0:
        st.caption("This run didn't ask it.")
        return
    if np.isnan(run.rank[row]):
        st.caption(f"Left out: {plain(str(run.excluded[row]))}.")
        return
    top = run.run.top
    given = tuple(
        Prediction(place, str(word), float(log_prob), float(np.exp(log_prob)))
        for place, (word, log_prob) in enumerate(
            zip(top.words[at], top.log_probs[at], strict=True), start=1
        )
        if word is not None
    )[:N_PREDICTIONS]
    if cache.goes_on(choice.runs[number]):
        with st.spinner("Asking how the answers go on", show_time=True):
            given = _continued(given, str(joined.facts["query"].iloc[row]), choice.runs[number])
    info = choice.runs[number]
    if info.model_kind not in KINDS and np.isnan(run.log_prob[row]):
        if given:
            answer = BlankAnswer(given, over=_over(info))
            predictions.draw_answers(answer, choice.colours[name])
        st.caption(
            f"The right answer was not found: it comes after all other words, at rank "
            f"{int(run.rank[row]):,}."
        )
        return
    mark = Gold(gold, int(run.rank[row]), float(run.log_prob[row]), (gold,), True)
    answer = BlankAnswer(given, mark, over=_over(info))
    predictions.draw_answers(answer, choice.colours[name])
    if info.ranks_statements:
        draw_scores_of_answers(run, row, gold, choice.colours[name], name, choice)


def _over(info: RunInfo) -> Over:
    """What the probabilities of a run's answers sum to one over."""
    if info.ranks_statements:
        return "answers"
    if info.model_kind not in KINDS:
        return "found"
    return "rescored" if info.model_kind == "causal" and info.context == "both" else "vocabulary"


def _continued(given: tuple[Prediction, ...], query: str, info: RunInfo) -> tuple[Prediction, ...]:
    words = tuple(item.token for item in given)
    queries = (query,) * len(words)
    whole = cache.whole_words(info.model, info.precision, info.fold_case, queries, words)
    return tuple(replace(item, begins=word) for item, word in zip(given, whole, strict=True))


def draw_fallbacks(
    joined: JoinedAnswers, rows: Ints, chosen: FactsChoice, choice: RunChoice
) -> None:
    """The words that each model gives when it is wrong; a click shows the facts."""
    one, several = ("answer", "Answers") if choice.all_statements else ("word", "Words")
    st.markdown(f"### {several} that a model falls back on")
    st.caption(
        f"The most frequent wrong first answers on the facts chosen above. Where one {one} takes a "
        "large share, the model answers the relation and not the subject. Click a bar to see the "
        "facts."
    )
    table = fallbacks(joined, rows, n=N_WORDS)
    if table.empty:
        st.info("No model is wrong on these facts.", icon=":material/check:")
        return
    for number, (name, box) in enumerate(boxes_of(choice.names, per_row=3, border=False).items()):
        with box:
            st.markdown(f"**{plain(name)}**")
            points = charts.show(
                charts.words(table[table["number"] == number], choice.colours[name]),
                f"words {name}",
                title=f"Wrong answers of {name}",
                footnote="",
                picture=choice.picture,
            )
            for point in points:
                narrow(of=name, wrong=[name], answer=str(point["customdata"][0]), right=[])
    named = table.assign(name=[choice.names[number] for number in table["number"]])
    draw_export(
        "wrong-answers",
        lambda: named.drop(columns="number"),
        choice.made() | describe_filter(chosen),
        python_of(chosen, choice),
    )


def describe_filter(chosen: FactsChoice) -> dict[str, Any]:
    """The filter as a record."""
    fields = chosen.filter.__dataclass_fields__
    return {"filter": {name: getattr(chosen.filter, name) for name in fields}}


def python_of(chosen: FactsChoice, choice: RunChoice) -> str:
    """The lines of Python that give the same facts."""
    return (
        "from lama_core.metrics.fact_answers import AnswerFilter, fallbacks, join_answers\n"
        f"{choice.lines_of_runs()}"
        f'joined = join_answers(runs, ranking="{choice.ranking}")\n'
        f"rows = joined.select({chosen.filter!r})\n"
        "facts = joined.facts.iloc[rows]\n"
        f"tags = [joined.tags({chosen.filter.of})[row] for row in rows]\n"
        f"wrong_words = fallbacks(joined, rows, n={N_WORDS})"
    )
