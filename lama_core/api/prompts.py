"""Prompts: list, mine, paraphrase, select, weight and analyse them (Jiang et al. 2020)."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pandas as pd

from lama_core.api.runs import run
from lama_core.datasets import load_dataset
from lama_core.datasets.library.installed import STARTER, prompts_dir
from lama_core.datasets.lpaqa import read_pairs
from lama_core.datasets.passages import read_sentences, starter_files
from lama_core.datasets.prompt_sets import check_templates, load_pool
from lama_core.errors import UserError
from lama_core.files import write_text_atomically
from lama_core.models.cache import load_model
from lama_core.models.protocols import KINDS, Context
from lama_core.papers.jiang2020_scores import make_table
from lama_core.probes.prompts import analyses, mining
from lama_core.probes.prompts.analyses import OTHER as OTHER
from lama_core.probes.prompts.analyses import PATTERNS as PATTERNS
from lama_core.probes.prompts.analyses import AnalyseRequest
from lama_core.probes.prompts.backward import SubjectForm, measure_relation
from lama_core.probes.prompts.mining import SpacyParser
from lama_core.probes.prompts.paper_tables import mean_curves
from lama_core.probes.prompts.refilling import Refiller, paraphrase_by_refilling, refine
from lama_core.probes.prompts.request import PromptFolder, SelectRequest, StudyRequest
from lama_core.probes.prompts.spec import Study, find_study, save_ensembles
from lama_core.probes.prompts.study import RelationStudy
from lama_core.probes.prompts.training_pairs import halve
from lama_core.progress import Progress, Result
from lama_core.requests import Function, Request, argument, option
from lama_core.scoring import shared_fields
from lama_core.scoring.blanks import shows_subject
from lama_core.tables import frame_of

if TYPE_CHECKING:
    from lama_core.runs.info import Run
    from lama_core.types import Fact

Rows = list[dict[str, Any]]
Pairs = Annotated[
    Path | None,
    option(
        "Subject-object pairs: a P*.jsonl file or a folder of them. Default: half of the dataset's "
        "facts."
    ),
]
OutputFolder = Annotated[Path | None, option("Write the prompts to RELATION.jsonl in this folder.")]
NKept = Annotated[int, option("Number of prompts to keep.", ge=1)]


@dataclass(frozen=True)
class PlainRows:
    """Rows of plain values."""

    rows: Rows

    def to_json(self) -> Rows:
        """Return the rows."""
        return self.rows


@dataclass(frozen=True, kw_only=True)
class ListRequest(Request, command="prompts list", python="list_prompts"):
    """The fields of `prompts list`."""

    dataset: shared_fields.Dataset = STARTER
    relations: shared_fields.Relations = ()
    prompts: PromptFolder = None


def _list(request: ListRequest) -> PlainRows:
    folder = request.prompts and prompts_dir(request.prompts)
    loaded = load_dataset(request.dataset)
    chosen = [loaded.relation(name) for name in request.relations] or list(loaded.relations)
    rows: Rows = []
    for relation in chosen:
        pool = load_pool(relation, folder=folder)
        for note in pool.notes:
            request.on_note(note)
        rows += [
            {
                "relation": relation.name,
                "template": entry.prompt.template,
                "origins": sorted(entry.origins),
                "weight": entry.prompt.weight,
            }
            for entry in pool.entries
        ]
    return PlainRows(rows)


list_prompts = Function(
    ListRequest,
    _list,
    frame_of,
    """List each relation's prompts with their origins and published weights.

    Returns:
        A DataFrame with a row for each relation and prompt.

    Raises:
        UserError: If the dataset or a relation is unknown.
    """,
)


@dataclass(frozen=True, kw_only=True)
class MineRequest(Request, command="prompts mine", python="mine_prompts"):
    """The fields of `prompts mine`."""

    relation: Annotated[str, argument("Name of the relation, such as P36.")] = field(kw_only=False)
    text: Annotated[
        Sequence[str],
        option(
            "A text file in UTF-8; repeat for several. Default: the embedded model's training "
            "text.",
            selects=True,
        ),
    ] = ()
    pairs: Pairs = None
    dataset: shared_fields.Dataset = STARTER
    method: Annotated[
        Literal["middle", "both", "pooled"],
        option(
            "middle: the words between subject and object. both (as in the paper): the most "
            "frequent middle-word prompts, then --dependency prompts found only by dependency "
            "paths. pooled: the most frequent prompts of both kinds together."
        ),
    ] = "middle"
    pipeline: Annotated[str, option("spaCy pipeline for dependency paths.")] = "en_core_web_sm"
    keep: NKept = 40
    dependency: Annotated[
        int, option("Number of prompts from dependency paths, for --method both.", ge=0)
    ] = 10
    out: OutputFolder = None


def _mine(request: MineRequest) -> PlainRows:
    parser = None if request.method == "middle" else SpacyParser(request.pipeline)
    facts = _pairs(request, request.relation)
    paths = [Path(text) for text in request.text] or starter_files()
    found = mining.mine_from_text(
        (sentence for path in paths for sentence in read_sentences(path)),
        facts,
        parser=parser,
        n_kept=request.keep,
        n_of_path=None if request.method == "pooled" else request.dependency,
        on_sentence=lambda n: (
            request.on_progress(Progress("Reading", n, None, "sentences")) if n % 500 == 0 else None
        ),
    )
    dropped = ", ".join(f"{number:,} {reason}" for reason, number in found.n_dropped)
    request.on_note(
        f"{found.n_sentences:,} sentences, {found.n_matches:,} contain a pair"
        f"{f'; dropped: {dropped}' if dropped else ''}"
    )
    rows: Rows = [
        {"template": mined.prompt.template, "count": mined.count, "methods": list(mined.methods)}
        for mined in found.kept
    ]
    _write(request, rows, request.relation)
    return PlainRows(rows)


mine_prompts = Function(
    MineRequest,
    _mine,
    frame_of,
    """Mine prompts from the sentences of a text that contain a subject and its object.

    Returns:
        A DataFrame with a row for each prompt, the most frequent first.

    Raises:
        UserError: If the relation is unknown, a text can't be read, or spaCy isn't installed.
    """,
)


@dataclass(frozen=True, kw_only=True)
class ParaphraseRequest(Request, command="prompts paraphrase", python="paraphrase_prompt"):
    """The fields of `prompts paraphrase`."""

    template: Annotated[str, argument("A prompt with [X] and [Y].")] = field(kw_only=False)
    by: Annotated[
        Literal["refill", "refine", "refine-words", "translate"],
        option(
            "refill: a masked model replaces words of the prompt. refine (as in the paper): it "
            "replaces each word and punctuation mark between subject and object until none "
            "changes. refine-words: the same for every word of the prompt, without punctuation. "
            "translate: translate to another language and back."
        ),
    ] = "refill"
    model: shared_fields.ModelName = shared_fields.DEFAULT_MODEL
    relation: Annotated[
        str | None, option("Relation whose facts fill the prompt; not needed for translate.")
    ] = None
    dataset: shared_fields.Dataset = STARTER
    pairs: Pairs = None
    there: Annotated[str, option("Model that translates the prompt: hub name or folder.")] = (
        "Helsinki-NLP/opus-mt-en-de"
    )
    back: Annotated[str, option("Model that translates it back: hub name or folder.")] = (
        "Helsinki-NLP/opus-mt-de-en"
    )
    beams: Annotated[int, option("Number of candidates in each step (B).", ge=1)] = 7
    keep: NKept = 40
    out: OutputFolder = None


def _paraphrase(request: ParaphraseRequest) -> PlainRows:
    check_templates([request.template])
    rows = _translated(request) if request.by == "translate" else _refilled(request)
    _write(request, rows, request.relation or "paraphrases")
    return PlainRows(rows)


def _translated(request: ParaphraseRequest) -> Rows:
    from lama_core.models.auxiliary.translator import HubTranslator  # imports transformers
    from lama_core.probes.prompts.refilling import paraphrase_by_translation

    found = paraphrase_by_translation(
        request.template,
        HubTranslator(request.there),
        HubTranslator(request.back),
        n_beams=request.beams,
        n_kept=request.keep,
    )
    return [asdict(paraphrase) for paraphrase in found]


def _refilled(request: ParaphraseRequest) -> Rows:
    if request.relation is None:
        raise UserError("No facts to fill the prompt with: name a relation with --relation.")
    refiller = Refiller(
        load_model(request.model, on_progress=request.on_progress),
        _pairs(request, request.relation),
        form="paper" if request.by == "refine" else "words",
    )
    if request.by != "refill":
        steps = refine(request.template, refiller)
        return [{"template": step, "log_prob": None, "via": ""} for step in steps]
    found = paraphrase_by_refilling(
        request.template, refiller, n_words=request.beams, n_kept=request.keep
    )
    return [asdict(paraphrase) for paraphrase in found]


paraphrase_prompt = Function(
    ParaphraseRequest,
    _paraphrase,
    frame_of,
    """Paraphrase a prompt with a masked model, or by back-translation.

    Returns:
        A DataFrame with a row for each paraphrase.

    Raises:
        UserError: If the template or relation is invalid, or a model can't be loaded.
    """,
)


def _pairs(request: MineRequest | ParaphraseRequest, relation: str) -> "tuple[Fact, ...]":
    """Return the pairs of `request.pairs`; by default, the training half of the dataset's facts."""
    if request.pairs is None:
        loaded = load_dataset(request.dataset)
        return halve(loaded.facts_of(loaded.relation(relation).name))[0]
    facts, report = read_pairs(request.pairs, relation)
    for dropped in report.dropped:
        request.on_note(str(dropped))
    return facts


