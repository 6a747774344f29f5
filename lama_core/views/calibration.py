"""View: reliability diagram and expected calibration error (Guo et al. 2017)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from lama_core.grouping import grouped
from lama_core.metrics.calibration import expected_calibration_error
from lama_core.metrics.intervals import share_intervals
from lama_core.metrics.score_tables import calibrate, of_run, stacked
from lama_core.rounding import fixed, percent
from lama_core.runs.info import Run, RunInfo
from lama_core.tables import Column, Line, Table, count, number, share, table_of_frame, text
from lama_core.views.choice import RunsRequest
from lama_core.views.conclusions import as_share, listed
from lama_core.views.figure import Axis, Figure, said, said_interval
from lama_core.views.view import Facts, Shown, View, ViewFunction

MOST = 0.5  # of a run's facts: if more are in the lowest bin, a note says so
SURE = 0.5  # first answers with a larger probability are sure
CALIBRATED = ("confidence", "accuracy")  # columns that are equal in a calibrated run


@dataclass(frozen=True)
class CalibrationRequest(RunsRequest, command="results calibration", python="calibration"):
    """Request for reliability diagrams: the fields of `results calibration`."""


class CalibrationView(View[CalibrationRequest, pd.DataFrame]):
    """Accuracy of the first answers in bins of their probability."""

    name = "calibration"
    title = "Calibration"
    question = "Is a confident first answer right more often?"
    example = "results calibration starter-minilm_mlm-manual"
    of_probabilities = True
    keys = ("low", "high")

    def compute(self, runs: Sequence[Run], request: CalibrationRequest) -> pd.DataFrame:
        """Return the bins of `metrics.calibrate`; a bin without facts has NaN means."""
        tables = []
        for run in runs:
            ranking, relations = request.ranking_of(run.info), request.relations or None
            bins = calibrate(run, ranking=ranking, relations=relations)
            tables.append(of_run(run, ece=expected_calibration_error(bins), **bins))
        return stacked(tables)

    def columns(self, shown: Shown[CalibrationRequest, pd.DataFrame]) -> tuple[Column, ...]:
        """Return the columns of the table."""
        return (
            text("bin", "probability", cell=_bin),
            text("model", cell=lambda line: shown.names[line["run"]]),
            count("n", shown.counts, of_run=True),
            number("confidence", 3, "mean probability", of_run=True),
            share("accuracy", "right, %", "Share of right first answers.", of_run=True),
        )

    def tables(self, shown: Shown[CalibrationRequest, pd.DataFrame]) -> Iterator[Table | str]:
        """Yield the bins with facts, and the expected calibration error of each run."""
        yield table_of_frame(
            shown.chosen("bin model n confidence accuracy"),
            shown.frame[shown.frame["n"] > 0],
            title=f"{shown.counts.capitalize()} by the probability of the first answer "
            f"({normalisation(shown.infos)})",
        )
        for run, ece in errors(shown).items():
            n = int(shown.frame.loc[shown.frame["run"] == run, "n"].sum())
            error = "unknown" if ece != ece else f"{percent(ece)} %"
            yield f"{shown.names[run]}: expected calibration error {error}, {n:,} {shown.counts}"

    def conclusion(self, shown: Shown[CalibrationRequest, pd.DataFrame]) -> str:
        """Return whether each run's sure first answers are right more often than its others."""
        frame = shown.frame[shown.frame["n"] > 0]
        frame = frame.assign(sure=frame["low"] >= SURE, right=frame["accuracy"] * frame["n"])
        sums = frame.groupby(["run", "sure"])[["right", "n"]].sum()
        shares = (sums["right"] / sums["n"]).unstack().dropna()
        if shares.shape[1] < 2 or shares.empty:  # no sure answers, or only these
            return ""
        n_more = int((shares[True] > shares[False]).sum())
        of = {0: " not", len(shares): ""}.get(n_more, f" in {n_more} of {len(shares)} runs")
        each = listed(shown.names, shares[True], others=shares[False])
        return f"First answers with a probability above {SURE} are{of} right more often: {each}"

    def notes(self, shown: Shown[CalibrationRequest, pd.DataFrame]) -> Iterator[str]:
        """Yield which runs are over- or underconfident where they are sure.

        Also which run has the smallest error, if that is because its probabilities are low.
        """
        each = ", ".join(
            f"{' and '.join(runs)} {'is' if len(runs) == 1 else 'are'} {way}"
            for way, runs in grouped(_ways(shown.frame, shown.names)).items()
        )
        if each:
            yield f"Where sure (probability above {SURE}), {each}."
        known = {run: ece for run, ece in errors(shown).items() if ece == ece}
        if len(known) > 1:
            best = min(known, key=known.__getitem__)
            bins = shown.frame[shown.frame["run"] == best].sort_values("low")
            share = bins["n"].iloc[0] / bins["n"].sum()
            if share > MOST:
                yield (
                    f"{shown.names[best]} has the smallest calibration error "
                    f"({as_share(known[best])}), as {as_share(share)} of its first answers have a "
                    f"probability of {_bin(bins.iloc[0].to_dict())}."
                )

    def figure(self, shown: Shown[CalibrationRequest, pd.DataFrame]) -> Figure:
        """Return the reliability diagram; the area of a point grows with its number of facts."""
        frame = shown.frame[shown.frame["n"] > 0]
        n = frame["n"].to_numpy(dtype=np.int64)
        ends_right = share_intervals(np.rint(frame["accuracy"] * n).to_numpy(dtype=np.int64), n)
        frame = frame.assign(right_low=ends_right.low, right_high=ends_right.high)
        ends = (-0.02, 1.02)
        return Figure(
            shape="lines",
            frame=frame.assign(
                said=[
                    said(
                        shown.names[line["run"]],
                        f"probability {fixed(line['confidence'], 2)}, {percent(line['accuracy'])} "
                        "% right",
                        said_interval(line["right_low"], line["right_high"]),
                        f"{line['n']:,} {shown.counts} with a probability of {_bin(line)}",
                    )
                    for line in frame.to_dict("records")
                ]
            ),
            by=Axis(
                column="confidence",
                title="probability of the first answer, %",
                share=True,
                ends=ends,
            ),
            value=Axis(column="accuracy", title="right first answers, %", share=True, ends=ends),
            names=shown.names,
            low="right_low",
            high="right_high",
            diagonal="perfect calibration",
            size="n",
            size_unit=shown.unit,
            title=shown.title_of("Reliability diagram"),
            caption=f"{shown.caption}; probability: {normalisation(shown.infos)}",
        )

    def facts(
        self, shown: Shown[CalibrationRequest, pd.DataFrame], line: Line, column: str = ""
    ) -> Facts:
        """Return the facts of a bin."""
        ends = {"confidence_min": line["low"], "confidence_max": line["high"]}
        return Facts(line["run"], {"relations": tuple(shown.request.relations), **ends})


