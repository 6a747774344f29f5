"""`prompts`: list, mine, paraphrase, select and fit them (Jiang et al. 2020)."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from lama_core.lpaqa.running import StudyRequest
    from lama_core.lpaqa.study import OnStage, RelationStudy
    from lama_core.ranking import Ranking
    from lama_core.types import Fact

Dataset = Annotated[str, typer.Option(help="A dataset's name, or a folder in LAMA's layout.")]
Relation = Annotated[
    list[str] | None, typer.Option(help="Only this relation; repeat it for several.")
]
Prompts = Annotated[
    Path | None,
    typer.Option(help="A folder in LPAQA's layout; else the dataset's own prompts."),
]
Own = Annotated[
    list[str] | None,
    typer.Option("--template", help="Your own prompt with [X] and [Y]; repeat it for several."),
]
Training = Annotated[
    Path | None,
    typer.Option(
        help="A folder of training pairs (one P*.jsonl a relation); else half of the facts train."
    ),
]
Model = Annotated[str, typer.Option(help="A model's name, folder or hub name.")]
Words = Annotated[
    str | None,
    typer.Option(
        help="full, common, lama or file:PATH; else the dataset's published list, or common."
    ),
]
Seen = Annotated[
    str | None, typer.Option(help="What a causal model sees: left (the default) or both.")
]
Counting = Annotated[
    str, typer.Option(help="raw (as in the paper) or filtered: without the other valid objects.")
]
Limit = Annotated[int | None, typer.Option(help="At most so many test facts of each relation.")]
TrainLimit = Annotated[
    int | None, typer.Option(help="At most so many training facts of each relation.")
]
Seed = Annotated[
    int | None,
    typer.Option(help="Draw the facts of a limit at random by this seed; else the first."),
]
Drop = Annotated[
    bool, typer.Option(help="Leave out training pairs that are test facts, instead of refusing.")
]
Out = Annotated[Path | None, typer.Option(help="Folder of the studies; by default the user's own.")]
Keep = Annotated[
    bool, typer.Option(help="Keep the distributions on disk, for other weights later.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def register(app: typer.Typer) -> None:
    """Add the command and its parts."""
    prompts = typer.Typer(no_args_is_help=True)
    example = "Example: python -m lama_core prompts "
    prompts.command("list", epilog=f"{example}list --dataset starter --relation P36")(list_prompts)
    prompts.command(
        "mine", epilog=f"{example}mine P36 --pairs pairs.jsonl --text my-text.txt --out mine"
    )(mine)
    prompts.command(
        "paraphrase", epilog=f'{example}paraphrase "[X] was born in [Y] ." --relation P19'
    )(paraphrase)
    prompts.command("analyse", epilog=f"{example}analyse lama-minilm_mlm-0123456789")(analyse)
    prompts.command("select", epilog=f"{example}select --dataset starter --relation P36")(select)
    prompts.command("fit", epilog=f"{example}fit --dataset starter --relation P36")(fit)
    prompts.command("both-ways", epilog=f"{example}both-ways starter-minilm_mlm --relation P36")(
        both_ways
    )
    app.add_typer(prompts, name="prompts", help="Mine, paraphrase, select and ensemble prompts.")


def list_prompts(
    dataset: Dataset = "starter",
    relation: Relation = None,
    prompts: Prompts = None,
    as_json: Json = False,
) -> None:
    """The prompts of each relation: where they come from, and their published weights."""
    from lama_core.cli import show
    from lama_core.datasets import load_dataset
    from lama_core.lpaqa.prompt_sets import load_pool

    loaded = load_dataset(dataset)
    chosen = [loaded.relation(name) for name in relation or ()] or list(loaded.relations)
    rows: list[dict[str, Any]] = []
    for one in chosen:
        pool = load_pool(one, folder=prompts)
        for note in pool.notes:
            _say(note)
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
                "" if row["weight"] is None else f"{row['weight']:.4f}",
            )
            for row in rows
        ],
        right=("weight",),
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
    dataset: Dataset = "starter",
    method: Annotated[str, typer.Option(help="middle, or both: dependency paths too.")] = "middle",
    pipeline: Annotated[
        str, typer.Option(help="spaCy's pipeline for dependency paths.")
    ] = "en_core_web_sm",
    keep: Annotated[int, typer.Option(help="How many prompts to keep.", min=1)] = 40,
    out: Annotated[
        Path | None, typer.Option(help="Write them to this folder as RELATION.jsonl.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Find prompts in a text, between or around subjects and their objects."""
    from lama_core.cli import show
    from lama_core.errors import UserError
    from lama_core.lpaqa import mining
    from lama_core.lpaqa.parsing import SpacyParser

    if method not in ("middle", "both"):
        raise UserError(f"Unknown method {method!r}: choose middle or both.")
    parser = SpacyParser(pipeline) if method == "both" else None
    facts = _pairs(relation, pairs, dataset)
    paths = text or _corpus_files()
    sentences = (sentence for path in paths for sentence in mining.read_sentences(path))
    with show.progress() as report:
        found = mining.mine(
            sentences,
            facts,
            parser=parser,
            n_kept=keep,
            on_sentence=lambda n: report("Reading sentences", n, None) if n % 500 == 0 else None,
        )
    dropped = ", ".join(f"{number:,} {reason}" for reason, number in found.n_dropped)
    _say(
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
        right=("count",),
    )


