"""The sentences that say what a view shows: the numbers of the table, for the right runs."""

from dataclasses import replace

import pytest
from test_every_view import STEPS, A, B

from lama_core.cli.output import print_parts
from lama_core.probes.analogy.accuracy_tables import ProbeAccuracy
from lama_core.rounding import counted, percent
from lama_core.views.analogies import AnalogiesRequest, analogies
from lama_core.views.calibration import calibration, errors
from lama_core.views.compare import compare, seen_in_training
from lama_core.views.conclusions import as_share
from lama_core.views.curves import curves
from lama_core.views.known_by import known_by
from lama_core.views.ranks import ranks
from lama_core.views.relation_types import relation_types
from lama_core.views.scores import measures, said_of_best, scores
from lama_core.views.slices import slices
from lama_core.views.training import training
from lama_core.views.view import Shown, show
from lama_core.views.wording import MEAN, MOST_RELATIONS, wording


def test_curves_name_the_run_that_is_most_often_right() -> None:
    shown = show(curves.view, curves.request(runs=(A, B)))
    at_1 = shown.frame[shown.frame["k"] == 1].set_index("run")
    best = at_1["p_at_k"].idxmax()
    assert shown.conclusion.startswith(shown.names[best])
    assert as_share(at_1.loc[best, "p_at_k"]) in shown.conclusion
    assert "overlaps" not in shown.conclusion.split(" and ")[0]
    near = show(curves.view, curves.request(runs=(A, B), relations=("P103",)))
    second, first = near.frame[near.frame["k"] == 1].sort_values("p_at_k").to_dict("records")
    assert first["low"] < second["high"]
    assert f"interval overlaps that of {near.names[second['run']]}" in near.conclusion


def test_types_are_named_from_the_best_to_the_worst() -> None:
    shown = show(relation_types.view, relation_types.request(runs=(A, B)))
    means = shown.frame[shown.frame["relation"].isna()]
    by_type = means.groupby("type")["p_at_k"].mean()
    n = means.groupby("type")["n_relations"].max()
    assert shown.conclusion == (
        "On average over 2 models, P@1 is "
        + ", ".join(
            f"{as_share(by_type[one])} on {one} ({counted(int(n[one]), 'relation')})"
            for one in by_type.sort_values(ascending=False).index
        )
        + "; TREx, 42 relations, 9,365 facts"
    )


def test_calibration_says_whether_sure_answers_are_right_and_who_is_overconfident() -> None:
    shown = show(calibration.view, calibration.request(runs=(A, B)))
    for run in (A, B):
        rows = shown.frame[shown.frame["run"] == run].fillna(0)
        sure, other = rows[rows["low"] >= 0.5], rows[rows["low"] < 0.5]
        right, mean = (
            (sure[name] * sure["n"]).sum() / sure["n"].sum() for name in ("accuracy", "confidence")
        )
        rest = (other["accuracy"] * other["n"]).sum() / other["n"].sum()
        assert right > rest and "are right more often: " in shown.conclusion
        each = f"{percent(right)} against {as_share(rest)} ({shown.names[run]})"
        assert each in shown.conclusion
        way = f"{as_share(mean)}, {as_share(right)} right) is {'over' if mean > right else 'under'}"
        assert f"{shown.names[run]} (mean probability {way}confident" in shown.notes[0]


def test_calibration_notes_if_most_facts_are_in_the_lowest_bin() -> None:
    shown = show(calibration.view, calibration.request(runs=(A, B)))
    best = min(errors(shown), key=errors(shown).__getitem__)
    n = shown.frame[shown.frame["run"] == best].set_index("low")["n"]
    lowest = f"{as_share(n.iloc[0] / n.sum())} of its first answers have a probability of 0.0 to 0"
    notes = [note for note in shown.notes if "smallest calibration error" in note]
    assert len(notes) == (n.iloc[0] > n.sum() / 2) and all(lowest in note for note in notes)


