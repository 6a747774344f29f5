"""LPAQA's Tables 7, 14 and 15: subsets of the prompts, refined prompts, the backward probability.

Each table needs additional studies or forward passes. Table 14 needs a pass for each word and
training pair, Table 15 for each fact and object, so they use only the first relations, prompts and
facts.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

import numpy as np

from lama_core.errors import UserError
from lama_core.models.protocols import KINDS
from lama_core.probes.prompts import paper_tables
from lama_core.probes.prompts.backward import measure_relation
from lama_core.probes.prompts.published_scores import BERTS, COLUMNS, PAPER
from lama_core.probes.prompts.refilling import Refiller, refine
from lama_core.probes.prompts.selection import prompts_by_accuracy
from lama_core.probes.prompts.spec import Study
from lama_core.probes.prompts.study import RelationStudy
from lama_core.published import published_table
from lama_papers.framework import of_models
from lama_papers.jiang2020_data import Studies
from lama_papers.tables import Item, ReproducedRow, UnavailableItem

# Limits for Tables 14 and 15.
# Departure: Samples for the costly tables
FEW_RELATIONS = 3
FEW_PROMPTS = 3
FEW_PAIRS = 10
FEW_FACTS = 10


def ablated(studies: Studies) -> Iterator[Item]:
    """Yield Table 7: mined prompts whose words are all between [X] and [Y], and all mined prompts.

    Departure: Which mined prompts are middle-word ones
    """
    every = studies.mined_prompts
    middle = {
        name: own
        for name, texts in every.items()
        if (own := [text for text in texts if paper_tables.only_between(text)])
    }
    n_all, n_middle = (sum(map(len, pools.values())) for pools in (every, middle))
    if n_all == n_middle:
        reason = (
            f"all {n_all} mined prompts have only words between subject and object; mining by "
            "dependency paths needs spaCy's parser"
        )
        yield UnavailableItem(
            "Table 7", reason, "lama-explorer prompts mine RELATION --text FILE --method both"
        )
        return

    def rows_of(studies: Studies, model: str) -> Iterator[Item]:
        for line, pools in (("Mid", middle), ("Mid+Dep", {name: every[name] for name in middle})):
            yield from _score_rows(studies, model, line, pools, "table7")

    yield from of_models(studies, rows_of)
    yield (
        f"Mid: the {n_middle} of {n_all} mined prompts with all words between subject and object. "
        "The files don't record how a prompt was mined."
    )


def refined(studies: Studies, model: str) -> Iterator[Item]:
    """Yield Table 14: mined and manual prompts before and after the model refilled their words."""
    yield (
        f"At most {FEW_RELATIONS} relations, each with the {FEW_PROMPTS} mined or manual prompts "
        f"that are best on the training facts, refined on {FEW_PAIRS} training pairs. Prompts that "
        "become identical count once."
    )
    study = studies.study(model)
    loaded = studies.load(model, precision=study.info.precision)
    before, after = {}, {}
    for one in _few(study, "mine+man"):
        name = one.relation.name
        before[name] = tuple(
            one.pool.templates[n]
            for n in prompts_by_accuracy(one.pool, "mine+man", one.train_accuracies)[:FEW_PROMPTS]
        )
        refiller = Refiller(loaded, studies.split(name).train[:FEW_PAIRS], form="paper")
        found = (
            refine(text, refiller)[-1] if refiller.places(text) else text for text in before[name]
        )
        after[name] = tuple(dict.fromkeys(found))
    for line, pools in (("before", before), ("after", after)):
        yield from _score_rows(studies, model, line, pools, "table14")
    # Departure: Refining a prompt
    yield UnavailableItem(
        "gradient-guided search for prompts (section 6.1)",
        "the paper found it unstable in preliminary experiments and reports no numbers",
    )


def asked_back(studies: Studies, model: str) -> Iterator[Item]:
    """Yield Table 15: the optimised ensemble without and with the backward probability."""
    yield (
        f"Micro average over at most {FEW_RELATIONS} relations, each with {FEW_PROMPTS} prompts "
        f"and {FEW_FACTS} facts for training and for testing. Paraphrase is Man+Para. The paper's "
        "column headings macro and micro are swapped, so ours is compared with its macro."
    )
    table = published_table(PAPER, "table15")
    study = studies.study(model)
    loaded = studies.load(model, precision=study.info.precision)
    if not KINDS[loaded.kind].sees_both:
        raise UserError(f"{model} has no right context. Choose a masked model.")
    for combination, title in (("mine", "Mine"), ("man+para", "Paraphrase")):
        found = [
            measure_relation(
                loaded,
                one,
                study.candidates,
                combination,
                n_prompts=FEW_PROMPTS,
                n_facts=FEW_FACTS,
            )
            for one in _few(study, combination)
        ]
        n_facts = sum(one.n_test for one in found)
        for line, values in (
            ("forward", [one.forward for one in found]),
            ("+backward", [one.both for one in found]),
        ):
            known = BERTS.get(model) == "BERT-base"
            yield ReproducedRow(
                model,
                f"{title}, {line}",
                n_facts,
                100 * float(np.mean(values)) if values else None,
                table.value(f"{title} macro", features=line) if known else None,
                "" if values else "no relation in this dataset has such prompts",
                studies.differs(len(found), n_facts),
            )


def _few(study: Study, combination: str) -> list[RelationStudy]:
    """Return the first `FEW_RELATIONS` relations with prompts of the set `combination`."""
    found = (study.relation(name) for name in study.relations)
    return list(islice((x for x in found if x.pool.eligible(combination)), FEW_RELATIONS))


def _score_rows(
    studies: Studies, model: str, line: str, pools: Mapping[str, Sequence[str]], table: str
) -> Iterator[ReproducedRow]:
    """Yield a row of P@1 for each method in `COLUMNS`, from a study of only these prompts."""
    request = studies.with_prompts(model, pools)
    relations = studies.relations(model, request)
    n_facts = sum(len(one.test) for one in relations)
    scores = [{score.method: score.micro for score in one.scores()} for one in relations]
    printed = published_table(PAPER, table)
    labels = {"model": "BERT-base"} if "model" in printed.labels else {}
    for method, column in COLUMNS.items():
        known = BERTS.get(model) == "BERT-base"
        # A relation with a single prompt has only the score top1.
        yield ReproducedRow(
            model,
            f"{line} {column}",
            n_facts,
            100 * float(np.mean([found.get(method, found["top1"]) for found in scores])),
            printed.value(column, prompts=line, **labels) if known else None,
            differs=studies.differs(len(relations), n_facts, limit=request.limit),
        )
