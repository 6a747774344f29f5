"""The content of a dataset: counts by source and relation, templates, facts, excluded lines."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import pandas as pd
import streamlit as st

from lama_core.datasets import AnalogyDataset, Dataset, Dropped, QuestionDataset
from lama_core.datasets.library.installed import Listed
from lama_core.scoring.blanks import filler
from lama_core.views.analogies import in_words
from lama_core.views.figure import relation_label
from pages.ui.shared import cache
from pages.ui.shared.messages import counted, plain
from pages.ui.shared.partial_lama import draw_partial
from pages.ui.shared.tables import draw_table
from pages.ui.shared.url_state import choose

Item = TypeVar("Item")
MOST_FACTS = 500
MOST_REPORTED = 200


def draw_content(listed: Listed) -> None:
    """Draw the content of an installed dataset."""
    data = cache.content_of(listed)
    if isinstance(data, QuestionDataset):
        st.caption(f"To score models: `lama-explorer analogy questions --dataset {data.name}`")
        _draw_rows(
            data.questions,
            lambda one: {
                "stem": " : ".join(one.stem),
                "right choice": " : ".join(one.choices[one.answer]),
                "choices": ", ".join(map(" : ".join, one.choices)),
                "group": one.group or None,
            },
            column_config={"choices": st.column_config.TextColumn(width="large")},
        )
    elif isinstance(data, AnalogyDataset):
        names = [relation.name for relation in data.relations]
        chosen = data.relation(choose("Relation", names, key="relation", show=in_words))
        with st.expander(f"All {counted(len(names), 'relation')}"):
            _draw_rows(
                data.relations,
                lambda relation: {
                    "relation": in_words(relation.name),
                    "kind": relation.kind,
                    "pairs": len(relation.pairs),
                    "several answers": relation.one_to_many,
                    "bidirectional": relation.bidirectional,
                    "first pair": " : ".join((relation.pairs[0][0], relation.pairs[0][1][0])),
                },
            )
        _draw_rows(chosen.pairs, lambda pair: {"head": pair[0], "tail": " / ".join(pair[1])})
    else:
        if listed.kind == "facts":
            draw_partial(
                listed.name, [(one.source, len(data.facts_of(one.name))) for one in data.relations]
            )
        _draw_relations(data)
    draw_dropped(data.report.dropped)
    if data.report.notes:
        with st.expander(f"{counted(len(data.report.notes), 'note')} on reading the data"):
            st.markdown("  \n".join(plain(note) for note in data.report.notes))


def _draw_rows(
    items: Sequence[Item], row_of: Callable[[Item], dict[str, object]], **options: Any
) -> None:
    """Draw a row of each item as a table without empty columns; of many only the first."""
    table = pd.DataFrame(map(row_of, items[:MOST_FACTS])).dropna(axis="columns", how="all")
    draw_table(table, placeholder="", height=420 if len(items) > 10 else "content", **options)
    if len(items) > MOST_FACTS:
        st.caption(f"The first {MOST_FACTS} of {len(items):,}.")


def counts_by_source(listed: Listed) -> dict[str, str]:
    """Knowledge source -> its numbers of facts and relations, counted as in the paper.

    Empty unless the dataset is installed and has facts of several sources.
    """
    if not listed.installed or listed.kind != "facts":
        return {}
    dataset = cache.dataset_of(listed.name)
    n_relations = Counter(relation.source for relation in dataset.relations)
    counts = {
        name: f"{counted(n_facts, 'fact')} of {counted(n_relations[name], 'relation')}"
        for name, n_facts in dataset.n_facts_by_source().items()
    }
    return counts if len(counts) > 1 else {}


def _draw_relations(dataset: Dataset) -> None:
    """Draw the choice of a relation, a table of all, and the chosen one's texts and facts."""
    relations = dataset.relations
    labels = {one.name: relation_label(one.name, one.label) for one in relations}
    relation = dataset.relation(
        choose("Relation", [*labels], key="relation", show=labels.__getitem__)
    )
    with st.expander(f"All {counted(len(relations), 'relation')}"):
        _draw_rows(
            relations,
            lambda one: {
                "relation": labels[one.name],
                "source": one.source,
                "type": one.type,
                "facts": len(dataset.facts_of(one.name)),
                "templates": len(one.templates),
                "answers": len(one.answers) or None,
                "domains": ", ".join(one.domains) or None,
            },
        )
    if relation.description:
        st.caption(plain(relation.description))
    if relation.prompts:
        lines = [
            f"- {plain(f'{one.template} ({one.origin}')}"
            + (f", {one.weight:.3g})" if one.weight else ")")
            for one in relation.prompts
        ]
        with st.container(height=200 if len(lines) > 6 else "content", border=False):
            st.markdown("\n".join(lines))
    else:
        own = "templates" if relation.own_templates else "sentence with a blank"
        st.caption(f"No shared template: each fact has its own {own}.")
    if relation.negated_template:
        st.caption(f"Negated: {plain(relation.negated_template)}")
    if relation.domains:
        st.caption(f"Domains: {plain(', '.join(relation.domains))}")
    if relation.answers:
        st.markdown(f"### {len(relation.answers):,} answers to choose from")
        _draw_rows(relation.answers, lambda answer: {"answer": answer})
    facts = dataset.facts_of(relation.name)
    # The sentences of a fact, without those that are a template with the subject filled in; spaces
    # are ignored, because LAMA's templates have one before the full stop.
    fillers = [filler(one.template) for one in relation.prompts]
    evidence = {}
    for fact in facts[:MOST_FACTS]:
        filled = {"".join(fill(fact.subject).text().split()) for fill in fillers}
        evidence[fact.id] = [one for one in fact.sentences if "".join(one.split()) not in filled]
    st.markdown(f"### {counted(len(facts), 'fact')}")
    origins, sizes = {fact.origin for fact in facts}, [len(texts) for texts in evidence.values()]
    if len(origins) == 1 and any(origins):
        st.caption(f"Origin: {plain(*origins)}.")
    if n := sum(sizes):
        each = f" ({sizes[0]} each)" * (len(sizes) > 1 and len(set(sizes)) == 1)
        st.caption(f"{counted(n, 'sentence')} of {'its' if n == 1 else 'their'} own{each}.")
    _draw_rows(
        facts,
        lambda fact: {
            "subject": fact.subject,
            "object": fact.object,
            "templates": " / ".join(fact.templates) or None,
            "sentence": next(iter(evidence[fact.id]), "").replace("[MASK]", "___") or None,
            "origin": (fact.origin if len(origins) > 1 else "") or None,
        },
    )


def draw_dropped(dropped: Sequence[Dropped], *, what: str = "line", opened: bool = False) -> None:
    """Draw a table of the excluded lines with their reasons, if there are any.

    Args:
        dropped: The excluded lines.
        what: The word for an excluded line: `line` or `row`.
        opened: Whether the table is expanded at first.
    """
    if not dropped:
        return
    table = pd.DataFrame(
        {"file": line.file, "line": line.line or None, "reason": line.reason}
        for line in dropped[:MOST_REPORTED]
    ).dropna(axis="columns", how="all")
    if table["file"].nunique() == 1:
        table = table.drop(columns="file")
    with st.expander(f"{counted(len(dropped), what)} excluded", expanded=opened):
        small = st.column_config.NumberColumn(width="small")
        draw_table(table, placeholder="", column_config={"line": small})
        if len(dropped) > MOST_REPORTED:
            st.caption(f"The first {MOST_REPORTED} of {len(dropped):,}.")