def test_ranks_known_by_types_and_comparisons_state_what_their_tables_count() -> None:
    shown: Shown = show(ranks.view, ranks.request(runs=(A,)))
    first = shown.frame[shown.frame["high"] == 1]["share"].sum()
    late = shown.frame[shown.frame["low"] > 100]["share"].sum()
    assert f"rank 1: {as_share(first)} (" in shown.conclusion
    assert f"rank 100: {as_share(late)} (" in shown.conclusion
    shown = show(known_by.view, known_by.request(runs=(A, B)))
    n = shown.frame.set_index("right")["n"]
    assert f"{percent(n[''] / n.sum())} % to none" in shown.conclusion
    assert f"{percent((n[A] + n[B]) / n.sum())} % to only one" in shown.conclusion
    shown = show(compare.view, compare.request(run_a=A, run_b=B))
    clear = (shown.frame["low"] > 0).sum()
    assert f"and {shown.names[shown.infos[1].id]} in {clear:,};" in shown.conclusion
    shown = show(relation_types.view, relation_types.request(runs=(A,)))
    rows = shown.frame[shown.frame["relation"].notna()]
    assert f"{rows['n'].sum():,} facts" in shown.figure.caption
    assert f"{len(rows)} relations" in shown.figure.caption


def test_training_names_the_step_from_which_half_of_the_facts_stay_right() -> None:
    shown = show(training.view, training.request(runs=STEPS, by="relation"))
    (found,) = shown.found
    learned = found.training.fates["learned"].dropna()
    half = next(step for step in sorted(learned) if (learned <= step).mean() >= 0.5)
    assert f"half of these stay right from step {half:,.0f}" in shown.conclusion
    assert f"; {found.training.n_forgotten:,} are forgotten" in shown.conclusion
    figure = shown.figure
    ends = figure.frame.groupby("line", sort=False)["p_at_k"].last()
    assert list(ends[list(figure.names)]) == sorted(ends, reverse=True)
    assert set(figure.frame.loc[figure.frame["low"].notna(), "step"]) == {found.series.steps[-1]}


@pytest.mark.parametrize(
    ("prompts", "ends"),
    (("negated", ("plain", "altered")), ("paraphrases", ("consistent_accuracy", "accuracy"))),
)
def test_wording_draws_the_mean_and_the_relations_that_change_most(
    prompts: str, ends: tuple[str, str]
) -> None:
    shown = show(wording.view, wording.request(runs=(f"starter-minilm_mlm-{prompts}",)))
    marks, table = shown.figure.frame, shown.frame.set_index("relation")
    assert (marks["by"].nunique(), marks["by"].iloc[0]) == (MOST_RELATIONS + 1, MEAN)
    for name, hollow in zip(ends, (True, False), strict=True):
        drawn = marks[marks["hollow"] == hollow].set_index("relation")["value"]
        assert drawn.pop("") == pytest.approx(table[name].mean())
        assert drawn.to_dict() == table.loc[drawn.index, name].to_dict()
    change = (table[ends[1]] - table[ends[0]]).abs()
    others = change.drop([name for name in marks["relation"] if name])
    assert others.max() <= change[[name for name in marks["relation"] if name]].min()


def test_runs_on_wordings_are_compared_on_the_relations_that_all_of_them_have() -> None:
    several = tuple(f"starter-minilm_mlm-{name}" for name in ("ten_sentences", "paraphrases"))
    shown = show(wording.view, wording.request(runs=several))
    table = shown.found.agreement
    common = set.intersection(*(set(part["relation"]) for _, part in table.groupby("run")))
    assert 0 < len(common) < table["relation"].nunique()
    means = table[table["relation"].isin(common)].groupby("run").mean(numeric_only=True)
    for mean in means.to_dict("records"):
        for name in ("consistent_accuracy", "accuracy", "consistency"):
            assert f"{as_share(mean[name])} (" in shown.conclusion
    marks = shown.figure.frame
    assert set(marks["relation"]) == {"", *common} and marks["run"].value_counts().nunique() == 1


