"""The table of facts in Wrong answers, the opened fact, and the most frequent wrong answers."""

from collections.abc import Sequence
from dataclasses import asdict
from html import escape
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray
from streamlit.delta_generator import DeltaGenerator

from lama_core.glossary import explain
from lama_core.metrics.fact_answers import AnswerFilter, JoinedAnswers, fallbacks
from lama_core.metrics.headlines import MOST_NAMED
from lama_core.models.protocols import KINDS
from lama_core.queries.blank_answers import BlankAnswer, Gold, Over, Prediction
from lama_core.rounding import fixed, percent
from lama_core.runs.info import RunInfo
from lama_core.views.calibration import normalisation
from lama_core.views.figure import Axis, Figure, said
from pages.ui.shared import cache, links, predictions, screens, visitors
from pages.ui.shared.export import draw_export
from pages.ui.shared.figures import draw_figure
from pages.ui.shared.messages import draw_headline, plain, short
from pages.ui.shared.model_columns import make_boxes
from pages.ui.shared.run_choice import RunChoice
from pages.ui.shared.tables import Picked, draw_table
from pages.ui.shared.url_state import BOUND, DEFAULT_MODELS
from pages.ui.wrong_answers.answer_scores import draw_scores_of_answers
from pages.ui.wrong_answers.filters import narrow
from pages.ui.wrong_answers.tags import draw_fact_tags, draw_fact_verdict, draw_picked_tags

PAGE_SIZE = 100
N_PREDICTIONS = 10
N_OF_SEVERAL = 5  # predictions of each of several runs
N_WORDS = 15
MOST_LISTED = 4  # right answers of a query in its row
# Pixels of columns, so that three models fit on a screen of 1400 pixels.
SENTENCE, RELATION, GOLD, ANSWER, NUMBER, OF_RIGHT, LETTER = 154, 152, 104, 92, 52, 88, 6.6
LONG = 18  # letters of a subject
MOST_LETTERS = 21  # of a relation or a sentence in the table
NO_TEXT = "(an empty text)"
Ints = NDArray[np.int64]


def fact_key(joined: JoinedAnswers, row: int) -> str:
    """Return the key of a row in the URL: the fact's id and the prompt's number."""
    line = joined.facts.iloc[row]
    return f"{line['fact_id']}#{line['prompt']}"


def find_fact(joined: JoinedAnswers, key: str) -> int | None:
    """Return the row with that key; None if there is no such row."""
    name, _, prompt = key.rpartition("#")
    is_it = (joined.facts["fact_id"] == name) & (joined.facts["prompt"].astype(str) == prompt)
    return next(map(int, np.flatnonzero(is_it)), None)


def make_table(
    joined: JoinedAnswers,
    rows: Ints,
    of: int,
    choice: RunChoice,
) -> pd.DataFrame:
    """Return the table on screen: each fact, and each run's first answer and gold answer's rank.

    The column `tags` has the tags of run number `of`. A column for the relation would be of no use
    if one is chosen.
    """
    facts = joined.facts.iloc[rows]
    columns: dict[str, Any] = {
        "subject": [
            short(str(query).replace("[MASK]", "___"), MOST_LETTERS)
            if subject in ("", source)
            else str(subject)
            for subject, source, query in facts[["subject", "source", "query"]].to_numpy()
        ]
    }
    if len(choice.relations) != 1:
        columns["relation"] = [
            short(choice.labels.get(name, name), MOST_LETTERS)
            for name in facts["relation"].astype(str)
        ]
    columns["gold"] = facts["object"].astype(str).to_numpy()
    if facts["prompt"].any():
        columns["query"] = facts["query"].to_numpy()  # shown only if facts have several prompts
    tags = joined.tags(of)
    if any(tags):
        columns["tags"] = [list(tags[row]) for row in rows]
    for number, name in enumerate(choice.names):
        run = joined.runs[number]
        answers = pd.Series(run.answer[rows]).astype(object)
        if run.run.info.generates:
            answers = answers.where(answers.notna() | np.isnan(run.rank[rows]), NO_TEXT)
        marks = np.where((choice.k == 1) & joined.right(number, 1)[rows], " ✓", "")
        reasons = pd.Series(run.excluded[rows]).astype(object)
        columns[f"{name} answer"] = (answers + marks).fillna("excluded: " + reasons)
        columns[f"{name} prob"] = run.confidence[rows]
        if run.run.info.has_ranks:
            columns[f"{name} rank"] = run.shown_rank[rows]
            columns[f"{name} log-prob"] = run.log_prob[rows]
        if run.run.info.ranks_statements:
            columns[f"{name} margin"] = run.margin[rows]
    return pd.DataFrame(columns)


