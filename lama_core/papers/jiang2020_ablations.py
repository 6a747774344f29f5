"""LPAQA's Tables 7, 14 and 15: some of the prompts, refined prompts, the backward probability.

Each needs studies or passes of its own. Tables 14 and 15 cost a pass for each word and pair, or
fact and object, and take the first few relations, prompts and facts.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

import numpy as np

from lama_core.errors import UserError
from lama_core.models.protocols import KINDS, BlankFiller
from lama_core.papers.framework import of_models
from lama_core.papers.jiang2020_data import Studies
from lama_core.papers.jiang2020_scores import BERTS, COLUMNS, PAPER
from lama_core.papers.published import published_table
from lama_core.probes.prompts import paper_tables
from lama_core.probes.prompts.backward import BothWaysResult, measure_both_ways
from lama_core.probes.prompts.fact_queries import make_prepared_facts
from lama_core.probes.prompts.refilling import Refiller, refine
from lama_core.probes.prompts.selection import prompts_by_accuracy
from lama_core.probes.prompts.spec import Study
from lama_core.probes.prompts.study import RelationStudy
from lama_core.reports.tables import Item, ReproducedRow, UnavailableItem

# Of Tables 14 and 15.
# Departure: Samples for the costly tables
FEW_RELATIONS = 3
FEW_PROMPTS = 3
FEW_PAIRS = 10
FEW_FACTS = 10

# Departure: Refining a prompt
BY_GRADIENTS = UnavailableItem(
    "search for prompts guided by gradients (section 6.1)",
    "the paper found it unstable in preliminary experiments and prints no number of it",
)

Pools = Mapping[str, Sequence[str]]


def ablated(studies: Studies) -> Iterator[Item]:
    """Table 7: mined prompts with all words between the placeholders, and all mined prompts.

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
            f"all {n_all} mined prompts here have their words between subject and object: "
            "dependency paths need spaCy's parser"
        )
        command = "lama-explorer prompts mine RELATION --text FILE --method both"
        yield UnavailableItem("Table 7", reason, command)
        return

    def rows_of(studies: Studies, model: str) -> Iterator[Item]:
        both = {name: every[name] for name in middle}
        for line, pools in (("Mid", middle), ("Mid+Dep", both)):
            yield from _score_rows(studies, model, line, pools, "table7")

    yield from of_models(studies, rows_of)
    yield (
        f"Mid: the {n_middle} of {n_all} mined prompts whose words all stand between subject and "
        "object. The files don't say how a prompt was mined."
    )


def refined(studies: Studies, model: str) -> Iterator[Item]:
    """Table 14: mined and manual prompts before and after the model refilled their words."""
    yield (
        f"At most {FEW_RELATIONS} relations and of each the {FEW_PROMPTS} mined or manual prompts "
        f"that are best on the training facts, refined on {FEW_PAIRS} training pairs; ones that "
        "become the same count once."
    )
    study = studies.study(model)
    asked = studies.load(model, precision=study.info.precision)
    before, after = {}, {}
    for one in _few(study, "mine+man"):
        name = one.relation.name
        before[name] = tuple(one.pool.templates[n] for n in _best(one, "mine+man"))
        refiller = Refiller(asked, studies.split(name).train[:FEW_PAIRS], form="paper")
        found = (
            refine(text, refiller).template if refiller.places(text) else text
            for text in before[name]
        )
        after[name] = tuple(dict.fromkeys(found))
    for line, pools in (("before", before), ("after", after)):
        yield from _score_rows(studies, model, line, pools, "table14")
    yield BY_GRADIENTS


def asked_back(studies: Studies, model: str) -> Iterator[Item]:
    """Table 15: the optimised ensemble without and with the backward probability."""
    yield (
        f"Micro, of at most {FEW_RELATIONS} relations, {FEW_PROMPTS} prompts of each, and "
        f"{FEW_FACTS} facts to train and to test. Paraphrase is Man+Para. The paper's headings "
        "macro and micro are interchanged: beside ours stands what it heads macro."
    )
    table = published_table(PAPER, "table15")
    study = studies.study(model)
    asked = studies.load(model, precision=study.info.precision)
    if not KINDS[asked.kind].sees_both:
        raise UserError(f"{model} sees no right side: ask a model that sees both.")
    for combination, title in (("mine", "Mine"), ("man+para", "Paraphrase")):
        found = [_both_ways(study, one, combination, asked) for one in _few(study, combination)]
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
                "" if values else "no relation of these data has such prompts",
                studies.differs(len(found), n_facts),
            )


def _few(study: Study, combination: str) -> list[RelationStudy]:
    """The first relations that have prompts of a combination to choose from."""
    found = (study.relation(name) for name in study.relations)
    return list(islice((x for x in found if x.pool.eligible(combination)), FEW_RELATIONS))


def _best(study: RelationStudy, combination: str) -> Sequence[int]:
    """The prompts of a combination that are best on the training facts."""
    return prompts_by_accuracy(study.pool, combination, study.train_accuracies)[:FEW_PROMPTS]


def _both_ways(
    study: Study, one: RelationStudy, combination: str, model: BlankFiller
) -> BothWaysResult:
    prompts = [one.pool.prompts[number] for number in _best(one, combination)]
    train, test = (
        make_prepared_facts(
            one.relation,
            facts[:FEW_FACTS],
            study.candidates,
            model,
            "both",
            template=prompts[0].template,
        )
        for facts in (one.train, one.test)
    )
    return measure_both_ways(model, train, test, prompts)


def _score_rows(
    studies: Studies, model: str, line: str, pools: Pools, table: str
) -> Iterator[ReproducedRow]:
    """One line of a table of Top-K, optimised and oracle: a study of these prompts alone."""
    request = studies.with_prompts(model, pools)
    relations = studies.relations(model, request)
    n_facts = sum(len(one.test) for one in relations)
    scores = [{score.method: score.micro for score in one.scores()} for one in relations]
    printed = published_table(PAPER, table)
    labels = {"model": "BERT-base"} if "model" in printed.labels else {}
    for method, column in COLUMNS.items():
        known = BERTS.get(model) == "BERT-base"
        # A relation with a single prompt has no other way of choosing than that prompt.
        values = [found.get(method, found["top1"]) for found in scores]
        yield ReproducedRow(
            model,
            f"{line} {column}",
            n_facts,
            100 * float(np.mean(values)),
            printed.value(column, prompts=line, **labels) if known else None,
            differs=studies.differs(len(relations), n_facts, limit=request.limit),
        )
