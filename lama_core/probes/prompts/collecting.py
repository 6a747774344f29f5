"""List, mine and paraphrase prompts (Jiang et al. 2020)."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import pandas as pd

from lama_core.datasets import load_dataset
from lama_core.datasets.library.installed import STARTER, prompts_dir
from lama_core.datasets.lpaqa import read_pairs
from lama_core.datasets.passages import read_sentences, starter_files
from lama_core.datasets.prompt_sets import check_templates, load_pool
from lama_core.errors import UserError
from lama_core.files import write_text_atomically
from lama_core.models.cache import load_model
from lama_core.probes.prompts.mining import SpacyParser, mine_from_text
from lama_core.probes.prompts.refilling import (
    Refiller,
    paraphrase_by_refilling,
    paraphrase_by_translation,
    refine,
)
from lama_core.probes.prompts.request import PromptFolder
from lama_core.probes.prompts.training_pairs import halve
from lama_core.progress import Progress
from lama_core.requests import Function, Request, argument, option
from lama_core.scoring import shared_fields
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


@dataclass(frozen=True, kw_only=True)
class ListRequest(Request, command="prompts list", python="list_prompts"):
    """The fields of `prompts list`."""

    dataset: shared_fields.Dataset = STARTER
    relations: shared_fields.Relations = ()
    prompts: PromptFolder = None


def _list(request: ListRequest) -> Rows:
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
    return rows


list_prompts = Function(
    ListRequest,
    _list,
    pd.DataFrame,
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
        Literal["middle", "both"],
        option(
            "middle: the words between subject and object. both (as in the paper): the most "
            "frequent middle-word prompts, then --dependency prompts found only by dependency "
            "paths."
        ),
    ] = "middle"
    pipeline: Annotated[str, option("spaCy pipeline for dependency paths.")] = "en_core_web_sm"
    keep: NKept = 40
    dependency: Annotated[
        int, option("Number of prompts from dependency paths, for --method both.", ge=0)
    ] = 10
    out: OutputFolder = None


def _mine(request: MineRequest) -> Rows:
    parser = None if request.method == "middle" else SpacyParser(request.pipeline)
    facts = _pairs(request, request.relation)
    paths = [Path(text) for text in request.text] or starter_files()
    found = mine_from_text(
        (sentence for path in paths for sentence in read_sentences(path)),
        facts,
        parser=parser,
        n_kept=request.keep,
        n_of_path=request.dependency,
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
    return rows


mine_prompts = Function(
    MineRequest,
    _mine,
    pd.DataFrame,
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
        Literal["refill", "refine", "translate"],
        option(
            "refill: a masked model replaces words of the prompt. refine (as in the paper): it "
            "replaces each word and punctuation mark between subject and object until none "
            "changes. translate: translate to another language and back."
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


def _paraphrase(request: ParaphraseRequest) -> Rows:
    check_templates([request.template])
    if request.by == "translate":
        from lama_core.models.auxiliary.translator import HubTranslator  # imports transformers

        found = paraphrase_by_translation(
            request.template,
            HubTranslator(request.there),
            HubTranslator(request.back),
            n_beams=request.beams,
            n_kept=request.keep,
        )
        rows = [asdict(paraphrase) for paraphrase in found]
    elif request.relation is None:
        raise UserError("No facts to fill the prompt with: name a relation with --relation.")
    else:
        refiller = Refiller(
            load_model(request.model, on_progress=request.on_progress),
            _pairs(request, request.relation),
            form="paper" if request.by == "refine" else "words",
        )
        if request.by == "refill":
            found = paraphrase_by_refilling(
                request.template, refiller, n_words=request.beams, n_kept=request.keep
            )
            rows = [asdict(paraphrase) for paraphrase in found]
        else:
            rows = [
                {"template": step, "log_prob": None, "via": ""}
                for step in refine(request.template, refiller)
            ]
    _write(request, rows, request.relation or "paraphrases")
    return rows


paraphrase_prompt = Function(
    ParaphraseRequest,
    _paraphrase,
    pd.DataFrame,
    """Paraphrase a prompt with a masked model, or by back-translation.

    Returns:
        A DataFrame with a row for each paraphrase.

    Raises:
        UserError: If the template or relation is invalid, or a model can't be loaded.
    """,
)


def _pairs(request: MineRequest | ParaphraseRequest, relation: str) -> tuple[Fact, ...]:
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