def paraphrase(
    template: Annotated[str, typer.Argument(help="A prompt with [X] and [Y].")],
    by: Annotated[
        str,
        typer.Option(
            help="refill: a masked model refills the prompt's own words; refine: until it would "
            "change none; translate: there and back again."
        ),
    ] = "refill",
    model: Model = "minilm-mlm",
    relation: Annotated[
        str | None, typer.Option(help="Whose facts fill the prompt (refill and refine).")
    ] = None,
    dataset: Dataset = "starter",
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
    as_json: Json = False,
) -> None:
    """Other ways to say a prompt: by a masked model, or by translating it there and back."""
    from lama_core.cli import show
    from lama_core.errors import UserError
    from lama_core.lpaqa.prompt_sets import check_templates

    check_templates([template])
    if by not in ("refill", "refine", "translate"):
        raise UserError(f"Unknown way {by!r}: choose refill, refine or translate.")
    if by == "translate":
        from lama_core.lpaqa.translation import HubTranslator, paraphrase_by_translation

        found = paraphrase_by_translation(
            template, HubTranslator(there), HubTranslator(back), n_beams=beams, n_kept=keep
        )
        rows = [asdict(one) for one in found.kept]
    else:
        from lama_core.lpaqa.refilling import Refiller, paraphrase_by_refilling, refine
        from lama_core.models.loader import load_model

        if relation is None:
            raise UserError("Name the --relation whose facts fill the prompt.")
        with show.progress() as on_progress:
            refiller = Refiller(
                load_model(model, on_progress=on_progress), _pairs(relation, pairs, dataset)
            )
        if by == "refine":
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
                "" if row["log_prob"] is None else f"{row['log_prob']:.2f}",
                row["via"],
            )
            for row in rows
        ],
        right=("log-prob",),
    )


def analyse(
    study: Annotated[str, typer.Argument(help="A study's name or folder.")],
    other: Annotated[
        str | None, typer.Option(help="Another model's study, whose weights are tried on this one.")
    ] = None,
    patterns: Annotated[
        bool, typer.Option(help="Ranks by part-of-speech pattern too (needs spaCy).")
    ] = False,
    combination: Annotated[str, typer.Option("--set", help="Which prompts.")] = "mine",
    as_json: Json = False,
) -> None:
    """Divergence against edit distance, Top-K curves, weights of another model, patterns."""
    from lama_core.cli import show
    from lama_core.lpaqa import analyses
    from lama_core.lpaqa.study_files import find_study, load_relation

    info = find_study(study)
    studies = [load_relation(info, name) for name in info.relations()]
    pairs = [pair for one in studies for pair in analyses.prompt_pairs(one, combination)]
    found = analyses.measure_divergence(pairs)
    result: dict[str, Any] = {"divergence": asdict(found), "curves": _mean_curves(studies)}
    if other is not None:
        there = find_study(other)
        common = [name for name in info.relations() if name in there.relations()]
        by_name = {one.relation.name: one for one in studies}
        result["transfer"] = [
            asdict(
                analyses.transfer_weights(by_name[name], load_relation(there, name), combination)
            )
            for name in common
            if by_name[name].ensemble(combination, "optimised")
        ]
    if patterns:
        from lama_core.lpaqa.parsing import SpacyParser

        parser = SpacyParser()
        result["patterns"] = [
            asdict(row) for one in studies for row in analyses.rank_patterns(one, parser)
        ]
    if as_json:
        show.print_json(_without_nan(result))
        return
    show.print_table(
        ("edit distance", "pairs", "mean divergence", "quartiles"),
        [
            (
                f"{one.low:.1f} to {one.high:.1f}",
                one.n_pairs,
                _percent(one.mean),
                " / ".join(_percent(value) for value in one.quartiles),
            )
            for one in found.bins
        ],
        title=f"{info.label}: divergence of prompts, Pearson {found.correlation:.2f} "
        "(the paper's: 0.25)",
        right=("pairs", "mean divergence"),
    )
    for (name, kind), values in result["curves"].items():
        shown = ", ".join(f"{k}: {_percent(values[k - 1])}" for k in (1, 2, 3, 5, 10, 20, 29)
                          if k <= len(values))  # fmt: skip
        print(f"Top-K of {name}, {kind}: {shown}")
    if result.get("transfer"):
        own = sum(row["own"] for row in result["transfer"]) / len(result["transfer"])
        foreign = sum(row["other"] for row in result["transfer"]) / len(result["transfer"])
        print(f"Own weights {_percent(own)}, the other model's {_percent(foreign)}")