def one_per_query(table: pd.DataFrame, places: Ints) -> pd.DataFrame:
    """Return a row for each query, in order, from a table with a row for each of its facts.

    Different texts of a query are listed, such as its right answers; of its numbers the best is
    shown: the lowest rank, else the highest.

    places: the number of each row's query, int [row].
    """
    if len(np.unique(places)) == len(table):
        return table

    def listed(values: pd.Series) -> str | list[str] | None:
        found = [*dict.fromkeys(values.explode().dropna())]
        if isinstance(values.iloc[0], list):
            return found
        more = f" and {len(found) - MOST_LISTED} more" * (len(found) > MOST_LISTED)
        return ", ".join(map(str, found[:MOST_LISTED])) + more or None

    ways: dict[Any, Any] = dict.fromkeys(table, listed)
    for name in map(str, table.select_dtypes("number")):
        ways[name] = "min" if name.endswith(" rank") else "max"
    return table.groupby(places).agg(ways).reset_index(drop=True)


def draw_rows(
    joined: JoinedAnswers,
    rows: Ints,
    chosen: AnswerFilter,
    choice: RunChoice,
    sort_box: DeltaGenerator,
) -> Ints:
    """Draw one page of the table, the opened fact next to it, and the form to tag ticked facts.

    sort_box: where to draw the choice of the order.

    Returns:
        The rows of the ticked queries; all rows if none is ticked.
    """
    focus = joined.runs[chosen.of]
    sorts: dict[str, NDArray[Any]] = {  # missing values come last
        "as in the data": np.zeros(len(joined.facts)),
        "best rank first": focus.shown_rank,
        "worst rank first": -focus.shown_rank,
        screens.CONFIDENT_FIRST: -focus.confidence,
        "least confident first": focus.confidence,
    }
    sort = sort_box.selectbox(
        "Order",
        list(sorts),
        key="sort",
        bind=BOUND,
        label_visibility="collapsed",
    )
    rows = rows[np.argsort(sorts[sort][rows], kind="stable")]
    # Rows of the same query follow its first one.
    query = pd.factorize(joined.queries[rows])[0]
    order = np.argsort(query, kind="stable")
    rows, query = rows[order], query[order]
    row = find_fact(joined, st.query_params.get("fact", ""))
    # Columns without a panel, too, so that the list stays in its place while the panel is drawn.
    with st.container(key="facts-and-panel"):
        list_box, *panels = st.columns([1] if row is None else [3, 2], gap="medium")
    if not len(rows):
        st.info("No fact matches these filters. Remove one.", icon=":material/filter_alt_off:")
        return rows
    table_box = list_box.container(gap=None)  # above the pages, which its toolbar would cover
    n_pages = 1 + int(query[-1]) // PAGE_SIZE
    page = 1
    if n_pages > 1:
        with list_box:
            page = min(st.pagination(n_pages, key="page", bind=BOUND), n_pages)
    on_page = query // PAGE_SIZE == page - 1
    shown, places = rows[on_page], query[on_page] % PAGE_SIZE
    table = one_per_query(make_table(joined, shown, chosen.of, choice), places)

    def open_row(picked: Picked) -> None:
        if picked.rows and not picked.ticked:
            st.query_params["fact"] = fact_key(joined, shown[places == picked.rows[0]][0])

    picked = draw_table(
        table,
        place=table_box,
        column_config=_config(table, choice, choice.titles[chosen.of]),
        column_order=_columns(table, choice, None if row is None else choice.names[chosen.of]),
        key=f"facts {hash(shown.tobytes())} {'|'.join(choice.names)}",
        on_pick=open_row,
        picks="rows-or-cell",
        placeholder="",
        height=600 if len(table) > 15 else "content",
    )
    ticked = shown[np.isin(places, picked.rows)] if picked.ticked else rows[:0]
    with list_box:
        if len(ticked) and visitors.may("manage"):
            draw_picked_tags(joined, ticked.tolist(), chosen, choice)
        else:
            with st.container(key="ticks"):  # not on phones, see style.css
                st.caption(
                    "Click a query to open it. Tick queries to choose their facts; Shift and a "
                    "click tick all in between."
                )
    if row is not None:
        with panels[0]:
            draw_fact(joined, row, rows, query, chosen, choice)
    draw_export(
        "facts",
        lambda: joined.table(rows, choice.names),
        choice.made() | {"filter": asdict(chosen)},
        python_of(chosen, choice),
    )
    return ticked if len(ticked) else rows


