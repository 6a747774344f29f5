"""`prompts list`, `mine` and `paraphrase`: where prompts come from."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lama_core.cli import options, show
from lama_core.rounding import fixed

if TYPE_CHECKING:
    from lama_core.types import Fact


def list_prompts(
    dataset: options.Dataset = "starter",
    relations: options.Relations = None,
    prompts: options.Prompts = None,
    as_json: options.Json = False,
) -> None:
    """The prompts of each relation: where they come from, and their published weights."""
    from lama_core.datasets import load_dataset
    from lama_core.datasets.library.installed import prompts_dir
    from lama_core.datasets.prompt_sets import load_pool

    folder = prompts and prompts_dir(prompts)
    loaded = load_dataset(dataset)
    chosen = [loaded.relation(name) for name in relations or ()] or list(loaded.relations)
    rows: list[dict[str, Any]] = []
    for one in chosen:
        pool = load_pool(one, folder=folder)
        for note in pool.notes:
            show.say(note)
        rows += [
            {
                "relation": one.name,
                "template": entry.prompt.template,
                "origins": sorted(entry.origins),
                "weight": entry.prompt.weight,
            }
            for entry in pool.entries
        ]
    if as_json:
        show.print_json(rows)
        return
    show.print_table(
        ("relation", "prompt", "from", "weight"),
        [
            (
                row["relation"],
                row["template"],
                ", ".join(row["origins"]),
                "" if row["weight"] is None else fixed(row["weight"], 4),
            )
            for row in rows
        ],
    )


def mine(
    relation: Annotated[str, typer.Argument(help="The relation's name, such as P36.")],
    text: Annotated[
        list[Path] | None,
        typer.Option(help="A UTF-8 text; repeat it for several. Without it: the model's corpus."),
    ] = None,
    pairs: Annotated[
        Path | None,
        typer.Option(
            help="Pairs: a P*.jsonl or a folder of them; else half of the dataset's facts."
        ),
    ] = None,
    dataset: options.Dataset = "starter",
    method: Annotated[
        str,
        typer.Option(
            help="middle: middle words. both, as in the paper: the most frequent of middle words, "
            "then --dependency of those that only dependency paths give. pooled: the most "
            "frequent, found in whichever way."
        ),
    ] = "middle",
    pipeline: Annotated[
        str, typer.Option(help="spaCy's pipeline for dependency paths.")
    ] = "en_core_web_sm",
    keep: Annotated[int, typer.Option(help="How many prompts to keep (T).", min=1)] = 40,
    dependency: Annotated[
        int, typer.Option(help="How many of them are of dependency paths (both).", min=0)
    ] = 10,
    out: Annotated[
        Path | None, typer.Option(help="Write them to this folder as RELATION.jsonl.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Find prompts in a text, between or around subjects and their objects."""
    from lama_core.datasets.corpus import read_sentences, starter_files
    from lama_core.errors import choose
    from lama_core.probes.prompts import mining
    from lama_core.probes.prompts.mining import SpacyParser
    from lama_core.progress import Progress

    choose(method, ("middle", "both", "pooled"), "method")
    parser = None if method == "middle" else SpacyParser(pipeline)
    facts = _pairs(relation, pairs, dataset)
    paths = text or starter_files()
    sentences = (sentence for path in paths for sentence in read_sentences(path))
    with show.progress() as report:
        found = mining.mine(
            sentences,
            facts,
            parser=parser,
            n_kept=keep,
            n_of_path=None if method == "pooled" else dependency,
            on_sentence=lambda n: (
                report(Progress("Reading", n, None, "sentences")) if n % 500 == 0 else None
            ),
        )
    dropped = ", ".join(f"{number:,} {reason}" for reason, number in found.n_dropped)
    show.say(
        f"{found.n_sentences:,} sentences, {found.n_matches:,} with a pair"
        f"{f'; dropped: {dropped}' if dropped else ''}"
    )
    rows: list[dict[str, Any]] = [
        {"template": one.prompt.template, "count": one.count, "methods": list(one.methods)}
        for one in found.kept
    ]
    _write_templates([one.prompt.template for one in found.kept], out, relation)
    if as_json:
        show.print_json(rows)
        return
    show.print_table(
        ("prompt", "count", "found by"),
        [(row["template"], row["count"], ", ".join(row["methods"])) for row in rows],
    )