def both_ways(
    study: Annotated[str, typer.Argument(help="A study's name or folder.")],
    relation: Relation = None,
    n_prompts: Annotated[
        int, typer.Option("--prompts", help="How many of the best prompts.", min=1)
    ] = 3,
    n_objects: Annotated[
        int, typer.Option("--objects", help="How many of the likeliest objects are asked back.")
    ] = 10,
    n_facts: Annotated[
        int, typer.Option("--facts", help="At most so many training and test facts.", min=1)
    ] = 30,
    as_json: Json = False,
) -> None:
    """Forward and backward: does it help that the subject follows from the object too?"""
    from lama_core.cli import show
    from lama_core.errors import UserError
    from lama_core.lpaqa.asking import make_asked
    from lama_core.lpaqa.backward import measure_both_ways
    from lama_core.lpaqa.selection import order_of
    from lama_core.lpaqa.study_files import find_study, load_relation, read_candidates
    from lama_core.models.loader import load_model

    info = find_study(study)
    words = read_candidates(info)
    rows = []
    with show.progress() as report:
        model = load_model(info.model, on_progress=report)
        if model.kind != "masked":
            raise UserError(f"{model.name} sees no right side: choose a masked model's study.")
        for name in relation or info.relations():
            one = load_relation(info, name)
            best = order_of(one.pool, "all", one.train_accuracies)[:n_prompts]
            prompts = [one.pool.prompts[number] for number in best]
            train, test = (
                make_asked(
                    one.relation, facts[:n_facts], words, model, "both",
                    template=prompts[0].template,
                )
                for facts in (one.train, one.test)
            )  # fmt: skip
            found = measure_both_ways(
                model, train, test, prompts, n_objects=n_objects,
                on_fact=lambda done, total, name=name: report(  # type: ignore[misc]
                    f"{name}: asking back", done, total
                ),
            )  # fmt: skip
            rows.append(asdict(found))
    if as_json:
        show.print_json(rows)
        return
    show.print_table(
        ("relation", "forward", "forward and backward", "training", "test"),
        [
            (row["relation"], _percent(row["forward"]), _percent(row["both"]), row["n_train"],
             row["n_test"])
            for row in rows
        ],
        right=("forward", "forward and backward", "training", "test"),
    )  # fmt: skip


def _mean_curves(studies: list["RelationStudy"]) -> dict[tuple[str, str], list[float]]:
    """P@1 of Top-K, the mean over the relations that have so many prompts."""
    curves: dict[tuple[str, str], list[tuple[float, ...]]] = {}
    for study in studies:
        for name, kind, values in study.curves:
            curves.setdefault((name, kind), []).append(values)
    return {
        key: [
            sum(here) / len(here)
            for k in range(max(map(len, found)))
            if (here := [values[k] for values in found if k < len(values)])
        ]
        for key, found in curves.items()
    }


def _without_nan(value: Any) -> Any:
    """The same with null for NaN, and text for the keys of curves."""
    if isinstance(value, dict):
        return {
            " ".join(key) if isinstance(key, tuple) else key: _without_nan(one)
            for key, one in value.items()
        }
    if isinstance(value, list | tuple):
        return [_without_nan(one) for one in value]
    return None if isinstance(value, float) and value != value else value


def _pairs(relation: str, pairs: Path | None, dataset: str) -> "tuple[Fact, ...]":
    """The pairs of a file or folder, or the half of the dataset's facts that trains."""
    from lama_core.datasets import load_dataset
    from lama_core.lpaqa.files import read_pairs
    from lama_core.lpaqa.training_pairs import halve

    if pairs is None:
        loaded = load_dataset(dataset)
        return halve(loaded.facts_of(loaded.relation(relation).name))[0]
    facts, report = read_pairs(pairs, relation)
    for dropped in report.dropped:
        _say(str(dropped))
    return facts


