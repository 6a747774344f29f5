"""`analogy solve`, `analogy score` and `analogy probe`."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from lama_core.candidates.lists import COMMON
from lama_core.cli import options, show
from lama_core.cli.running import open_asked
from lama_core.errors import choose
from lama_core.models.base import RESCORED
from lama_core.probes.analogy.probes import MOST_PAIRS, PROBES
from lama_core.requests import read
from lama_core.rounding import fixed, percent

if TYPE_CHECKING:
    from lama_core.probes.analogy.runs import ProbeRun
    from lama_core.probes.analogy.tables import Accuracy

SOLVE = """
Example: python -m lama_core analogy solve "Tokyo is to Japan as Paris is to ___"
--model minilm-mlm --model smollm2-135m
"""
SCORE = """
Example: python -m lama_core analogy score Paris:France Rome:Italy Italy:Rome --model minilm-mlm
"""
PROBE = """
Example: python -m lama_core analogy probe --dataset starter-analogies --model minilm-mlm
--setting unsupervised --limit 50
"""


def register(app: typer.Typer) -> None:
    """Add the command and its three parts."""
    analogy = typer.Typer(no_args_is_help=True)
    analogy.command(epilog=SOLVE)(solve)
    analogy.command(epilog=SCORE)(score)
    analogy.command(epilog=PROBE)(probe)
    app.add_typer(
        analogy,
        name="analogy",
        help="Analogies: solve them, score candidate pairs, probe models with them.",
    )


def solve(
    text: Annotated[
        list[str],
        typer.Argument(
            help="A sentence with a blank (___, [MASK], <mask>, [Y]), or four words of which one "
            "is the blank."
        ),
    ],
    models: options.Models = None,
    template: Annotated[
        str | None,
        typer.Option(
            help="For four words: to-what, to-as, rel-same, what-to (the default), she-as, "
            "as-what, or your own with [A] [B] [C] [D]."
        ),
    ] = None,
    keep_query_words: Annotated[
        bool, typer.Option(help="Let the three given words be answers too.")
    ] = False,
    top_k: options.TopK = 5,
    candidates: options.Candidates = COMMON,
    gold: Annotated[str | None, typer.Option(help="The right answer: its rank is shown.")] = None,
    context: options.Context = None,
    rescored: options.Rescored = RESCORED,
    renormalise: options.Renormalise = False,
    precision: options.Precision = "auto",
    device: options.Device = None,
    as_json: options.Json = False,
) -> None:
    """Fill the blank of an analogy with several models, vector arithmetic beside them."""
    from lama_core.asking import settings
    from lama_core.probes.analogy.solve import SolveRequest
    from lama_core.probes.analogy.solve import solve as solve_with

    request = read(SolveRequest, locals(), models=models or (settings.DEFAULT_MODEL,))
    question = request.question()
    opened, candidates_used = open_asked(request)
    solution = solve_with(
        opened,
        question,
        candidates_used,
        keep_query_words=keep_query_words,
        top_k=top_k,
        gold=gold,
        context=request.context,
        n_rescored=rescored,
        renormalise=renormalise,
    )
    if as_json:
        show.print_json(solution.to_json())
        return
    print(question.query.text("___") + "\n")
    for answer in solution.cloze.models:
        seen = f"context {answer.context}, {answer.n_candidates:,} candidates"
        seen += show.computed(answer.precision, answer.device)
        show.print_answers(answer.blanks[0], f"{answer.name}: {seen}")
        for baseline in solution.baselines:
            if baseline.name == answer.name:
                words = ", ".join(item.token for item in baseline.predictions)
                rank = f" (gold: rank {baseline.gold_rank})" if baseline.gold_rank else ""
                print(f"{baseline.method} on its input embeddings: {words}{rank}")
        print()
    if solution.note:
        print(solution.note)


def score(
    query: Annotated[str, typer.Argument(help="The query pair, as Paris:France.")],
    pairs: Annotated[list[str], typer.Argument(help="Two or more candidate pairs.")],
    models: options.Models = None,
    template: options.AnalogyTemplate = "what-to",
    normalise: Annotated[
        str, typer.Option(help="sum (the paper's equation) or mean of the log-probabilities.")
    ] = "sum",
    tokens: Annotated[bool, typer.Option(help="Show every token's log-probability.")] = False,
    precision: options.Precision = "auto",
    device: options.Device = None,
    as_json: options.Json = False,
) -> None:
    """Rank candidate pairs by how likely a model finds the analogy that they make.

    The perplexity that is shown is per token: exp of minus the mean of the log-probabilities.
    """
    from lama_core.asking import settings
    from lama_core.models.base import KINDS
    from lama_core.probes.analogy.score import ScoreRequest, parse_pair, score_pairs

    request = read(ScoreRequest, locals(), models=models or (settings.DEFAULT_MODEL,))
    parsed, *candidates = map(parse_pair, (query, *pairs))
    with show.progress() as on_progress:
        opened = settings.load_models(request, on_progress)
    answer = score_pairs(opened, parsed, candidates, template=template, normalise=request.normalise)
    if as_json:
        show.print_json(answer.to_json())
        return
    for one in answer.models:
        show.print_table(
            (
                "rank",
                "pair",
                "total log-prob.",
                "tokens",
                f"{KINDS[one.kind].measure} (mean)",
                "sentence",
            ),
            [
                (
                    found.rank,
                    f"{found.pair[0]}:{found.pair[1]}",
                    fixed(found.total, 3),
                    found.n_scored,
                    f"{found.mean_perplexity:.4g}",
                    found.sentence,
                )
                for found in one.ranked
            ],
            title=f"{one.name}, ranked by the {request.normalise} of the log-probabilities"
            + show.computed(one.precision, one.device),
        )
        if tokens:
            for found in one.ranked:
                shown = zip(found.tokens.tokens, found.tokens.log_probs.tolist(), strict=True)
                print("  " + "  ".join(f"{token} {_signed(value)}" for token, value in shown))
        print()


def probe(
    dataset: Annotated[
        str, typer.Option(help="An analogy set's name, or a folder in BATS's layout.")
    ] = "starter-analogies",
    models: options.Models = None,
    vectors: Annotated[
        list[str] | None,
        typer.Option(
            help="Static word vectors as a baseline: a word2vec, fastText or GloVe text file, "
            "archive!file, or package:name/file."
        ),
    ] = None,
    relbert: Annotated[
        list[str] | None, typer.Option(help="A RelBERT model (hub name or folder) as a baseline.")
    ] = None,
    relations: options.Relations = None,
    probes: Annotated[
        list[str] | None,
        typer.Option("--probe", help=f"{', '.join(PROBES)}; without it, all."),
    ] = None,
    setting: Annotated[
        str, typer.Option(help="unsupervised, supervised, or both.")
    ] = "unsupervised",
    template: options.AnalogyTemplate = "what-to",
    normalise: Annotated[str, typer.Option(help="sum (the paper's) or mean.")] = "sum",
    seed: Annotated[int, typer.Option(help="Of the negatives, the limit and the split.")] = 0,
    limit: Annotated[
        int | None,
        typer.Option(help="Instances a relation, drawn at random; without it, all."),
    ] = None,
    strict: Annotated[
        bool, typer.Option(help="Never draw a negative that happens to be true.")
    ] = False,
    tails: Annotated[
        str,
        typer.Option(
            help="several: a head makes a pair with each of its tails, first tails first, up to "
            f"{MOST_PAIRS} pairs a relation; first: with its first tail alone."
        ),
    ] = "several",
    pairing: Annotated[
        str,
        typer.Option(
            help="Unsupervised: halves (the paper's: a query and its candidates are of one half "
            "of the pairs, as in the supervised setting) or all (of all pairs)."
        ),
    ] = "halves",
    reverse: Annotated[
        str,
        typer.Option(help="The reverse probe turns round a random pair, or the positive one."),
    ] = "random",
    layer: Annotated[
        int, typer.Option(help="Supervised: 0 is the input embeddings, -1 the last layer.")
    ] = -1,
    pooling: Annotated[
        str, typer.Option(help="Supervised: mean, first or last of a word's pieces.")
    ] = "mean",
    hidden: Annotated[int, typer.Option(help="Supervised: hidden units.", min=1)] = 100,
    seeds: Annotated[int, typer.Option(help="Supervised: classifiers trained.", min=1)] = 5,
    by: Annotated[str, typer.Option(help="relation or kind.")] = "kind",
    precision: options.Precision = "auto",
    device: options.Device = None,
    out: options.Out = None,
    as_json: options.Json = False,
) -> None:
    """Probe models with analogies; the same command again takes up where it stopped."""
    from lama_core.asking.settings import DEFAULT_MODEL
    from lama_core.cli.running import make_runs, open_with
    from lama_core.probes.analogy import tables
    from lama_core.probes.analogy.probing import AnalogyRequest, plan
    from lama_core.probes.analogy.runs import ProbeRun

    chosen_by = choose(by, tables.BYS, "grouping")
    asked = models or (() if vectors or relbert else (DEFAULT_MODEL,))
    request = read(AnalogyRequest, locals(), models=asked)
    specs = open_with(lambda load: plan(request, load=load))
    runs = [ProbeRun(run) for run in make_runs(specs, out)]
    _say_left_out(runs)
    lines = tables.accuracies(runs, by=chosen_by)
    if chosen_by == "kind":
        lines = [*lines, *tables.unmarked(runs)]
    if as_json:
        show.print_json([show.plain(asdict(line)) for line in lines])
        return
    print_accuracies(lines)


def _say_left_out(runs: "Sequence[ProbeRun]") -> None:
    said: set[str] = set()
    for run in runs:
        for one in run.details.left_out:
            said.add(one.reason)
        if run.details.missing:
            words = ", ".join(run.details.missing[:20])
            more = len(run.details.missing) - 20
            rest = f" and {more} more" if more > 0 else ""
            said.add(
                f"{run.info.model} has no vector for {words}{rest}: instances with them are left "
                "out of this baseline."
            )
    for text in sorted(said):
        show.say(text)


def print_accuracies(lines: "Sequence[Accuracy]") -> None:
    """A table for each setting: a line a model and relation or kind, a column a probe."""
    from lama_core.probes.analogy.tables import probes_in

    for setting in dict.fromkeys(line.setting for line in lines):
        chosen = [line for line in lines if line.setting == setting]
        probes = probes_in(chosen)
        found = {(line.model, line.name, line.made_with, line.probe): line for line in chosen}
        rows = dict.fromkeys(
            (line.model, line.name, line.made_with) for line in chosen if line.probe != "random"
        )
        show.print_table(
            ("kind or relation", "model", *probes, "n a probe"),
            [
                (
                    name,
                    model,
                    *(_cell(found.get((model, name, how, probe))) for probe in probes),
                    next(found[model, name, how, probe].n for probe in probes
                         if probe != "random" and (model, name, how, probe) in found),
                )
                for model, name, how in rows
            ],
            title=f"Accuracy in percent, {setting} (chance is 50; ± is over classifier seeds)",
        )  # fmt: skip
        for how in dict.fromkeys(line.made_with for line in chosen):
            print(how)
        _print_frequency(chosen)
        print()


def _print_frequency(lines: "Sequence[Accuracy]") -> None:
    """The frequency test of the random probe and of its halves, by relation and summed up."""
    from lama_core.probes.analogy.tables import RANDOM, SIGNIFICANT, frequency_summary

    shown = ("random", *RANDOM)
    found = {
        (line.model, line.name, line.made_with, line.probe): line
        for line in lines
        if line.probe in shown and line.p_value is not None
    }
    rows = dict.fromkeys((model, name, how) for model, name, how, _ in found)
    if not rows:
        return
    print()
    show.print_table(
        ("relation", "model", *shown),
        [
            (name, model, *(_p_value(found.get((model, name, how, probe))) for probe in shown))
            for model, name, how in rows
        ],
        title="Are pairs that are got wrong rarer or more frequent? Kolmogorov-Smirnov test, p",
    )
    for model, how, probe in dict.fromkeys((model, how, probe) for model, _, how, probe in found):
        chosen = [one for key, one in found.items() if (key[0], *key[2:]) == (model, how, probe)]
        n, above = frequency_summary(chosen)
        print(f"{model}, {probe}: p is above {SIGNIFICANT} in {above} of {n} relations")


def _p_value(line: "Accuracy | None") -> str:
    return f"{line.p_value:.3f}" if line is not None and line.p_value is not None else ""


def _cell(line: "Accuracy | None") -> str:
    if line is None:
        return ""
    spread = f" ± {percent(line.spread)}" if line.spread is not None else ""
    return f"{percent(line.accuracy)}{line.mark}{spread}"


def _signed(value: float) -> str:
    return "·" if math.isnan(value) else fixed(value, 2)