def paraphrase(
    template: Annotated[str, typer.Argument(help="A prompt with [X] and [Y].")],
    by: Annotated[
        str,
        typer.Option(
            help="refill: a masked model refills the prompt's own words; refine: each word and "
            "sign between subject and object, until it would change none (the paper's); "
            "refine-words: so, but every word of the prompt, and no sign; translate: there and "
            "back again."
        ),
    ] = "refill",
    model: options.Model = "minilm-mlm",
    relation: Annotated[
        str | None, typer.Option(help="Whose facts fill the prompt (not to translate).")
    ] = None,
    dataset: options.Dataset = "starter",
    pairs: Annotated[
        Path | None,
        typer.Option(help="Pairs: a P*.jsonl or a folder; else half of the dataset's facts."),
    ] = None,
    there: Annotated[
        str, typer.Option(help="Model that translates the prompt: hub name or folder.")
    ] = "Helsinki-NLP/opus-mt-en-de",
    back: Annotated[
        str, typer.Option(help="Model that translates it back: hub name or folder.")
    ] = "Helsinki-NLP/opus-mt-de-en",
    beams: Annotated[int, typer.Option(help="Candidates each way (B).", min=1)] = 7,
    keep: Annotated[int, typer.Option(help="How many paraphrases to keep.", min=1)] = 40,
    out: Annotated[
        Path | None, typer.Option(help="Write them to this folder as RELATION.jsonl.")
    ] = None,
    device: options.Device = None,
    as_json: options.Json = False,
) -> None:
    """Other ways to say a prompt: by a masked model, or by translating it there and back."""
    from lama_core.datasets.prompt_sets import check_templates
    from lama_core.errors import UserError, choose

    check_templates([template])
    choose(by, ("refill", "refine", "refine-words", "translate"), "way")
    if by == "translate":
        from lama_core.models.translator import HubTranslator
        from lama_core.probes.prompts.refilling import paraphrase_by_translation

        found = paraphrase_by_translation(
            template, HubTranslator(there), HubTranslator(back), n_beams=beams, n_kept=keep
        )
        rows = [asdict(one) for one in found.kept]
    else:
        from lama_core.models.loader import load_model
        from lama_core.probes.prompts.refilling import Refiller, paraphrase_by_refilling, refine

        if relation is None:
            raise UserError("Name the --relation whose facts fill the prompt.")
        with show.progress() as on_progress:
            refiller = Refiller(
                load_model(model, on_progress=on_progress),
                _pairs(relation, pairs, dataset),
                form="paper" if by == "refine" else "words",
            )
        if by != "refill":
            steps = refine(template, refiller).steps
            rows = [{"template": step, "log_prob": None, "via": ""} for step in steps]
        else:
            found = paraphrase_by_refilling(template, refiller, n_words=beams, n_kept=keep)
            rows = [asdict(one) for one in found.kept]
    _write_templates([str(row["template"]) for row in rows], out, relation or "paraphrases")
    if as_json:
        show.print_json(rows)
        return
    show.print_table(
        ("prompt", "log-prob", "by way of"),
        [
            (
                row["template"],
                "" if row["log_prob"] is None else fixed(row["log_prob"], 2),
                row["via"],
            )
            for row in rows
        ],
    )


def _pairs(relation: str, pairs: Path | None, dataset: str) -> "tuple[Fact, ...]":
    """The pairs of a file or folder, or the half of the dataset's facts that trains."""
    from lama_core.datasets import load_dataset
    from lama_core.datasets.lpaqa import read_pairs
    from lama_core.probes.prompts.training_pairs import halve

    if pairs is None:
        loaded = load_dataset(dataset)
        return halve(loaded.facts_of(loaded.relation(relation).name))[0]
    facts, report = read_pairs(pairs, relation)
    for dropped in report.dropped:
        show.say(str(dropped))
    return facts


def _write_templates(templates: list[str], out: Path | None, relation: str) -> None:
    """Write prompts as an LPAQA file, `out/RELATION.jsonl`."""
    from lama_core.files import write_text_whole

    if out is None:
        return
    path = out / f"{relation}.jsonl"
    lines = [json.dumps({"template": text}, ensure_ascii=False) + "\n" for text in templates]
    write_text_whole(path, "".join(lines))
    show.say(f"{len(templates)} prompts written to {path}")