def _config(table: pd.DataFrame, choice: RunChoice, of: str) -> dict[str, Any]:
    """Return the configuration of the columns. of: the title of the selected run."""
    number = st.column_config.NumberColumn
    config: dict[str, Any] = {
        "subject": st.column_config.TextColumn(
            pinned=True,
            width=SENTENCE if max(map(len, table["subject"]), default=0) > LONG else None,
        ),
        "gold": st.column_config.TextColumn("right answer", width=GOLD),
        "relation": st.column_config.TextColumn(width=RELATION),
        "tags": st.column_config.ListColumn(help=f"Stored with the run of {of}."),
    }
    for name, title, run in zip(choice.names, choice.titles, choice.runs, strict=True):
        of_answers = run.ranks_statements
        config |= {
            f"{name} answer": st.column_config.TextColumn(
                choice.heads[title],
                help="The model's first answer.",
                width=max(ANSWER, 16 + round(LETTER * len(choice.heads[title]))),
            ),
            f"{name} prob": number(
                "share" if of_answers else "prob.",
                format="%.3f",
                width=NUMBER,
                help=f"{'Share' if of_answers else 'Probability'} of that answer "
                f"({normalisation([run])}).",
            ),
            f"{name} margin": number("margin", format="%.2f", help=explain("Margin")),
            f"{name} rank": number(
                "right at rank",
                format="localized",
                width=OF_RIGHT,
                help="Rank of the right answer; of several, the best one.",
            ),
            f"{name} log-prob": number("its log-prob.", format="%.2f"),
        }
    return config


def _columns(table: pd.DataFrame, choice: RunChoice, opened: str | None) -> list[str]:
    """Return the columns on screen; next to an opened fact, only words of the selected run.

    opened: the name of this run; None if no fact is opened.
    """
    numbers = ["log-prob"] if opened is None else ["answer", "prob", "rank", "margin", "log-prob"]
    hidden = {f"{name} {number}" for name in choice.names for number in numbers}
    return [name for name in map(str, table) if name not in hidden - {f"{opened} answer"}]


