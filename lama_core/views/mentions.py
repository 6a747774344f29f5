"""View: P@k by how often a text mentions the fact's object or subject."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Annotated, Literal

import numpy as np
import pandas as pd

from lama_core.metrics.correlates import PER_BILLION, mentions_of
from lama_core.metrics.headlines import is_level
from lama_core.metrics.intervals import METHOD, share_intervals
from lama_core.metrics.known_ranks import hits
from lama_core.metrics.score_tables import stacked
from lama_core.requests import option
from lama_core.runs.info import Run
from lama_core.tables import Column, Table, count, interval, share, table_of_frame, text
from lama_core.views.bars import share_bars
from lama_core.views.choice import TopRequest
from lama_core.views.conclusions import as_share
from lama_core.views.figure import Axis, Figure
from lama_core.views.slices import LEAST_FACTS
from lama_core.views.view import Shown, View, ViewFunction

PER_MILLION = " per million words"  # follows a range of frequencies
NAMES = {"object": "answer", "subject": "subject"}  # for readers


@dataclass(frozen=True)
class MentionsRequest(TopRequest, command="results mentions", python="mentions"):
    """Request for P@k by mentions in a text: the fields of `results mentions`."""

    of: Annotated[Literal["object", "subject"], option("The name whose mentions are counted.")] = (
        "object"
    )


class MentionsView(View[MentionsRequest, pd.DataFrame]):
    """P@k by how often the model's training text, or a word list, mentions a name of the fact."""

    name = "mentions"
    title = "Mentions"
    question = "Do models know a fact better if its answer or subject is mentioned often?"
    example = "results mentions starter-minilm_mlm-manual --of subject"
    keys = ("mentions",)

    def compute(self, runs: Sequence[Run], request: MentionsRequest) -> pd.DataFrame:
        """Return a row for each run and range of mentions that has facts.

        Columns: run, mentions (`10 to 99 times`, or `10 to 99 times per million words` if only
        frequencies are known), n, p_at_k, low, high, text (where they are counted).
        """
        tables = []
        for run in runs:
            facts = run.facts[run.facts["excluded"].isna()]
            if request.relations:
                facts = facts[facts["relation"].isin(request.relations)]
            mentions = mentions_of(run.info.model)
            counts = mentions.of(facts[request.of].astype(str))
            is_rate = mentions.source == PER_BILLION
            ranks = facts[f"rank_{request.ranking_of(run.info)}"].to_numpy()
            right = hits(ranks, run.known_to[facts.index], request.k)
            ends = (10, 100, 1000, 10_000)  # of the ranges; the last one has none
            place = np.searchsorted(ends, counts / 1000 if is_rate else counts, side="right")
            n = np.bincount(place, minlength=len(ends) + 1)
            n_right = np.bincount(place, right, minlength=len(ends) + 1)
            interval = share_intervals(n_right, n)
            spans = [f"{low:,} to {end - 1:,}" for low, end in pairwise((0, *ends))]
            names = [f"{span} times" for span in (*spans, f"{ends[-1]:,} or more")]
            table = pd.DataFrame(
                {
                    "place": np.arange(len(n)) + len(n) * is_rate,
                    "run": run.info.id,
                    "mentions": [name + PER_MILLION * is_rate for name in names],
                    "n": n,
                    "p_at_k": n_right / np.maximum(n, 1),
                    "low": interval.low,
                    "high": interval.high,
                    "text": mentions.source,
                }
            )
            tables.append(table[n > 0])
        table = stacked(tables).sort_values("place", kind="stable", ignore_index=True)
        return table.drop(columns="place")

    def columns(self, shown: Shown[MentionsRequest, pd.DataFrame]) -> tuple[Column, ...]:
        """Return the columns of the table."""
        return (
            text("mentions", f"mentions of the {NAMES[shown.request.of]}"),
            text("model", cell=lambda line: shown.names[line["run"]]),
            count("n", shown.counts, of_run=True),
            share("p_at_k", f"P@{shown.request.k} over facts", of_run=True),
            interval(of_run=True),
        )

    def tables(self, shown: Shown[MentionsRequest, pd.DataFrame]) -> Iterator[Table | str]:
        """Yield the table."""
        yield table_of_frame(
            shown.chosen("mentions model n p_at_k interval"),
            shown.frame,
            title=f"P@{shown.request.k} over facts, in percent; intervals: {METHOD}",
        )

    def notes(self, shown: Shown[MentionsRequest, pd.DataFrame]) -> Iterator[str]:
        """Yield where the mentions of each model are counted."""
        texts = shown.frame.groupby("run", sort=False)["text"].first()
        for is_rate, where in (
            (False, "mentions in the model's training text"),
            (True, "frequency in English texts (wordfreq)"),
        ):
            names = [
                shown.names[str(run)]
                for run, text in texts.items()
                if (text == PER_BILLION) == is_rate
            ]
            if names:
                yield f"{' and '.join(names)}: {where}."

    def conclusion(self, shown: Shown[MentionsRequest, pd.DataFrame]) -> str:
        """Return in how many runs P@k rises or falls, and the ends of the largest change."""
        known = shown.frame[(shown.frame["n"] >= LEAST_FACTS) & shown.frame["p_at_k"].notna()]
        ends = {  # run -> its rows with the fewest and the most mentions
            str(run): part.iloc[[0, -1]].to_dict("records")
            for run, part in known.groupby("run", sort=False)
            if len(part) > 1
        }
        if not ends:
            return ""
        changes = {run: most["p_at_k"] - fewest["p_at_k"] for run, (fewest, most) in ends.items()}
        clearest = max(changes, key=lambda run: abs(changes[run]))
        start, end = (f"{as_share(row['p_at_k'])} ({row['mentions']})" for row in ends[clearest])
        of = NAMES[shown.request.of]
        if is_level(changes[clearest]):
            return f"P@{shown.request.k} over facts doesn't change with the mentions of the {of}"
        few = f" (groups of fewer than {LEAST_FACTS} facts aside)" * (len(known) < len(shown.frame))
        way = "rises" if changes[clearest] > 0 else "falls"
        n_alike = sum(change * changes[clearest] > 0 for change in changes.values())
        of_all = f" in {n_alike} of {len(changes)} models" * (len(changes) > 1)
        return (
            f"P@{shown.request.k} over facts {way} with the mentions of the {of}{of_all}: for "
            f"{shown.names[clearest]} from {start} to {end}{few}"
        )

    def figure(self, shown: Shown[MentionsRequest, pd.DataFrame]) -> Figure:
        """Return a line for each run over the ranges of mentions with enough facts."""
        return _figure(shown, shown.frame)


