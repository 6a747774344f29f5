"""Ensembles as saved runs, so that Results, Facts and `compare` show them like any other.

A row's query is that of the relation's prompt with the most weight; its ranks and answers are the
ensemble's.
"""

import datetime
import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lama_core.asking.blanks import fill
from lama_core.asking.preparation import Prepared, Segment
from lama_core.asking.questions import Question, gather_knowledge
from lama_core.asking.ranking import pad_columns
from lama_core.candidates.columns import Candidates, Columns
from lama_core.datasets import Dataset
from lama_core.errors import UserError
from lama_core.files import whole_file
from lama_core.models.base import BlankFiller
from lama_core.probes.prompts.selection import Ensemble
from lama_core.probes.prompts.study import RelationStudy
from lama_core.probes.prompts.study_files import StudyInfo
from lama_core.runs.block_log import Block
from lama_core.runs.pipeline import PACKAGES, _version
from lama_core.runs.records import FACTS_FILE, RUN_FILE, RelationInfo, RunInfo, runs_dir, write_info
from lama_core.runs.rows import make_rows
from lama_core.runs.table import write_facts


def save_ensemble_run(
    info: StudyInfo,
    studies: Sequence[RelationStudy],
    combination: str,
    method: str,
    dataset: Dataset,
    model: BlankFiller,
    candidates: Candidates,
    *,
    folder: Path | None = None,
) -> RunInfo | None:
    """The ensemble of all relations as a run; None if no relation has it. Saved once.

    folder: where runs are kept, by default the user's own.
    Raises UserError if it can't be written.
    """
    found = [(study, study.ensemble(combination, method)) for study in studies]
    parts = [(study, one[0]) for study, one in found if one is not None]
    if not parts:
        return None
    folder = runs_dir() if folder is None else folder
    weights = [[study.relation.name, ensemble.weights.tolist()] for study, ensemble in parts]
    content = f"{info.identity}\0{combination}\0{method}\0{weights}"
    digest = hashlib.sha256(content.encode()).hexdigest()
    drawn = info.limit is not None and info.seed is not None
    name = f"{combination} {method}" + (f", {info.limit} drawn facts a relation" if drawn else "")
    slugs = [_slug(text) for text in (info.dataset, info.model, f"{combination} {method}")]
    target = folder / "-".join([*slugs, digest[:10]])
    columns = candidates.columns(model.vocabulary)
    questions: list[Question] = []
    segments, blocks, relations = [], [], []
    for number, (study, ensemble) in enumerate(parts):
        asked = _questions(study, ensemble)
        segments.append(_segment(study, columns, len(questions)))
        rows = study.ensemble_rows[study.ensembles.index(ensemble)]
        blocks.append(Block(number, 0, rows))
        questions += asked
        relations.append(_relation_info(study, ensemble))
    knowledge = gather_knowledge(dataset, [study.relation.name for study, _ in parts])
    prepared = Prepared(tuple(questions), tuple(segments))
    run = RunInfo(
        id=target.name,
        folder=target,
        bundled=False,
        digest=digest,
        dataset=info.dataset,
        data_digest=dataset.digest,
        model=model.name,
        model_identity=model.identity,
        model_kind=model.kind,
        prompts=name,
        prompt_kind="template",
        candidates=candidates.name,
        candidates_digest=candidates.digest,
        n_candidates=len(columns.words),
        fold_case=candidates.fold_case,
        context=info.context,  # type: ignore[arg-type]
        ranking=info.ranking,  # type: ignore[arg-type]
        precision=model.identity.rsplit("/", 1)[-1],
        limit=None if drawn else info.limit,
        n=sum(relation.n for relation in relations),
        n_excluded=sum(relation.n_excluded for relation in relations),
        relations=tuple(relations),
        seconds=0.0,
        made=datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        versions=tuple((package, _version(package)) for package in PACKAGES),
    )
    try:
        target.mkdir(parents=True, exist_ok=True)
        with whole_file(target / FACTS_FILE) as part:
            write_facts(make_rows(prepared, blocks, knowledge, model.vocabulary), part)
        write_info(run, target / RUN_FILE)
    except OSError as error:
        raise UserError(f"{target}: the run can't be saved: {error.strerror}.") from error
    return run


def _questions(study: RelationStudy, ensemble: Ensemble) -> list[Question]:
    """The relation's rows: facts that count in the study's order, then the excluded ones."""
    prompt = int(np.argmax(ensemble.weights))
    template = study.pool.prompts[prompt].template
    reasons: list[str | None] = [None] * len(study.test) + [why for _, why in study.excluded]
    facts = [*study.test, *(fact for fact, _ in study.excluded)]
    return [
        # Prompt 0 in every ensemble, so that `compare` pairs the rows of two of them.
        Question(fact, study.relation, 0, fill(template, fact.subject), reason)
        for fact, reason in zip(facts, reasons, strict=True)
    ]


def _segment(study: RelationStudy, columns: Columns, first: int) -> Segment:
    n_facts = len(study.test)
    gold = np.array([columns.index[word] for word in study.objects], dtype=np.int64)
    rows = np.arange(first, first + n_facts)
    return Segment(columns, (), (), rows, gold, pad_columns([()] * n_facts))


def _relation_info(study: RelationStudy, ensemble: Ensemble) -> RelationInfo:
    relation = study.relation
    used = np.argsort(-ensemble.weights, kind="stable")[: np.count_nonzero(ensemble.weights)]
    return RelationInfo(
        relation.name,
        relation.source,
        relation.label,
        relation.type,
        tuple(study.pool.prompts[number].template for number in used),
        len(study.test),
        len(study.excluded),
    )


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") or "run"