def _write(request: MineRequest | ParaphraseRequest, rows: Rows, relation: str) -> None:
    """Write prompts to `out/RELATION.jsonl` in LPAQA's format."""
    if request.out is None:
        return
    path = request.out / f"{relation}.jsonl"
    lines = [json.dumps({"template": row["template"]}, ensure_ascii=False) + "\n" for row in rows]
    write_text_atomically(path, "".join(lines))
    request.on_note(f"Wrote {len(rows)} prompts to {path}")


@dataclass(frozen=True)
class StudyResult:
    """A finished study of prompts.

    Attributes:
        study: The run of the study.
        relations: The measurements of each relation, in natural order.
        runs: The ensembles that were saved as runs.
    """

    study: Study
    relations: tuple[RelationStudy, ...]
    runs: "tuple[Run, ...]" = ()

    @property
    def table(self) -> Sequence[Any]:
        """A row for each set of prompts and method, over all relations (`jiang2020_scores`)."""
        return make_table(self.relations, self.relations[0].model)

    @property
    def frame(self) -> pd.DataFrame:
        """A row for each set of prompts and method."""
        return pd.DataFrame([asdict(row) for row in self.table])

    def to_json(self) -> dict[str, Any]:
        """Return what `prompts fit --json` prints."""
        return {
            "table": [asdict(row) for row in self.table],
            "relations": [asdict(score) for study in self.relations for score in study.scores()],
            "ensembles": [
                {
                    "relation": study.relation.name,
                    "set": fit.combination,
                    "method": fit.method,
                    "objective": fit.objective,
                    "n_epochs": fit.n_epochs,
                    "weights": {
                        template: round(float(weight), 6)
                        for template, weight in zip(study.pool.templates, fit.weights, strict=True)
                        if weight > 0
                    },
                }
                for study in self.relations
                for fit in study.ensembles
            ],
            "runs": [run.info.id for run in self.runs],
        }

    def prompts(self) -> Rows:
        """Return a row for each relation and prompt, ordered by accuracy on the training facts."""
        context = self.study.info.context
        return [row for relation in self.relations for row in _prompt_rows(relation, context)]