def panels(shown: Shown[MentionsRequest, pd.DataFrame]) -> list[Figure]:
    """Return the figure in parts: mentions in training texts, and frequencies."""
    parts = shown.frame.groupby(shown.frame["text"] == PER_BILLION)
    return [_figure(shown, part.reset_index(drop=True)) for _, part in parts]


def _figure(shown: Shown[MentionsRequest, pd.DataFrame], frame: pd.DataFrame) -> Figure:
    """Return a line for each run of the frame over the ranges with enough facts."""
    of = NAMES[shown.request.of]
    names = dict.fromkeys(frame["mentions"])
    is_rate = frame["text"] == PER_BILLION
    rates = bool(is_rate.all())
    alone = [shown.names[str(run)] for run in frame["run"].unique()]
    where = PER_MILLION if rates else " in the training text"
    rows = _drawn(frame)
    drawn = share_bars(
        shown,
        rows,
        Axis(
            column="mentions",
            title=f"mentions of the {of}" + PER_MILLION * rates,
            order=tuple(names),
            ticks={
                name: name.replace(" times", "").removesuffix(PER_MILLION if rates else "")
                for name in names
            },
        ),
        title=f"P@{shown.request.k} over facts by mentions of the {of}"
        + where * (is_rate.nunique() == 1)
        + f", {', '.join(alone)}" * (len(alone) == 1 < len(shown.infos)),
    )
    few = f"; ranges of fewer than {LEAST_FACTS} {shown.counts} aren't drawn"
    few *= len(rows) < len(frame)
    parts = shown.frame.groupby(shown.frame["text"] == PER_BILLION)
    highs = [high for _, part in parts for high in _drawn(part)["high"].dropna()]  # of all panels
    ends = (0, min(1.0, 1.05 * max(highs))) if highs else None
    value = replace(drawn.value, ends=ends)
    return replace(drawn, shape="lines", value=value, caption=drawn.caption + few)


def _drawn(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the ranges with enough facts, or all if there are none."""
    enough = frame[frame["n"] >= LEAST_FACTS]
    return enough if len(enough) else frame


mentions = ViewFunction(
    MentionsRequest,
    MentionsView(),
    """Return P@k by how often a text mentions the object or subject of the facts.

    Mentions are counted in the embedded models' training text; for other models, by the word
    frequencies of the package wordfreq.

    Returns:
        A DataFrame with a row for each run and range of mentions: mentions, n (facts), p_at_k, low,
        high, text (where mentions are counted).

    Raises:
        UserError: If there is no finished run, or a run or relation is unknown.
    """,
)
