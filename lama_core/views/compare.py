"""View: the paired difference of two runs on the same facts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from typing import Any

import numpy as np
import pandas as pd

from lama_core import metrics
from lama_core.metrics.comparison import (
    CompareRequest,
    Comparison,
    Difference,
    MeanDifference,
    what_differs,
)
from lama_core.metrics.fact_answers import join_answers
from lama_core.metrics.headlines import is_level
from lama_core.metrics.intervals import METHOD_OF_DIFFERENCES
from lama_core.metrics.slices import PAIR_SEEN, Slicing, slice_differences, slicings
from lama_core.metrics.training_texts import NOT_LOOKED_FOR
from lama_core.rounding import fixed, percent
from lama_core.runs.alignment import align, differing_candidates
from lama_core.runs.chosen_facts import only_facts
from lama_core.runs.facts_table import UNRANKED
from lama_core.runs.find import load_run
from lama_core.runs.info import FACT_KINDS, Run
from lama_core.tables import (
    Column,
    Line,
    Table,
    count,
    interval,
    points,
    share,
    table_of,
    table_of_frame,
    text,
)
from lama_core.views.figure import RELATION, Axis, Figure, said, said_interval
from lama_core.views.slices import slice_label, slicing_label
from lama_core.views.view import MOST_LISTED, MOST_RELATIONS, Facts, Shown, View, ViewFunction


@dataclass(frozen=True)
class Compared:
    """Two runs on the same facts; differences are B minus A.

    Attributes:
        a: Run A, aligned with B if their candidates differ.
        b: Run B.
        found: The comparison; None for slices.
        table: A row for each relation or slice.
        slicings: The ways of slicing; empty for relations.
    """

    a: Run
    b: Run
    found: Comparison | None
    table: pd.DataFrame
    slicings: Mapping[str, Slicing]

    @property
    def whole(self) -> Comparison:
        """The comparison. Raises ValueError for slices, which have none."""
        if self.found is None:
            raise ValueError("slices have no comparison over all facts")
        return self.found

    @property
    def n(self) -> int:
        """The number of facts, or queries, that both runs count."""
        whole = self.table if self.found else self.table[self.table["by"] == "all"]
        return int(whole["n"].sum())

    @property
    def units(self) -> str:
        """The counted unit: facts or queries."""
        return self.found.units if self.found else "facts"


class CompareView(View[CompareRequest, Compared]):
    """P@k of B minus P@k of A by relation or slice, with tests over all facts."""

    name = "compare"
    title = "Compare"
    question = "Which of two runs is better on the same facts, and is the difference significant?"
    example = "compare RUN_A RUN_B"
    aligned = False
    least_runs = 2
    most_runs = 2

    def load(self, request: CompareRequest) -> list[Run]:
        """Return runs A and B."""
        runs = [load_run(name, kinds=FACT_KINDS) for name in (request.run_a, request.run_b)]
        return only_facts(runs, request.facts)

    def compute(self, runs: Sequence[Run], request: CompareRequest) -> Compared:
        """Return the comparison of two runs, aligned first if their candidates differ.

        Raises:
            UserError: If no fact counts in both runs.
        """
        a, b = align(runs) if differing_candidates([run.info for run in runs]) else runs
        ranking, k = request.ranking, request.k
        if request.slices:
            joined = join_answers([a, b], ranking=ranking)
            table = slice_differences(joined, k=k, relations=request.relations)
            return Compared(a, b, None, table, slicings(joined))
        found = metrics.compare(a, b, ranking=ranking, k=k, relations=request.relations or None)
        table = pd.DataFrame([_difference(line) for line in found.relations])
        return Compared(a, b, found, table, {})

    def keys_of(self, shown: Shown[CompareRequest, Compared]) -> tuple[str, ...]:
        """Return the columns that identify a row."""
        return ("by", "slice") if shown.request.slices else ("relation",)

    def columns(self, shown: Shown[CompareRequest, Compared]) -> tuple[Column, ...]:
        """Return the columns of the table of relations or slices."""
        return (
            text("relation"),
            text("by", "slice by"),
            text("slice", cell=lambda line: slice_label(line["by"], line["slice"])),
            count("n", shown.found.units),
            share("a", "A"),
            share("b", "B"),
            points("difference", "B - A"),
            interval(help_text=METHOD_OF_DIFFERENCES, signed=True),
            text("only_a", "only A"),
            text("only_b", "only B"),
        )

    def tables(self, shown: Shown[CompareRequest, Compared]) -> Iterator[Table | str]:
        """Yield the runs, a table of relations or slices, the tests, and the facts that differ."""
        request, compared = shown.request, shown.found
        a, b = compared.a.info, compared.b.info
        yield f"A: {a.label} ({a.id})\nB: {b.label} ({b.id})\n"
        over = (
            "over the facts that both runs count"
            if request.slices
            else f"by relation over its {compared.units}"
        )
        yield table_of_frame(
            shown.chosen(
                ("by slice" if request.slices else "relation")
                + " n a b difference interval only_a only_b"
            ),
            shown.frame,
            title=f"P@{request.k} in percent, {request.ranking} ranking, {over}; Tango's score "
            "intervals for paired shares",
        )
        if compared.found is not None:
            found, units = compared.found, compared.units
            agreed, total, mean = found.agreement, found.over_facts, found.over_relations
            of_facts = (total.only_a, total.only_b, total.n - total.only_a - total.only_b)
            of_relations = (mean.ahead_a, mean.ahead_b, mean.equal)
            rows = (
                ("relations", mean, astuple(mean.interval), of_relations, "", float("nan")),
                (units, total, astuple(total.interval), of_facts, "McNemar, exact", found.mcnemar),
                (
                    *("relations, as a sample", mean, astuple(mean.sample_interval)),
                    *(of_relations, "Student's t", mean.p),
                ),
            )
            counted = ("for A", "for B", "equal")
            yield table_of(
                (*("over", "n", "A", "B", "B - A", "95 % interval"), *counted, "test", "p"),
                [
                    (
                        over,
                        means.n,
                        percent(means.a),
                        percent(means.b),
                        percent(means.difference, signed=True),
                        " to ".join(percent(end, signed=True) for end in ends if end == end),
                        *counts,
                        test,
                        "" if p != p else f"{p:.3g}",
                    )
                    for over, means, ends, counts, test, p in rows
                ],
                title=f"\nAll relations together: averaged over relations, and over {units}; "
                f"intervals: {METHOD_OF_DIFFERENCES}; of means over relations, with an effective "
                f"number of {units}; of relations as a sample, Student's",
            )
            share = percent(agreed.same_first)
            same = f"A and B give the same first answer on {share}% of the {units}"
            if agreed.n_unknown:
                same = (
                    "Whether A and B give the same first answer isn't known for "
                    f"{agreed.n_unknown:,} of {compared.n:,} {units}"
                )
            kappa = fixed(agreed.kappa, 2) if agreed.kappa == agreed.kappa else "undefined"
            yield (
                f"\n{same}; Cohen's kappa of being right: {kappa}; excluded: "
                f"{compared.found.n_unpaired:,} rows that only one run counts"
            )
            if flips := _flips(compared.found, MOST_LISTED):
                n_flips = compared.found.over_facts.only_a + compared.found.over_facts.only_b
                names = ("right", "relation", "query", "object", "a", "b")
                yield table_of(
                    ("right", "relation", "query", "gold answer", "answer of A", "answer of B"),
                    [
                        ["" if flip[name] is None else flip[name] for name in names]
                        for flip in flips
                    ],
                    title=f"\nFacts that only one run gets right ({len(flips)} of {n_flips:,})",
                )

    def notes(self, shown: Shown[CompareRequest, Compared]) -> Iterator[str]:
        """Yield what differs between the runs besides their answers."""
        names = (
            [shown.labels[name] for name in shown.found.found.undefined]
            if shown.found.found
            else []
        )
        if names:
            few = len(names) <= MOST_RELATIONS
            yield (
                f"P@{shown.request.k} isn't defined for both runs in "
                f"{', '.join(names) if few else f'{len(names):,} relations'}, which aren't "
                "compared: the ranks of some right answers aren't known."
            )
        note = what_differs(shown.found.a.info, shown.found.b.info)
        if note and not shown.request.slices:
            yield note

    def json(self, shown: Shown[CompareRequest, Compared]) -> dict[str, Any]:
        """Return the differences with their tests, and all facts that only one run gets right."""
        request, compared = shown.request, shown.found
        ids = {"a": compared.a.info.id, "b": compared.b.info.id}
        if compared.found is None:
            return {**ids, "k": request.k, "slices": shown.frame.to_dict("records")}
        found = compared.found
        whole, p_value = found.over_facts, {"p": found.mcnemar}
        return {
            **ids,
            "ranking": request.ranking,
            "k": request.k,
            "over_facts": {
                "unit": found.unit,
                **_difference(whole),
                "test": "McNemar, exact",
                **p_value,
            },
            "over_relations": {
                "unit": "relation",
                **_flat(found.over_relations),
                "equal": found.over_relations.equal,
                "test": "Student's t",
            },
            "relations": [_difference(line) for line in found.relations],
            "mcnemar": {"only_a": whole.only_a, "only_b": whole.only_b, **p_value},
            "agreement": asdict(found.agreement),
            "n_unpaired": found.n_unpaired,
            "flips": _flips(found),
        }

    def conclusion(self, shown: Shown[CompareRequest, Compared]) -> str:
        """Return how often each run is clearly ahead, and the largest lead."""
        rows = shown.frame[shown.frame["difference"].notna()]
        rows = rows[rows["by"] != "all"] if shown.request.slices else rows
        if len(rows) < 2:
            return ""
        clear = {"A": (rows["high"] < 0).sum(), "B": (rows["low"] > 0).sum()}
        names = {end: shown.names[info.id] for end, info in zip("AB", shown.infos, strict=True)}
        what = "slices" if shown.request.slices else "relations"
        top = rows.iloc[int(rows["difference"].abs().argmax())]
        where = _slice_title(top["by"], top["slice"]) if shown.request.slices else ""
        leader = names["B" if top["difference"] > 0 else "A"]
        if is_level(top["difference"]):
            return f"{names['A']} and {names['B']} are level on each of {len(rows):,} {what}"
        return (
            f"Of {len(rows):,} {what}, {names['A']} is clearly ahead in {clear['A']:,} and "
            f"{names['B']} in {clear['B']:,}; the largest lead is "
            f"{percent(abs(top['difference']))} points, "
            f"of {leader} on {where or shown.labels[top['relation']]}"
        )

    def basis(self, shown: Shown[CompareRequest, Compared]) -> str:
        """Return the number of facts, and on slices also that of relations."""
        n_relations = shown.size().partition(", ")[0] + ", "
        return n_relations * shown.request.slices + f"{shown.found.n:,} {shown.found.units}"

    def figure(self, shown: Shown[CompareRequest, Compared]) -> Figure:
        """Return the differences by relation or slice, in the colour of the run that is ahead.

        A point is hollow if its interval includes 0.
        """
        request, table = shown.request, shown.frame
        if request.slices:
            rows = zip(table["by"], table["slice"], strict=True)
            table = table.assign(row=[_slice_title(*one) for one in rows])
        else:
            table = table.assign(row=table["relation"].map(shown.labels))
            table = table.sort_values("difference", kind="stable")
        a, b = (shown.names[info.id] for info in shown.infos)
        data = ", ".join(dict.fromkeys(info.dataset for info in shown.infos))
        return Figure(
            shape="points",
            frame=table.assign(
                said=[
                    said(
                        line["row"],
                        f"difference {percent(line['difference'], signed=True)} points",
                        said_interval(line["low"], line["high"], signed=True),
                        f"{line['n']:,} {shown.found.units}; only A right: {line['only_a']:,}, "
                        f"only B right: {line['only_b']:,}",
                    )
                    for line in table.to_dict("records")
                ],
                ahead=np.sign(table["difference"]).map({1.0: "b", -1.0: "a", 0.0: "neither"}),
                unsure=~((table["low"] > 0) | (table["high"] < 0)),
            ),
            by=Axis(column="row", title="facts" if request.slices else RELATION),
            value=Axis(
                column="difference",
                title="B minus A, points",
                share=True,
            ),
            series="ahead",
            names={"b": f"{b} ahead", "a": f"{a} ahead", "neither": "neither"},
            low="low",
            high="high",
            zero=0.0,
            hollow="unsure",
            hollow_name="open: the interval includes 0",
            title=f"P@{request.k} of {b} (B) minus {a} (A)",
            caption=f"{data}; {shown.found.n:,} {shown.found.units} that both runs count; "
            f"{request.ranking} ranking",
        )

    def inks(
        self, shown: Shown[CompareRequest, Compared], of_runs: Mapping[str, str]
    ) -> dict[str, str]:
        """Return the colours of the runs that are ahead."""
        return {end: of_runs[info.id] for end, info in zip("ab", shown.infos, strict=True)}

    def facts(
        self, shown: Shown[CompareRequest, Compared], line: Line, column: str = ""
    ) -> Facts | None:
        """Return the facts that only A gets right, or only B; by default, the run that is ahead.

        None for `n`: a filter can't choose the facts that both runs count.
        """
        if column == "n":
            return None
        a, b = (info.id for info in shown.infos)
        only_b = column == "only_b" or (column != "only_a" and line["difference"] >= 0)
        ahead, other = (b, a) if only_b else (a, b)
        fields: dict[str, Any] = {"relations": tuple(shown.request.relations)}
        if shown.request.slices:  # by tokens of A's words, among others
            fields |= shown.found.slicings[line["by"]].slices[line["slice"]]
            return Facts(a, fields, right=(ahead,), wrong=(other,))
        fields["relations"] = (line["relation"],)
        return Facts(other, fields, right=(ahead,), wrong=(other,))


def seen_in_training(shown: Shown[CompareRequest, Compared]) -> str:
    """Return the differences on pairs in a training text and on others, to follow the headline.

    shown: the comparison on slices. "" if no training text is known.
    """
    rows = shown.frame[(shown.frame["by"] == PAIR_SEEN) & (shown.frame["slice"] != NOT_LOOKED_FOR)]
    if len(rows) < 2:
        return ""
    each = [
        f"{percent(line['difference'], signed=True)} ({percent(line['low'], signed=True)} to "
        f"{percent(line['high'], signed=True)}) {slice_label(PAIR_SEEN, line['slice'])}, "
        f"{line['n']:,} {shown.found.units}"
        for line in rows.to_dict("records")
    ]
    return (
        "B minus A in points, by whether subject and object occur together in a training text: "
        f"{'; '.join(each)}."
    )


def _slice_title(by: str, name: str) -> str:
    return f"{slicing_label(by)}: {slice_label(by, name)}"


def _flips(compared: Comparison, most: int | None = None) -> list[dict[str, Any]]:
    """Return the facts that only one run gets right; the first `most` of them, or all."""
    found = compared.flips(most)
    columns = {"right": np.where(found["right_a"], "A", "B").tolist()}
    columns |= {name: found[name].tolist() for name in ("fact_id", "relation", "query", "object")}
    firsts = {name: found[f"first_{name}"].astype(object) for name in ("a", "b")}
    columns |= {name: first.where(first.notna(), None).tolist() for name, first in firsts.items()}
    for name in ("rank_a", "rank_b"):
        ranks = found[name].astype(int)
        columns[name] = ranks.astype(object).where(ranks < UNRANKED, None).tolist()
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _difference(line: Difference) -> dict[str, Any]:
    record = _flat(line)
    last = {name: record.pop(name) for name in ("only_a", "only_b")}
    return {**record, "relation": line.relation or None, **last}


def _flat(line: Difference | MeanDifference) -> dict[str, Any]:
    """Return a line as a flat dictionary: `low` and `high` replace its interval.

    `sample_low` and `sample_high` replace the interval of relations as a sample.
    """
    record: dict[str, Any] = {}
    for name, value in asdict(line).items():
        if name in ("interval", "sample_interval"):
            prefix = name.removesuffix("interval")
            record |= {f"{prefix}{end}": number for end, number in value.items()}
        else:
            record[name] = value
    return record


compare = ViewFunction(
    CompareRequest,
    CompareView(),
    """Compare two runs on the same facts: differences, significance, facts that one run gets right.

    Differences are B minus A. Averaged over facts: Tango's 95% score interval for paired shares and
    McNemar's exact test. Averaged over relations: Tango's interval with an effective number of
    facts, for these relations; Student's 95 % interval and t-test, for relations as a sample.

    Returns:
        A DataFrame with a row for each relation (or slice): n, a and b (P@k of each run),
        difference, low, high, only_a, only_b. The result of `compare.answer(request)` also has the
        tests over all facts (`found.whole`).

    Raises:
        UserError: If a run is unknown, or the runs have no facts in common.
    """,
)