def _corpus_files() -> list[Path]:
    """The files of the embedded model's corpus. Raises UserError if it isn't built here."""
    from lama_core.errors import UserError
    from lama_core.paths import cache_dir, data_dir
    from lama_core.training.corpus import SUMMARY_FILE, open_corpus

    for folder in (cache_dir() / "corpus", data_dir() / "corpus", Path("corpus")):
        if (folder / SUMMARY_FILE).is_file():
            return [path for _, _, path in open_corpus(folder).train]
    raise UserError(
        "The embedded model's corpus is not built here: `python -m lama_core train-mlm --help` "
        "says how, or give a --text."
    )


def _write_templates(templates: list[str], out: Path | None, relation: str) -> None:
    """Write prompts as an LPAQA file, `out/RELATION.jsonl`."""
    import json

    from lama_core.files import write_text_whole

    if out is None:
        return
    path = out / f"{relation}.jsonl"
    lines = [json.dumps({"template": text}, ensure_ascii=False) + "\n" for text in templates]
    write_text_whole(path, "".join(lines))
    _say(f"{len(templates)} prompts written to {path}")


def select(
    dataset: Dataset = "starter",
    model: Model = "minilm-mlm",
    relation: Relation = None,
    prompts: Prompts = None,
    template: Own = None,
    training: Training = None,
    candidates: Words = None,
    context: Seen = None,
    ranking: Counting = "raw",
    precision: Annotated[str, typer.Option(help="auto, fp32 or bf16.")] = "fp32",
    limit: Limit = None,
    train_limit: TrainLimit = None,
    seed: Seed = None,
    drop_overlap: Drop = False,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Each prompt's accuracy on training and test facts, the best on the training facts first."""
    from lama_core import settings
    from lama_core.cli import show
    from lama_core.lpaqa.running import StudyRequest

    request = StudyRequest(
        dataset=dataset,
        model=model,
        relations=tuple(relation or ()),
        prompts=prompts,
        own=tuple(template or ()),
        training=training,
        candidates=candidates,
        context=settings.parse_context(context),
        ranking=_parse_ranking(ranking),
        precision=settings.parse_precision(precision),
        combinations=("all",),
        recipes=(),
        limit=limit,
        train_limit=train_limit,
        seed=seed,
        drop_overlap=drop_overlap,
        curves=False,
    )
    studies, _ = _study(request, out, save=False)
    rows = [row for study in studies for row in _prompt_rows(study)]
    if as_json:
        show.print_json(rows)
        return
    for study in studies:
        show.print_table(
            ("prompt", "from", "training", "test", "only it is right"),
            [
                (
                    row["template"],
                    row["origin"],
                    _percent(row["train"]),
                    _percent(row["test"]),
                    row["only_right"],
                )
                for row in rows
                if row["relation"] == study.relation.name
            ],
            title=f"{study.relation.name} {study.relation.label}: {study.model}, "
            f"{len(study.train):,} training and {len(study.test):,} test facts",
            right=("training", "test", "only it is right"),
        )
        print()


def fit(
    dataset: Dataset = "starter",
    model: Model = "minilm-mlm",
    relation: Relation = None,
    prompts: Prompts = None,
    template: Own = None,
    training: Training = None,
    combination: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="manual, mine, mine+man, mine+para, man+para, user or all; repeat it for "
            "several. Without it: all of the paper's that there are.",
        ),
    ] = None,
    recipe: Annotated[
        list[str] | None,
        typer.Option(help="Of the optimiser: released, paper or exact; repeat it for several."),
    ] = None,
    candidates: Words = None,
    context: Seen = None,
    ranking: Counting = "raw",
    precision: Annotated[str, typer.Option(help="auto, fp32 or bf16.")] = "fp32",
    limit: Limit = None,
    train_limit: TrainLimit = None,
    seed: Seed = None,
    drop_overlap: Drop = False,
    out: Out = None,
    keep: Keep = False,
    curves: Annotated[
        bool, typer.Option(help="Accuracy of Top-K for every K, log-linear and linear.")
    ] = True,
    save_runs: Annotated[
        bool, typer.Option(help="Save Top-1 and the optimised ensembles as runs.")
    ] = True,
    as_json: Json = False,
) -> None:
    """Top-K and optimised ensembles: micro and macro accuracy beside the published values."""
    from lama_core import settings
    from lama_core.lpaqa.running import StudyRequest

    chosen = tuple(combination or ("manual", "mine", "mine+man", "mine+para", "man+para"))
    request = StudyRequest(
        dataset=dataset,
        model=model,
        relations=tuple(relation or ()),
        prompts=prompts,
        own=tuple(template or ()),
        training=training,
        candidates=candidates,
        context=settings.parse_context(context),
        ranking=_parse_ranking(ranking),
        precision=settings.parse_precision(precision),
        combinations=(*chosen, "user") if template and not combination else chosen,
        recipes=tuple(recipe or ("released",)),
        limit=limit,
        train_limit=train_limit,
        seed=seed,
        drop_overlap=drop_overlap,
        keep=keep,
        curves=curves,
    )
    studies, runs = _study(request, out, save=save_runs)
    _print_scores(studies, runs, as_json=as_json)


