"""`prompts analyse` and `both-ways`: what makes prompts differ, and what asking back adds."""

from dataclasses import asdict
from typing import Annotated, Any

import typer

from lama_core.cli import options, show
from lama_core.cli.show import percent
from lama_core.rounding import fixed


def analyse(
    study: Annotated[str, typer.Argument(help="A study's name or folder.")],
    other: Annotated[
        str | None, typer.Option(help="Another model's study, whose weights are tried on this one.")
    ] = None,
    patterns: Annotated[
        bool, typer.Option(help="Ranks by part-of-speech pattern too (needs spaCy).")
    ] = False,
    combination: Annotated[str, typer.Option("--set", help="Which prompts.")] = "mine",
    distance: Annotated[
        str,
        typer.Option(
            help="How edit distances become shares: min-max of the relation's pairs (the paper's), "
            "or by the longer prompt's words (longer)."
        ),
    ] = "min-max",
    as_json: options.Json = False,
) -> None:
    """Divergence against edit distance, Top-K curves, weights of another model, patterns."""
    from lama_core.errors import choose
    from lama_core.probes.prompts import analyses
    from lama_core.probes.prompts.runs import find_study
    from lama_core.probes.prompts.tabulated import mean_curves

    scale = choose(distance, analyses.DISTANCES, "distance")
    here = find_study(study)
    studies = [here.relation(name) for name in here.relations]
    pairs = [pair for one in studies for pair in analyses.prompt_pairs(one, combination, scale)]
    found = analyses.measure_divergence(pairs)
    result: dict[str, Any] = {
        "distance": scale,
        "divergence": asdict(found),
        "curves": mean_curves(studies),
    }
    if other is not None:
        there = find_study(other)
        common = [name for name in here.relations if name in there.relations]
        by_name = {one.relation.name: one for one in studies}
        result["transfer"] = [
            asdict(analyses.transfer_weights(by_name[name], there.relation(name), combination))
            for name in common
            if by_name[name].ensemble(combination, "optimised")
        ]
    if patterns:
        from lama_core.probes.prompts.mining import SpacyParser

        parser = SpacyParser()
        result["patterns"] = [
            asdict(row)
            for one in studies
            for row in analyses.rank_patterns(one, parser, combination)
        ]
    if as_json:
        show.print_json(show.plain(result))
        return
    show.print_table(
        (f"edit distance, {scale}", "pairs", "mean divergence", "quartiles"),
        [
            (
                f"{one.low:.1f} to {one.high:.1f}",
                one.n_pairs,
                percent(one.mean),
                " / ".join(percent(value) for value in one.quartiles),
            )
            for one in found.bins
        ],
        title=f"{here.label}, {here.info.ranking} ranking: divergence of prompts, "
        f"Pearson {fixed(found.correlation, 2)} (the paper's: 0.25)",
    )
    for (name, kind), values in result["curves"].items():
        shown = ", ".join(f"{k}: {percent(values[k - 1])}" for k in (1, 2, 3, 5, 10, 20, 29)
                          if k <= len(values))  # fmt: skip
        print(f"Top-K of {name}, {kind}: {shown}")
    if patterns:
        show.print_table(
            ("pattern", "prompts", "mean rank"),
            [
                (name, len(ranks), f"{sum(ranks) / len(ranks):.1f}")
                for name in (*analyses.PATTERNS, analyses.OTHER)
                if (ranks := [row["rank"] for row in result["patterns"] if row["pattern"] == name])
            ],
            title=f"Rank by accuracy among the prompts of {combination}, 1 is best",
        )
    if result.get("transfer"):
        own = sum(row["own"] for row in result["transfer"]) / len(result["transfer"])
        foreign = sum(row["other"] for row in result["transfer"]) / len(result["transfer"])
        print(f"Own weights {percent(own)}, the other model's {percent(foreign)}")


def both_ways(
    study: Annotated[str, typer.Argument(help="A study's name or folder.")],
    relations: options.Relations = None,
    n_prompts: Annotated[
        int, typer.Option("--prompts", help="How many of the best prompts.", min=1)
    ] = 3,
    n_objects: Annotated[
        int,
        typer.Option("--objects", help="How many of the likeliest objects are asked back.", min=1),
    ] = 5,
    subject: Annotated[
        str,
        typer.Option(
            help="How a subject of several pieces is scored: together, all masked at once, the "
            "mean (the paper's); or in-turn, left to right, the sum."
        ),
    ] = "together",
    n_facts: Annotated[
        int, typer.Option("--facts", help="At most so many training and test facts.", min=1)
    ] = 30,
    device: options.Device = None,
    as_json: options.Json = False,
) -> None:
    """Forward and backward: does it help that the subject follows from the object too?"""
    from lama_core.errors import UserError, choose
    from lama_core.models.base import KINDS
    from lama_core.models.loader import load_model
    from lama_core.probes.prompts.asking import make_asked
    from lama_core.probes.prompts.backward import SUBJECT_FORMS, measure_both_ways
    from lama_core.probes.prompts.runs import find_study
    from lama_core.probes.prompts.selection import order_of
    from lama_core.progress import Progress

    form = choose(subject, SUBJECT_FORMS, "way to score subjects")
    here = find_study(study)
    words = here.candidates
    rows = []
    with show.progress() as report:
        model = load_model(here.info.model, precision=here.info.precision, on_progress=report)
        if not KINDS[model.kind].sees_both:
            raise UserError(
                f"{model.name} sees no right side: choose the study of a model that sees both."
            )
        for name in relations or here.relations:
            one = here.relation(name)
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
                model, train, test, prompts, n_objects=n_objects, subject=form,
                on_fact=lambda done, total, name=name: report(  # type: ignore[misc]
                    Progress(f"{name}: asking back", done, total)
                ),
            )  # fmt: skip
            rows.append(asdict(found))
    if as_json:
        show.print_json(rows)
        return
    show.print_table(
        ("relation", "forward", "forward and backward", "training", "test"),
        [
            (row["relation"], percent(row["forward"]), percent(row["both"]), row["n_train"],
             row["n_test"])
            for row in rows
        ],
    )  # fmt: skip