def draw_fact(
    joined: JoinedAnswers,
    row: int,
    rows: Ints,
    query: Ints,
    chosen: AnswerFilter,
    choice: RunChoice,
) -> None:
    """Draw one fact: the query, its other right answers, its tags, and each run's best answers.

    rows: the list that the fact was opened from, in its order. query: the number of each row's
    query in the list, from 0.
    """
    fact = joined.facts.iloc[row]
    gold = str(fact["object"])
    with st.container(border=True):
        position = next(map(int, query[rows == row]), None)
        n_queries = int(query[-1]) + 1
        with st.container(horizontal=True, vertical_alignment="center"):
            for label, icon, step in (("Previous", "arrow_back", -1), ("Next", "arrow_forward", 1)):
                target = -1 if position is None else position + step
                if st.button(
                    label,
                    icon=f":material/{icon}:",
                    type="tertiary",
                    disabled=not 0 <= target < n_queries,
                ):
                    st.query_params["fact"] = fact_key(joined, rows[query == target][0])
                    st.rerun()
            if position is not None:
                st.caption(f"{position + 1:,} of {n_queries:,}", width="content")
            if st.button("Close", icon=":material/close:", type="tertiary"):
                del st.query_params["fact"]
                st.rerun()
        with st.container(horizontal=True, vertical_alignment="center"):
            relation = choice.labels.get(str(fact["relation"]), str(fact["relation"]))
            about = f"{fact['subject']} · " * (fact["subject"] != fact["source"])
            st.markdown(
                f"**{plain(fact['query'].replace('[MASK]', '___'))}**  \n"
                f"{plain(about)}{plain(relation)} · right answer **{plain(gold)}**"
            )
            if fact["query"]:
                named = (run.model for run in choice.runs if run.model_kind in KINDS)
                link = _link_to_ask(str(fact["query"]), gold, tuple(dict.fromkeys(named)))
                links.draw_link("Ask it", "edit_note", screens.ASK, link, type="primary")
        if position is not None and (query == position).sum() > 1:
            golds = {
                int(one): str(joined.facts["object"].iloc[one]) for one in rows[query == position]
            }
            picked = st.pills(
                "Right answers",
                list(golds),
                default=row,
                required=True,
                format_func=golds.__getitem__,
                key=f"right answers {row}",
                help="The listed facts of this query. The mark below is of the chosen one.",
            )
            if picked not in (None, row):
                st.query_params["fact"] = fact_key(joined, picked)
                st.rerun()
        draw_fact_tags(joined, row, chosen, choice)
        for number in range(len(choice.names)):
            with st.container():
                _draw_run(joined, row, number, choice, gold)


def _link_to_ask(query: str, gold: str, models: tuple[str, ...]) -> screens.Params:
    """Return the URL parameters that ask a fact's sentence or question on Ask."""
    if "[MASK]" not in query:
        return {"tab": "Question", "question": query, "right_texts": gold, "generators": models}
    chosen = () if models == DEFAULT_MODELS else models
    return {"text": query, "gold": gold, "models": chosen, "candidates": "common"}  # as in runs


def _draw_run(joined: JoinedAnswers, row: int, number: int, choice: RunChoice, gold: str) -> None:
    """Draw one run's best answers to a fact."""
    run, info, name = joined.runs[number], choice.runs[number], choice.names[number]
    at, colour = int(run.at[row]), choice.colours[info.id]
    detail = info.prompts
    if info.imported:
        detail = f"imported from {info.imported.source}"
    elif info.has_ranks:
        detail += f"{' prompts' * info.ranks_words}, {choice.ranking} rank"
    predictions.draw_head(info.model, choice.titles[number], colour, detail)
    if at < 0:
        st.caption("This fact isn't in the run.")
        return
    if np.isnan(run.rank[row]):
        st.caption(f"Excluded: {plain(str(run.excluded[row]))}.")
        return
    if info.generates:
        _draw_text(joined, row, number)
        return
    if info.imported and not info.ranks_statements:
        _draw_imported(joined, row, number)
        return
    top = run.run.top.of(at)[: N_PREDICTIONS if len(choice.runs) == 1 else N_OF_SEVERAL]
    words: Sequence[str | None] = [None] * len(top)
    if cache.can_complete_words(info):
        with st.spinner("Completing the answers", show_time=True):
            queries = (str(run.run.facts["query"].iloc[at]),) * len(top)
            tokens = tuple(word for word, _ in top)
            words = cache.complete_words(
                info.model, info.precision, info.fold_case, queries, tokens
            )
    answers = tuple(
        Prediction(rank, token, log_prob, float(np.exp(log_prob)), begins=word)
        for rank, ((token, log_prob), word) in enumerate(zip(top, words, strict=True), start=1)
    )
    rank, log_prob = int(run.rank[row]), float(run.log_prob[row])
    if info.model_kind not in KINDS and np.isnan(log_prob):
        if answers:
            predictions.draw_answers(BlankAnswer(answers, over=_over(info)), colour)
        st.caption(
            f"The right answer, which the model didn't find, ranks after all other words: {rank:,}."
        )
        return
    mark = Gold(gold, rank, log_prob, (gold,), True)
    predictions.draw_answers(BlankAnswer(answers, mark, over=_over(info)), colour)
    if info.ranks_statements:
        draw_scores_of_answers(run, row, gold, colour, name)