def test_the_frequency_test_is_printed_of_random_and_its_halves(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def line(probe: str, name: str, p_value: float | None) -> ProbeAccuracy:
        return ProbeAccuracy("r", "m", "d", "supervised", probe, name, "k", 0.5, None, 8, 0,
                        p_value=p_value)  # fmt: skip

    lines = (
        line("random-head", "one", 0.04), line("random-tail", "one", 0.9),
        line("random-head", "two", 0.06), line("random-tail", "two", None),
        line("random", "one", 0.2), line("random", "two", 0.05), line("type", "one", 0.001),
    )  # fmt: skip
    print_parts(analogies.view.tables(Shown(analogies.view, AnalogiesRequest(), (), lines, {})))
    printed = capsys.readouterr().out
    rows = [row.split() for row in printed.partition("Kolmogorov")[2].splitlines()]
    assert ["one", "m", "0.200", "0.040", "0.900"] in rows
    assert ["two", "m", "0.050", "0.060"] in rows
    assert "m, random: p is above 0.05 in 1 of 2 relations" in printed
    assert "m, random-head: p is above 0.05 in 1 of 2 relations" in printed
    assert "m, random-tail: p is above 0.05 in 1 of 1 relations" in printed


def test_slices_name_the_best_and_the_worst_one_of_the_chosen_way() -> None:
    shown = show(slices.view, slices.request(runs=(A, B), slice_by="type of relation"))
    table = shown.frame[shown.frame["by"] == "type of relation"]
    means = table[table["n"] >= 30].groupby("slice")["p_at_k"].mean()
    ends = f"highest for “{means.idxmax()}”, lowest for “{means.idxmin()}”, "
    assert ends in shown.conclusion
    assert "no type" in set(shown.figure.frame["row"])


def test_the_best_run_is_not_said_to_be_the_best_in_every_relation() -> None:
    shown = show(scores.view, scores.request(runs=(A, B)))
    table = shown.found.by("relation").pivot(index="relation", columns="run", values="p_at_k")
    beaten = int((table[A] < table[B]).sum())
    origins = shown.found.origins[0]
    assert beaten and origins is not None
    inside, outside = origins.inside, origins.outside
    rival = shown.found.outside[shown.infos[0].model, B]
    assert said_of_best(shown, A, measures(shown)["P@k"]) == (
        f"It isn't the best in {beaten} of {table[A].notna().sum()} relations; over facts, "
        f"P@1 is {100 * inside.p_at_k:.1f} % on the {inside.n:,} from sources that it was "
        f"trained on and {100 * outside.p_at_k:.1f} % on the other {outside.n:,}, "
        f"where smollm2-135m has {100 * rival.p_at_k:.1f} %."
    )


def test_a_size_says_of_how_many_relations_facts_count() -> None:
    shown = show(ranks.view, ranks.request(runs=(A,)))
    (info,) = shown.infos
    none, *others = [one for one in info.relations if one.n]
    for relations, said in (
        ((replace(none, n=0), *others[:2]), "2 of 3 relations, "),
        (tuple(others[:2]), "2 relations, "),
        ((replace(none, n=0), *others[:1]), "1 of 2 relations, "),
        ((replace(none, n=0),), "0 relations, "),
    ):
        n = sum(one.n for one in relations)
        found = replace(shown, infos=(replace(info, relations=relations),))
        assert found.size() == f"{said}{n:,} facts"


def test_a_comparison_says_what_it_is_on_pairs_in_the_training_text_and_on_others() -> None:
    shown = show(compare.view, compare.request(run_a=B, run_b=A, slices=True))
    said = seen_in_training(shown)
    table = shown.frame.query("by == 'pair seen in training' and slice != 'not looked for'")
    assert len(table) == 2
    for line in table.to_dict("records"):
        difference = (line["only_b"] - line["only_a"]) / line["n"]
        assert f" {percent(difference, signed=True)} (" in said and f"{line['n']:,} facts" in said
    unknown = show(compare.view, compare.request(run_a=B, run_b=B, slices=True))
    assert seen_in_training(unknown) == ""