def _select(request: SelectRequest) -> StudyResult:
    study = Study(run(request).runs[0])
    return StudyResult(study, tuple(study.relation(name) for name in study.relations))


def _fit(request: StudyRequest) -> StudyResult:
    result = _select(request)
    if not request.save_runs:
        return result
    runs = save_ensembles(result.study, request, folder=request.out)
    for one in runs:
        request.on_note(f"run {one.info.id}")
        request.on_progress(Progress("Saved", 1, 1, result=Result("run", one.info.id)))
    return replace(result, runs=runs)


def _prompt_rows(study: RelationStudy, context: Context) -> Rows:
    order = sorted(
        range(len(study.pool.entries)), key=lambda number: -study.train_accuracies[number]
    )
    only = study.only_right.sum(axis=1)
    return [
        {
            "relation": study.relation.name,
            "template": study.pool.prompts[number].template,
            "origin": study.pool.prompts[number].origin,
            "train": float(study.train_accuracies[number]),
            "test": float(study.test_accuracies[number]),
            "only_right": int(only[number]),
            "shows_subject": shows_subject(study.pool.prompts[number].template, context),
        }
        for number in order
    ]


select_prompts = Function(
    SelectRequest,
    _select,
    lambda result: pd.DataFrame(result.prompts()),
    """Measure each prompt's accuracy on training and test facts.

    Returns:
        A DataFrame with a row for each relation and prompt, the best on the training facts first.

    Raises:
        UserError: If the dataset, a relation or the model is unknown, or no prompt can be scored.
    """,
)
study = Function(
    StudyRequest,
    _fit,
    lambda result: result,
    """Select and weight prompts: Top-K and optimised ensembles, micro and macro accuracy.

    Returns:
        The study; `.frame` has a row for each set of prompts and method.

    Raises:
        UserError: If the dataset, a relation or the model is unknown, or no prompt can be scored.
    """,
)