def _draw_imported(joined: JoinedAnswers, row: int, number: int) -> None:
    """Draw what an imported run says about a fact: predictions, and the rank or the verdict."""
    run = joined.runs[number]
    words, answer = run.run.top.of(int(run.at[row]))[:N_PREDICTIONS], run.answer[row]
    if not words and isinstance(answer, str):
        words = [(answer, float(np.log(run.confidence[row])))]
    lines = "".join(
        f'<tr><td class="rank">{rank}</td><td class="word">{escape(word)}</td>'
        f'<td class="num muted">{_log_prob(log_prob)}</td></tr>'
        for rank, (word, log_prob) in enumerate(words, start=1)
    )
    gold = f"Right answer <b>{escape(str(joined.facts['object'].iloc[row]))}</b>"
    if run.run.info.has_ranks and not np.isnan(run.shown_rank[row]):
        known = _log_prob(run.log_prob[row])
        gold += f": rank <b>{int(run.rank[row]):,}</b>" + f", log-prob. {known}" * bool(known)
    elif run.known[row] > 1:
        gold += f": not among the first {run.known[row]:,}"
    else:
        verdict = "✓ right" if joined.right(number)[row] else "✗ wrong"
        gold += f' <span class="lx-chip">{verdict}</span>'
    st.html(f'<table class="lx"><tbody>{lines}</tbody></table><div class="lx-gold">{gold}</div>')


def _log_prob(value: float) -> str:
    """A log-probability as text; empty if it isn't known."""
    return fixed(float(value), 2) if np.isfinite(value) else ""


def _draw_text(joined: JoinedAnswers, row: int, number: int) -> None:
    """Draw a run's generated text for a fact, its verdict and its probability."""
    run, answer = joined.runs[number], joined.runs[number].answer[row]
    fact = run.run.facts.iloc[int(run.at[row])]
    text = escape(answer) if isinstance(answer, str) else NO_TEXT
    # The fact's heading is the first run's query, which may differ from this run's.
    is_other = fact["query"] != joined.facts["query"].iloc[row]
    verdict = "no answer" if fact["no_answer"] else "✗ no match"
    if joined.right(number)[row]:
        verdict = "✓ match" + ", exact match" * bool(fact["exact_match"])
    prob = float(run.confidence[row])
    known = "" if np.isnan(prob) else f" prob. {predictions.probability(prob)},"
    st.html(
        f'<div class="lx-muted">{escape(str(fact["query"])) * is_other}</div>'
        f'<div class="lx-sentence">{text}</div><span class="lx-chip">{verdict}</span>'
        f'<div class="lx-muted">{known} token F1 {fixed(float(fact["token_f1"]), 2)}</div>'
    )
    draw_fact_verdict(run.run.info, (str(fact["fact_id"]), int(fact["prompt"])))


def _over(info: RunInfo) -> Over:
    """Return the words or answers over which a run's probabilities sum to one."""
    if info.ranks_statements:
        return "answers"
    if info.model_kind not in KINDS:
        return "found"
    return "rescored" if info.model_kind == "causal" and info.context == "both" else "vocabulary"