def _study(
    request: "StudyRequest", out: Path | None, *, save: bool
) -> tuple[tuple["RelationStudy", ...], tuple[str, ...]]:
    """The studies of a request, with bars on standard error; and the runs that were saved."""
    from lama_core.cli import show
    from lama_core.lpaqa import running
    from lama_core.models.loader import load_model

    with show.progress() as on_progress:
        planned = running.plan_study(
            request,
            load=lambda name, precision: load_model(
                name, precision=precision, on_progress=on_progress
            ),
            out=out,
        )
    try:
        with _stages() as on_stage:
            studies = running.execute_study(planned, on_stage=on_stage, on_note=_say)
    except KeyboardInterrupt:
        _say("Stopped. What was scored is kept; the same command goes on from there.")
        raise typer.Exit(130) from None
    runs = running.save_runs(planned, studies) if save else ()
    _say(f"The study is in {planned.info.folder}")
    return studies, runs


def _print_scores(
    studies: tuple["RelationStudy", ...], runs: tuple[str, ...], *, as_json: bool
) -> None:
    from lama_core.cli import show
    from lama_core.lpaqa.reproduce import make_table

    rows = make_table(studies, studies[0].model)
    if as_json:
        weights = [
            {
                "relation": study.relation.name,
                "set": one.combination,
                "method": one.method,
                "objective": one.objective,
                "n_epochs": one.n_epochs,
                "weights": {
                    template: round(float(weight), 6)
                    for template, weight in zip(study.pool.templates, one.weights, strict=True)
                    if weight > 0
                },
            }
            for study in studies
            for one in study.ensembles
        ]
        relations = [asdict(score) for study in studies for score in study.scores()]
        show.print_json(
            {
                "table": [asdict(row) for row in rows],
                "relations": relations,
                "ensembles": weights,
                "runs": list(runs),
            }
        )
        return
    show.print_table(
        ("set", "method", "micro", "macro", "paper micro", "paper macro", "log P(gold)", "n"),
        [
            (
                row.combination,
                row.method,
                _percent(row.micro),
                _percent(row.macro),
                "" if row.published_micro is None else f"{row.published_micro:.1f}",
                "" if row.published_macro is None else f"{row.published_macro:.1f}",
                "" if row.objective is None else f"{row.objective:.4f}",
                f"{row.n_relations} / {row.n_facts:,}",
            )
            for row in rows
        ],
        title=f"{rows[0].model}: P@1 in percent; n: relations / test facts; "
        f"paper: {rows[0].published_model}, 41 relations",
        right=("micro", "macro", "paper micro", "paper macro", "log P(gold)", "n"),
    )
    for run in runs:
        _say(f"run {run}")


def _prompt_rows(study: "RelationStudy") -> list[dict[str, object]]:
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
        }
        for number in order
    ]


def _parse_ranking(text: str) -> "Ranking":
    from lama_core.errors import UserError, did_you_mean
    from lama_core.ranking import RANKINGS

    for ranking in RANKINGS:
        if text == ranking:
            return ranking
    hint = did_you_mean(text, RANKINGS)
    raise UserError(f"Unknown ranking {text!r}: choose filtered or raw{hint}.")


@contextmanager
def _stages() -> Iterator["OnStage"]:
    """A bar of the stage at hand, on standard error."""
    from lama_core.cli import show

    with show.progress() as report:
        yield report


def _percent(value: object) -> str:
    return f"{100 * value:.1f}" if isinstance(value, float) and value == value else ""


def _say(text: str) -> None:
    import sys

    print(text, file=sys.stderr, flush=True)
