"""View: P@k by how often a text mentions the fact's object or subject."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np

from lama_core.metrics.correlates import PER_BILLION, mentions_of
from lama_core.metrics.intervals import METHOD, share_intervals
from lama_core.requests import option
from lama_core.runs.info import Run
from lama_core.tables import Column, Table, count, interval, share, table_of_frame, text
from lama_core.views.bars import share_bars
from lama_core.views.choice import TopRequest
from lama_core.views.conclusions import with_interval
from lama_core.views.figure import Axis, Figure
from lama_core.views.slices import LEAST_FACTS
from lama_core.views.view import Shown, View, ViewFunction

if TYPE_CHECKING:
    import pandas as pd

# Numbers of mentions: minimum and maximum of each row; None is unlimited.
MENTIONS = ((0, 9), (10, 99), (100, 999), (1000, 9999), (10000, None))


@dataclass(frozen=True)
class MentionsRequest(TopRequest):
    """Request for P@k by mentions in a text: the fields of `results mentions`."""

    command: ClassVar[tuple[str, ...]] = ("results", "mentions")
    python: ClassVar[str] = "mentions"

    of: Annotated[Literal["object", "subject"], option("The name whose mentions are counted.")] = (
        "object"
    )


class MentionsView(View[MentionsRequest, "pd.DataFrame"]):
    """P@k by how often the model's training text, or a word list, mentions a name of the fact."""

    name = "mentions"
    title = "Mentions"
    question = "Do models know facts better if their names are frequent?"
    example = "results mentions starter-minilm_mlm-manual --of subject"

    def compute(self, runs: Sequence[Run], request: MentionsRequest) -> "pd.DataFrame":
        """Return a row for each run and range of mentions that has facts.

        Columns: run, mentions (`10 to 99 times`), n, p_at_k, low, high, text (where they are
        counted).
        """
        import pandas as pd

        lines = []
        for run in runs:
            facts = run.facts[run.facts["excluded"].isna()]
            if request.relations:
                facts = facts[facts["relation"].isin(request.relations)]
            mentions = mentions_of(run.info.model)
            codes, names = pd.factorize(facts[request.of].astype(str))
            counts = np.asarray(mentions.count(list(names)))[codes]
            right = facts[f"rank_{request.ranking_of(run.info)}"].to_numpy() <= request.k
            for place, (low, high) in enumerate(MENTIONS):
                inside = (counts >= low) & (counts < (np.inf if high is None else high + 1))
                n, n_right = int(inside.sum()), int(right[inside].sum())
                if n:
                    end = f" to {high:,}" if high else " or more"
                    ends = share_intervals(np.array(n_right), np.array(n))
                    row = (place, run.info.id, f"{low:,}{end} times", n, n_right / n)
                    lines.append((*row, float(ends.low), float(ends.high), mentions.source))
        columns = ["place", "run", "mentions", "n", "p_at_k", "low", "high", "text"]
        table = pd.DataFrame(lines, columns=columns).sort_values("place", kind="stable")
        return table.drop(columns="place").reset_index(drop=True)

    def keys(self, shown: Shown[MentionsRequest, "pd.DataFrame"]) -> tuple[str, ...]:
        """Return the columns that, with the run, identify a row."""
        return ("mentions",)

    def columns(self, shown: Shown[MentionsRequest, "pd.DataFrame"]) -> tuple[Column, ...]:
        """Return the columns of the table."""
        return (
            text("mentions", f"mentions of the {shown.request.of}"),
            text("model", cell=lambda line: shown.names[line["run"]]),
            count("n", shown.counts, of_run=True),
            share("p_at_k", f"P@{shown.request.k}", of_run=True),
            interval(of_run=True),
        )

    def tables(self, shown: Shown[MentionsRequest, "pd.DataFrame"]) -> Iterator[Table | str]:
        """Yield the table."""
        yield table_of_frame(
            shown.chosen("mentions model n p_at_k interval"),
            shown.frame,
            title=f"P@{shown.request.k} over facts, in percent; intervals: {METHOD}",
        )

    def notes(self, shown: Shown[MentionsRequest, "pd.DataFrame"]) -> Iterator[str]:
        """Yield where the mentions of each model are counted."""
        for run, part in shown.frame.groupby("run", sort=False):
            yield f"{shown.names[str(run)]}: {part['text'].iloc[0]}."

    def conclusion(self, shown: Shown[MentionsRequest, "pd.DataFrame"]) -> str:
        """Return P@k of the fewest and the most mentions, of the run with the largest change."""
        ends = {
            str(run): part.iloc[[0, -1]].to_dict("records")
            for run, part in shown.frame[shown.frame["n"] >= LEAST_FACTS].groupby("run", sort=False)
            if len(part) > 1
        }
        if not ends:
            return ""
        changes = {run: last["p_at_k"] - first["p_at_k"] for run, (first, last) in ends.items()}
        most = max(changes, key=lambda run: abs(changes[run]))
        first, last = (
            f"{with_interval(line['p_at_k'], line['low'], line['high'])} at {line['mentions']}"
            for line in ends[most]
        )
        way = "rises" if changes[most] > 0 else "falls"
        n_alike = sum(change * changes[most] > 0 for change in changes.values())
        few = " with facts in several ranges" * (len(changes) < len(shown.infos))
        of_all = f"; it {way} in {n_alike} of {len(changes)} models{few}" * (len(changes) > 1)
        return (
            f"For {shown.names[most]}, P@{shown.request.k} {way} with the mentions of the "
            f"{shown.request.of}, from {first} to {last}{of_all}"
        )

    def figure(self, shown: Shown[MentionsRequest, "pd.DataFrame"]) -> Figure:
        """Return a line for each run over the ranges of mentions with enough facts."""
        of, frame = shown.request.of, shown.frame
        names = dict.fromkeys(frame["mentions"])
        enough = frame[frame["n"] >= LEAST_FACTS]
        drawn = share_bars(
            shown,
            enough if len(enough) else frame,
            Axis(
                column="mentions",
                title=f"mentions of the {of}",
                order=tuple(names),
                ticks={name: name.removesuffix(" times") for name in names},
            ),
            title=f"P@{shown.request.k} by mentions of the {of} {_counted_in(shown)}",
        )
        few = f"; ranges of fewer than {LEAST_FACTS} {shown.counts} aren't drawn"
        few *= 0 < len(enough) < len(frame)
        return replace(drawn, shape="lines", caption=drawn.caption + few)


def _counted_in(shown: Shown[MentionsRequest, "pd.DataFrame"]) -> str:
    """Return where mentions are counted; names the models whose mentions are frequencies."""
    texts = shown.frame.groupby("run", sort=False)["text"].first()
    rates = [shown.names[str(run)] for run, text in texts.items() if text == PER_BILLION]
    if len(rates) == len(texts):
        return "per billion words"
    of_others = f" (of {', '.join(rates)}: per billion words)" if rates else ""
    return f"in the training text{of_others}"


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