@dataclass(frozen=True)
class StudyAnalysis:
    """Analyses of the prompts of a study.

    Attributes:
        divergence: Divergence of pairs of prompts, in bins of edit distance.
        found: `distance`, `divergence`, `curves`; if requested, `transfer` and `patterns`.
    """

    request: AnalyseRequest
    study: Study
    divergence: Any
    found: dict[str, Any]

    @property
    def frame(self) -> pd.DataFrame:
        """A row for each bin of edit distance."""
        return pd.DataFrame([asdict(one) for one in self.divergence.bins])

    def to_json(self) -> dict[str, Any]:
        """Return what `prompts analyse --json` prints."""
        return self.found


def _analyse(request: AnalyseRequest) -> StudyAnalysis:
    study = find_study(request.study)
    chosen = request.combination
    relations = [study.relation(name) for name in study.relations]
    pairs = [
        pair
        for relation in relations
        for pair in analyses.prompt_pairs(relation, chosen, request.distance)
    ]
    divergence = analyses.measure_divergence(pairs)
    found: dict[str, Any] = {
        "distance": request.distance,
        "divergence": asdict(divergence),
        "curves": mean_curves(relations),
    }
    if request.other is not None:
        other = find_study(request.other)
        found["transfer"] = [
            asdict(analyses.transfer_weights(one, other.relation(one.relation.name), chosen))
            for one in relations
            if one.relation.name in other.relations and one.ensemble(chosen, "optimised")
        ]
    if request.patterns:
        parser = SpacyParser()
        found["patterns"] = [
            asdict(row)
            for relation in relations
            for row in analyses.rank_patterns(relation, parser, chosen)
        ]
    return StudyAnalysis(request, study, divergence, found)


analyse_prompts = Function(
    AnalyseRequest,
    _analyse,
    lambda analysis: analysis.frame,
    """Analyse a study: divergence by edit distance, Top-K curves, another model's prompt weights.

    Returns:
        A DataFrame with a row for each bin of edit distance.

    Raises:
        UserError: If a study is missing, or has no prompts of this set.
    """,
)


@dataclass(frozen=True, kw_only=True)
class BothWaysRequest(Request, command="prompts both-ways", python="both_ways"):
    """The fields of `prompts both-ways`."""

    study: Annotated[str, argument("Name or folder of a study.")] = field(kw_only=False)
    relations: shared_fields.Relations = ()
    n_prompts: Annotated[
        int, option("Number of most accurate prompts to use.", name="--prompts", ge=1)
    ] = 3
    n_objects: Annotated[
        int, option("Number of most probable objects to query backward.", name="--objects", ge=1)
    ] = 5
    subject: Annotated[
        SubjectForm,
        option(
            "How to score a subject of several subword tokens: together (as in the paper: all "
            "masked at once, mean) or in-turn (left to right, sum)."
        ),
    ] = "together"
    n_facts: Annotated[
        int, option("Maximum number of training facts, and of test facts.", name="--facts", ge=1)
    ] = 30


def _both_ways(request: BothWaysRequest) -> PlainRows:
    study = find_study(request.study)
    model = load_model(
        study.info.model, precision=study.info.precision, on_progress=request.on_progress
    )
    if not KINDS[model.kind].sees_both:
        raise UserError(
            f"{model.name} can't use the text after a blank. Choose the study of a masked model."
        )
    rows = []
    for name in request.relations or study.relations:

        def report(done: int, total: int, stage: str = f"{name}: querying backward") -> None:
            request.on_progress(Progress(stage, done, total))

        found = measure_relation(
            model,
            study.relation(name),
            study.candidates,
            "all",
            n_prompts=request.n_prompts,
            n_facts=request.n_facts,
            n_objects=request.n_objects,
            subject=request.subject,
            on_fact=report,
        )
        rows.append(asdict(found))
    return PlainRows(rows)


both_ways = Function(
    BothWaysRequest,
    _both_ways,
    frame_of,
    """Measure P@1 with and without adding the log-probability of the subject given the object.

    Returns:
        A DataFrame with a row for each relation: accuracy forward, and forward and backward.

    Raises:
        UserError: If the study is missing, or its model isn't a masked model.
    """,
)
