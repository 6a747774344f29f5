"""The tables of Jiang et al. 2020, next to the same tables of the chosen study."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from lama_core.papers.differences import differing
from lama_core.probes.prompts import paper_tables
from lama_core.probes.prompts.published_scores import (
    BERTS,
    COLUMNS,
    LINES,
    N_FACTS,
    N_RELATIONS,
    PAPER,
    Averaging,
    make_table,
)
from lama_core.probes.prompts.spec import Study, list_studies
from lama_core.probes.prompts.study import RelationStudy
from lama_core.published import PublishedTable, published_table
from lama_core.rounding import rounded
from pages.ui.prompts.study_choice import PromptsChoice, load_relations, said_of_training
from pages.ui.shared import links
from pages.ui.shared.export import draw_export
from pages.ui.shared.messages import plain
from pages.ui.shared.tables import draw_table
from pages.ui.shared.url_state import BOUND, title_of

Relations = Sequence[RelationStudy]
WEIGHT = r"weight \d"


@dataclass(frozen=True, slots=True)
class PaperTable:
    """One of the paper's tables.

    Attributes:
        id: Name of the published table.
        title: Title on screen.
        ours: Makes the same table from a study; None if studies don't store the data.
        counts: The caption that explains the study's numbers.
        python: Python expression that computes these numbers from `relations`.
    """

    id: str
    title: str
    ours: Callable[[PromptsChoice, Relations], pd.DataFrame] | None = None
    counts: str = ""
    python: str = ""


def draw_published(choice: PromptsChoice) -> None:
    """Draw the choice of a table of the paper, the table of this study and the published one."""
    links.replace_values("table", {table.id: table.title for table in TABLES.values()})
    shown = st.selectbox(
        "Table",
        tuple(TABLES),
        format_func=lambda name: TABLES[name].title,
        key="table",
        bind=BOUND,
        help="Figures 2 and 5 are under **Ensembles**, Figure 3 under **Analyses**.",
    )
    table = TABLES[shown]
    published = published_table(PAPER, table.id)
    paper = published.frame().dropna(axis="columns", how="all")
    ours = pd.DataFrame()
    if table.ours is not None:
        relations = load_relations(choice.info)
        ours = table.ours(choice, relations)
        model = title_of(choice.info.model)
        st.markdown(f"**This study: {plain(f'{model} on {choice.info.dataset}')}**")
        if ours.empty:
            st.caption("This study has no data for this table.")
        else:
            rounded_table = ours.copy()
            for column in ours.select_dtypes("float"):
                digits = 3 if re.fullmatch(WEIGHT, str(column)) else 1
                rounded_table[column] = ours[column].map(partial(rounded, digits=digits))
            draw_table(rounded_table, column_config=_columns(ours), placeholder="–")
            n_test, n_train = (
                sum(len(getattr(one, part)) for one in relations) for part in ("test", "train")
            )
            st.caption(
                f"{table.counts} {len(relations)} relations, {n_test:,} test facts, "
                f"{choice.study.ranking} ranking; prompts are chosen and weighted on {n_train:,} "
                "training facts."
            )
    has_ours = not ours.empty
    st.markdown("**In the paper**")
    draw_table(paper, column_config=_columns(paper), placeholder="–")
    st.caption(plain(f"{published.title}. {published.note}"))
    st.markdown(_differences(choice, published, has_ours=has_ours))
    draw_export(
        f"{PAPER} {table.id}",
        lambda: ours if has_ours else paper,
        choice.made() | {"paper": published.citation, "table": table.id},
        python_of(choice, table, ours=has_ours),
    )


def python_of(choice: PromptsChoice, table: PaperTable, *, ours: bool) -> str:
    """Return Python code for the exported table: the study's if `ours`, else the paper's."""
    if not ours:
        return (
            "from lama_core.published import published_table\n\n"
            f'published_table("{PAPER}", "{table.id}").frame()'
        )
    return (
        "from lama_core.probes.prompts.published_scores import make_table\n"
        "from lama_core.probes.prompts import paper_tables\n"
        "from lama_core.probes.prompts.spec import find_study\n\n"
        "def relations_of(name):\n"
        "    study = find_study(name)\n"
        "    return [study.relation(name) for name in study.relations]\n\n"
        f"relations = relations_of({choice.info.id!r})\n"
        f"others = {[one.info.id for one in _others(choice)]!r}\n"
        f"{table.python}"
    )


def _differences(choice: PromptsChoice, table: PublishedTable, *, has_ours: bool) -> str:
    """Describe how the published numbers and those of the study differ."""
    of_model = table.metric not in ("statistics", "edit_distance", "pattern")
    setup = (
        f"The paper uses LAMA's T-REx ({N_RELATIONS} relations, {N_FACTS:,} facts) and LPAQA's "
        "prompts, chosen and weighted on other pairs of the same relations"
        + "; BERT unless it names another model; raw ranking" * of_model
        + "."
    )
    if not has_ours:
        return (
            f"{setup} A study doesn't store these numbers. Where possible, "
            f"`lama-explorer reproduce {PAPER} --table {table.id}` computes them."
        )
    info = choice.info
    n_facts, n_relations = sum(one.n for one in info.relations), len(info.relations)
    data = "" if info.dataset.startswith("lama") else f"{plain(info.dataset)} facts"
    data += f", {n_relations} relations" * bool(data and n_relations != N_RELATIONS)
    found = differing(
        data=data,
        relations=(n_relations, N_RELATIONS),
        facts=(n_facts, N_FACTS),
        limit=info.limit,
        model="BERT" if of_model and info.model not in BERTS else "",
    )
    trained = said_of_training(choice, load_relations(info)) if of_model else ""
    if not (found or trained):
        return f"{setup} This study uses the same facts and model."
    differences = "; ".join(filter(None, (found, trained)))
    return f"{setup} Not comparable, because this study differs: {differences}."


def _columns(frame: pd.DataFrame) -> dict[Any, Any]:
    """Return column -> heading and number format, for columns of numbers."""
    number = st.column_config.NumberColumn
    return {
        name: number("gain, points", format="%+.1f")
        if str(name).startswith("gain")
        else number(format="%.3f" if re.fullmatch(WEIGHT, str(name)) else "%.1f")
        for name in frame.select_dtypes("float")
    }


# --- the paper's tables, computed from a study ----------------------------------------------------


def _combined(average: Averaging, _: PromptsChoice, relations: Relations) -> pd.DataFrame:
    found: dict[str, dict[str, object]] = {}
    for score in make_table(relations, relations[0].model):
        if score.combination in LINES and score.method in COLUMNS:
            cells = {COLUMNS[score.method]: 100 * getattr(score, average)}
            found.setdefault(LINES[score.combination], {"test facts": score.n_facts}).update(cells)
    frame = pd.DataFrame.from_dict(found, orient="index").rename_axis("prompts").reset_index()
    return frame.reindex(columns=["prompts", *COLUMNS.values(), "test facts"])


def _gains(_: PromptsChoice, relations: Relations) -> pd.DataFrame:
    found = filter(None, map(paper_tables.mined_gain, relations))
    return pd.DataFrame(
        {
            "id": gain.relation,
            "relation": gain.label,
            "manual prompt": gain.before,
            "mined prompt": gain.after,
            "gain": 100 * gain.gain,
            "test facts": gain.n,
        }
        for gain in sorted(found, key=lambda gain: -gain.gain)
    )


def _weights(_: PromptsChoice, relations: Relations) -> pd.DataFrame:
    found = filter(None, map(paper_tables.weighted_gain, relations))
    return pd.DataFrame(
        {"id": gain.relation, "relation": gain.label}
        | {
            f"{what} {rank}": value
            for rank, pair in enumerate(gain.weights[:3], start=1)
            for what, value in zip(("prompt", "weight"), pair, strict=True)
        }
        | {"gain": 100 * gain.gain, "test facts": gain.n}
        for gain in sorted(found, key=lambda gain: -gain.gain)
    )


def _changes(_: PromptsChoice, relations: Relations) -> pd.DataFrame:
    found = [change for study in relations for change in paper_tables.word_changes(study)]
    found.sort(key=lambda one: -one[1].gain)
    return pd.DataFrame(
        {
            "id": gain.relation,
            "change": change,
            "before": gain.before,
            "after": gain.after,
            "gain": 100 * gain.gain,
            "test facts": gain.n,
        }
        for change, gain in found[:10]
    )


def _models(choice: PromptsChoice, _: Relations) -> pd.DataFrame:
    return pd.DataFrame(
        {"model": title_of(study.info.model)}
        | {
            LINES[score.combination]: 100 * score.micro
            for score in make_table(load_relations(study.info), study.info.model)
            if score.combination in LINES
            and score.method == ("top1" if score.combination == "manual" else "optimised")
        }
        | {"test facts": study.info.n}
        for study in (choice.whole, *_others(choice))
    )


def _transfer(choice: PromptsChoice, relations: Relations) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "prompts": title,
            "its own weights": 100 * found.own,
            f"weights of {title_of(other.info.model)}": 100 * found.other,
            "test facts": found.n,
        }
        for other in _others(choice)
        for combination, title in LINES.items()
        for found in (
            paper_tables.mean_transfer(relations, load_relations(other.info), combination),
        )
        if found is not None
    )


def _others(choice: PromptsChoice) -> list[Study]:
    """Return the studies of the same facts and prompt sets with other models."""
    return [
        study
        for study in list_studies(on_problem=lambda _: None)
        if study.info.data_digest == choice.info.data_digest
        and study.info.model != choice.info.model
        and study.details["combinations"] == choice.whole.details["combinations"]
    ]


SETS_SAID = (
    "Rows and columns have the paper's names: Man: manual, Mine: mined, Para: paraphrased prompts; "
    "Opti.: optimised weights."
)
P_AT_1 = (
    "P@1 in percent, micro (each fact counts the same in its relation), then the mean over "
    f"relations. {SETS_SAID}"
)
TABLES = {
    table.id: table
    for table in (
        PaperTable(
            "table2",
            "Table 2: combined prompts, micro",
            partial(_combined, "micro"),
            P_AT_1,
            "make_table(relations, relations[0].model)",
        ),
        PaperTable(
            "table3",
            "Table 3: combined prompts, macro",
            partial(_combined, "macro"),
            "P@1 in percent, macro: the mean over a relation's objects, then over relations. "
            + SETS_SAID,
            "make_table(relations, relations[0].model)",
        ),
        PaperTable(
            "table4",
            "Table 4: mined prompts against manual ones",
            _gains,
            "Gain on the test facts: P@1 of the best mined prompt (by training facts) minus P@1 of "
            "the manual prompt.",
            python="[paper_tables.mined_gain(one) for one in relations]",
        ),
        PaperTable(
            "table5",
            "Table 5: weights of mined prompts",
            _weights,
            "Gain: P@1 of the optimised ensemble of mined prompts minus P@1 of the best mined "
            "prompt (by training facts).",
            python="[paper_tables.weighted_gain(one) for one in relations]",
        ),
        PaperTable(
            "table6",
            "Table 6: one word changed",
            _changes,
            "Gain: P@1 of the second prompt minus P@1 of the first; they differ in one word.",
            python="[change for one in relations for change in paper_tables.word_changes(one)]",
        ),
        PaperTable("table7", "Table 7: middle-word and dependency prompts"),
        PaperTable(
            "table8",
            "Table 8: models",
            _models,
            f"{P_AT_1} Other models: installed studies of the same facts.",
            "[make_table(one, one[0].model) for one in (relations, *map(relations_of, others))]",
        ),
        PaperTable("table9", "Table 9: facts that can't be guessed from names (UHN)"),
        PaperTable("table10", "Table 10: Google-RE"),
        PaperTable(
            "table12",
            "Table 12: another model's weights",
            _transfer,
            f"{P_AT_1} Other models: installed studies of the same facts.",
            "[paper_tables.mean_transfer(relations, relations_of(one), name) for one in others\n"
            " for name in ('mine', 'mine+man', 'mine+para', 'man+para')]",
        ),
        PaperTable("table13", "Table 13: weights of BERT and ERNIE"),
        PaperTable("table14", "Table 14: prompts refilled by the model"),
        PaperTable("table15", "Table 15: the backward probability"),
        PaperTable("table1", "Table 1: the facts"),
        PaperTable("edit-distances", "Section 5.2: edit distance of prompts"),
        PaperTable("majority", "Tables 2 and 3: the most frequent object"),
        PaperTable("table11", "Table 11: patterns of parts of speech"),
        PaperTable("figure1", "Figure 1: one fact, three prompts"),
        PaperTable("figures", "Figures 2, 4 and 5: what the text says of them"),
    )
}