def _ways(frame: pd.DataFrame, names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield whether each run is over- or underconfident where it is sure, and by how much.

    names: run -> its name. Runs without sure answers are skipped.
    """
    for run, bins in frame[(frame["n"] > 0) & (frame["low"] >= SURE)].groupby("run", sort=False):
        n = int(bins["n"].sum())
        mean, right = (float((bins[name] * bins["n"]).sum()) / n for name in CALIBRATED)
        ends = share_intervals(np.array(round(right * n)), np.array(n))
        way = "overconfident" if mean > right else "underconfident"
        if ends.low <= mean <= ends.high:
            way = "calibrated"
        yield way, f"{names[str(run)]} (mean probability {as_share(mean)}, {as_share(right)} right)"


def errors(shown: Shown[CalibrationRequest, pd.DataFrame]) -> dict[str, float]:
    """Return run id -> expected calibration error; NaN without facts."""
    return {
        str(run): float(ece)
        for run, ece in shown.frame.groupby("run", sort=False)["ece"].first().items()
    }


def normalisation(infos: Sequence[RunInfo]) -> str:
    """Return how the probabilities of the first answers of these runs are normalised."""
    words, answers = "over the model's whole vocabulary", "softmax over all answers' scores"
    texts = "product of the tokens of the generated text"
    generated = [info.generates for info in infos]
    statements = [info.ranks_statements for info in infos]
    if all(generated):
        return texts
    if any(generated):
        return f"{words} or {answers}; of generated answers: {texts}"
    if not any(statements):
        return words
    return answers if all(statements) else f"{words}; in whole-answer runs {answers}"


def _bin(line: Line) -> str:
    return f"{fixed(line['low'], 1)} to {fixed(line['high'], 1)}"


calibration = ViewFunction(
    CalibrationRequest,
    CalibrationView(),
    """Return the calibration of the first answers of finished runs (Guo et al. 2017).

    Ten bins of equal width by the probability of the first answer; facts without an answer are
    excluded.

    Returns:
        A DataFrame with a row for each run and bin: ece (expected calibration error of the run),
        low (exclusive) and high (inclusive) probability, n (facts), confidence (mean probability
        of the first answer) and accuracy (share of right first answers), NaN without facts.

    Raises:
        UserError: If there is no finished run, or a run or relation is unknown.
    """,
)