def draw_fallbacks(
    joined: JoinedAnswers, rows: Ints, chosen: AnswerFilter, choice: RunChoice
) -> None:
    """Draw each model's most frequent wrong first answers; a click shows their facts."""
    noun = "word" if any(run.ranks_words for run in choice.runs) else "answer"
    table = fallbacks(joined, rows, n=N_WORDS)
    if table.empty:
        st.info("No model is wrong on these facts.", icon=":material/check:")
        return
    starts = "**…**: a causal model may have begun a longer answer. " * bool(
        (table["written"] != table["answer"]).any()
    )
    tops = table.sort_values("share", ascending=False, kind="stable").drop_duplicates("number")
    each = ", ".join(
        f"“{top['written']}” ({choice.titles[top['number']]}, {percent(top['share'])} % of "
        f"{round(top['n'] / top['share']):,})"
        for top in tops.head(MOST_NAMED).sort_values("number").to_dict("records")
    )
    is_part = len(rows) < len(joined.select(AnswerFilter(of=chosen.of)))
    among = f" among these {len(rows):,} facts" * is_part
    draw_headline(
        f"The most frequent wrong {noun} of each model, of its wrong answers: {each}{among}"
    )
    st.caption(
        f"A model with a very frequent wrong {noun} often answers by relation and ignores the "
        f"subject. {starts}Click a bar to see the facts."
    )
    for number, (name, box) in enumerate(make_boxes(choice.names, per_row=3, border=False).items()):
        with box:
            line = draw_figure(
                wrong_words(
                    table[table["number"] == number],
                    f"Wrong answers of {choice.titles[number]}",
                    int(table["n"].max()),
                ),
                {"": choice.colours[choice.runs[number].id]},
                f"words {name}",
            )
            if line is not None:
                narrow(of=name, wrong=[name], answer=str(line["answer"]), right=[])
    each = ", ".join(
        f"{np.count_nonzero(run.rank[rows] > 1):,} ({plain(title)})"
        for run, title in zip(joined.runs, choice.titles, strict=True)
    )
    st.caption(
        f"Of {len(rows):,} {choice.counts}, those with a wrong first answer are counted: {each}; "
        + plain(f"prompts: {choice.question or 'manual'}; {choice.basis}.")
    )
    named = table.assign(name=[choice.names[number] for number in table["number"]])
    draw_export(
        "wrong-answers",
        lambda: named.drop(columns=["number", "written"]),
        choice.made() | {"filter": asdict(chosen)},
        python_of(chosen, choice),
    )


def wrong_words(table: pd.DataFrame, title: str, most: int) -> Figure:
    """Return a run's most frequent wrong answers as bars with numbers.

    Args:
        table: As of `fallbacks`, of one run.
        title: The title.
        most: The greatest number of facts on the axis.
    """
    lines = [
        said(
            f"{line['written']}: wrong {line['n']:,} times in {line['n_relations']} relations",
            f"{percent(line['share'])} % of the model's wrong answers",
            f"an object of the relation in {percent(line['right_type'], 0)} % of these",
        )
        for line in table.to_dict("records")
    ]
    return Figure(
        shape="bars",
        frame=table.assign(said=lines, shown=[f"{n:,}" for n in table["n"]], run=""),
        by=Axis(column="written", title="answer"),
        # With room for the numbers.
        value=Axis(column="n", title="facts with this answer", ends=(0, 1.25 * most)),
        names={"": ""},
        text="shown",
        title=title,
    )


def python_of(chosen: AnswerFilter, choice: RunChoice) -> str:
    """Return Python code that selects the same facts."""
    return (
        "from lama_core.metrics.fact_answers import AnswerFilter, fallbacks, join_answers\n"
        f"{choice.lines_of_runs()}"
        f'joined = join_answers(runs, ranking="{choice.ranking}")\n'
        f"rows = joined.select({chosen!r})\n"
        "facts = joined.facts.iloc[rows]\n"
        f"tags = [joined.tags({chosen.of})[row] for row in rows]\n"
        f"wrong_words = fallbacks(joined, rows, n={N_WORDS})"
    )
