"""View: what correlates with a right first answer (Petroni et al. 2019, Figure 3)."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import pandas as pd

from lama_core.errors import UserError, choose
from lama_core.metrics.correlates import (
    ALL_SOURCES,
    LABELS,
    EmbedWords,
    correlate,
    correlation_sources,
    mentions_of,
    wordfreq_mentions,
)
from lama_core.metrics.score_tables import stacked
from lama_core.models.protocols import KINDS
from lama_core.published import published_table
from lama_core.requests import option
from lama_core.rounding import fixed
from lama_core.runs.info import Run, RunInfo
from lama_core.tables import Column, Line, Table, count, number, table_of_frame, text
from lama_core.views.choice import RunsRequest
from lama_core.views.figure import Axis, Figure, said
from lama_core.views.view import Facts, Shown, View, ViewFunction

RIGHT = "P@1"  # the measure of a right first answer
MEASURES = tuple(LABELS)
NAMES = {  # of measures on the axes of the figure
    "SM": "subject mentions",
    "OM": "object mentions",
    "LPFP": "log-probability",
    "SOCS": "similar vectors",
    "ST": "subject words",
    "SWP": "subject tokens",
    RIGHT: "right answer",
}
WHERE = {  # a run is right more or less often
    "SM": "the subject is mentioned often",
    "OM": "the right answer is mentioned often",
    "LPFP": "it is sure of its first answer",
    "SOCS": "subject and object have similar vectors",
    "ST": "the subject has many words",
    "SWP": "the subject has many subword tokens",
}
# Labels of the scale of colours; larger correlations have the colours of its ends.
SCALE = {-0.6: "≤ −0.6", -0.3: "−0.3", 0.0: "0", 0.3: "0.3", 0.6: "≥ 0.6"}


def _vectors_of(model: str) -> EmbedWords | None:
    from lama_core.models.cache import load_model  # slow to import

    return getattr(load_model(model), "word_vectors", None)


@dataclass(frozen=True)
class CorrelationsRequest(RunsRequest, command="results correlations", python="correlations"):
    """Request for correlations over facts: the fields of `results correlations`.

    vectors_of: Returns the function that gives a model's vectors of words, or None if the model has
    none. The app loads models in another process.
    """

    of: Annotated[
        str,
        option(
            "Correlate the facts of this one of the runs only; the others restrict its facts "
            "unless --unaligned. Default: all; the figure shows the first."
        ),
    ] = ""
    source: Annotated[
        str,
        option(
            "Source of the facts, or all. Default: TREx, the source of the paper's figure, or else "
            "all."
        ),
    ] = ""
    vectors: Annotated[
        bool,
        option(
            "Include SOCS, the cosine of subject and object in the model's input embeddings. This "
            "loads the model."
        ),
    ] = False
    vectors_of: Callable[[str], EmbedWords | None] = field(
        default=_vectors_of, kw_only=True, compare=False, repr=False
    )


class CorrelationsView(View[CorrelationsRequest, pd.DataFrame]):
    """Pearson's correlations over facts of P@1 with confidence, frequency and length."""

    name = "correlations"
    title = "Correlations"
    question = "What correlates with a right answer: confidence, frequency, length of the subject?"
    example = "results correlations starter-minilm_mlm-manual"
    keys = ("measure",)

    def compute(self, runs: Sequence[Run], request: CorrelationsRequest) -> pd.DataFrame:
        """Return the matrix of `metrics.correlate` of each run, or of the run `of`.

        Raises:
            UserError: If a run has no facts of the source, or `of` isn't one of the runs.
        """
        of = choose(request.of, [run.info.id for run in runs], "run") if request.of else ""
        tables = []
        for run in runs:
            if of in ("", run.info.id):
                info = run.info
                is_model = info.model_kind in KINDS
                found = correlate(
                    run,
                    mentions_of(info.model) if is_model else wordfreq_mentions(),
                    request.vectors_of(info.model) if request.vectors and is_model else None,
                    ranking=request.ranking_of(info),
                    relations=request.relations or None,
                    source=source_of(info, request),
                )
                matrix = found.matrix.rename_axis("measure").reset_index()
                matrix.insert(0, "run", info.id)
                tables.append(
                    matrix.assign(
                        n=found.n, source=source_of(info, request), mentions=found.mentions
                    )
                )
        return stacked(tables)

    def columns(self, shown: Shown[CorrelationsRequest, pd.DataFrame]) -> tuple[Column, ...]:
        """Return the columns of the table."""
        return (
            text("model", cell=lambda line: shown.names[line["run"]]),
            text("measure"),
            *(number(name, 2, help_text=meaning) for name, meaning in LABELS.items()),
            count("n", shown.counts),
            text("source"),
        )

    def tables(self, shown: Shown[CorrelationsRequest, pd.DataFrame]) -> Iterator[Table | str]:
        """Yield the matrices."""
        meanings = "; ".join(f"{name}: {meaning}" for name, meaning in LABELS.items())
        yield table_of_frame(
            shown.chosen(f"model measure {' '.join(MEASURES)} n source"),
            shown.frame,
            title=f"Pearson's correlation over {shown.counts}. {meanings}",
        )

    def basis(self, shown: Shown[CorrelationsRequest, pd.DataFrame]) -> str:
        """Return the numbers of relations and facts of the source."""
        source = shown.frame["source"].iloc[0]
        return shown.size(lambda one: source in (ALL_SOURCES, one.source))

    def notes(self, shown: Shown[CorrelationsRequest, pd.DataFrame]) -> Iterator[str]:
        """Yield where the numbers of mentions come from."""
        counted = ", ".join(shown.frame["mentions"].drop_duplicates())
        yield f"Source of the mention counts: {counted}."

    def conclusion(self, shown: Shown[CorrelationsRequest, pd.DataFrame]) -> str:
        """Return what correlates most with a right first answer, of the first run."""
        run = shown.frame["run"].iloc[0]
        frame = shown.frame[shown.frame["run"] == run].set_index("measure")
        known = frame[RIGHT].drop(RIGHT).astype(float).dropna().sort_values(key=abs)
        if known.empty:
            return ""
        often = "more" if known.iloc[-1] > 0 else "less"
        return (
            f"{shown.names[run]} is right {often} often where {WHERE[known.index[-1]]} "
            f"(r = {fixed(known.iloc[-1], 2)}, the strongest of {len(known)} correlations)"
        )

    def figure(self, shown: Shown[CorrelationsRequest, pd.DataFrame]) -> Figure:
        """Return the lower triangle of the matrix of the first run."""
        frame = shown.frame[shown.frame["run"] == shown.frame["run"].iloc[0]]
        line = frame.iloc[0]
        about = f"{line['n']:,} {shown.counts}"
        source = "all sources" if line["source"] == ALL_SOURCES else line["source"]
        info = next(one for one in shown.infos if one.id == line["run"])
        ranking, data = shown.request.ranking_of(info), info.dataset
        return triangle(
            frame.set_index("measure")[[one for one in MEASURES if frame[one].notna().any()]],
            title=f"{shown.names[line['run']]}, {about} of {source}",
            caption=f"Pearson's correlation over {about} of {data}, {source}, {ranking} ranking. "
            f"Mentions: {line['mentions']}",
            about=about,
            more={name: line[name] for name in ("run", "n", "source")},
        )

    def facts(
        self, shown: Shown[CorrelationsRequest, pd.DataFrame], line: Line, column: str = ""
    ) -> Facts:
        """Return the facts of a matrix, the same for all cells."""
        sources = () if line["source"] == ALL_SOURCES else (line["source"],)
        return Facts(line["run"], {"relations": tuple(shown.request.relations), "sources": sources})


def source_of(info: RunInfo, request: CorrelationsRequest) -> str:
    """Return the source of a run's facts that a request means.

    Raises:
        UserError: If the run has no facts of this source.
    """
    sources = correlation_sources(info, request.relations or None)
    if not sources:
        raise UserError(f"{info.id} has no facts of these relations that count.")
    return choose(request.source, sources, "source") if request.source else sources[0]


def triangle(
    matrix: pd.DataFrame, *, title: str, caption: str, about: str = "", more: Line | None = None
) -> Figure:
    """Return the lower triangle of a matrix as a heat map.

    Args:
        matrix: Pearson's r, [measure, measure]; NaN if unknown.
        title: The title.
        caption: What the numbers count.
        about: The number of facts, in words; empty if unknown.
        more: Further columns, the same for all cells.
    """
    names = list(map(str, matrix))
    values = matrix.loc[names, names].to_numpy(dtype=float)
    cells: list[dict[str, Any]] = []
    for at, row in enumerate(names[1:], 1):
        for place, name in enumerate(names[:at]):
            r = float(values[at, place])
            known = r == r
            cells.append(
                {
                    "row": row,
                    "measure": NAMES[name],
                    "r": r,
                    "text": fixed(r, 2) if known else "",
                    "said": said(
                        f"{NAMES[row]} with {NAMES[name]}: "
                        + (f"r = {fixed(r, 3)}" if known else "unknown"),
                        about,
                    ),
                }
            )
    return Figure(
        shape="heat map",
        frame=pd.DataFrame(cells).assign(**more or {}),
        by=Axis(
            column="measure",
            title="property of a fact",
            order=tuple(NAMES[name] for name in names[:-1]),
        ),
        value=Axis(column="r", title="Pearson's r", ends=(-0.6, 0.6), ticks=SCALE),
        rows="property of a fact",
        series="row",
        names={name: NAMES[name] for name in names[1:]},
        text="text",
        title=title,
        caption=caption,
    )


def published_triangle() -> Figure:
    """Return Figure 3 of Petroni et al. 2019."""
    table = published_table("petroni2019", "figure3").frame().set_index("measure")
    return triangle(
        table.reindex(index=list(MEASURES), columns=list(MEASURES)).astype(float),
        title="BERT-large on T-REx (published)",
        caption="Petroni et al. 2019, Figure 3",
        about="over the facts of T-REx",
    )


correlations = ViewFunction(
    CorrelationsRequest,
    CorrelationsView(),
    """Correlate a right first answer with properties of the facts (Petroni et al. 2019, Figure 3).

    Returns:
        A DataFrame with a row for each run and measure: Pearson's r with each measure (NaN if one
        is constant or unknown), n (facts), source (of the facts), and mentions (where the numbers
        of mentions come from). SM: mentions of the subject; OM: of the object; LPFP:
        log-probability of the first answer; SOCS: cosine of their vectors; ST: words of the
        subject; SWP: its subword tokens; P@1: 1 if the first answer is right.

    Raises:
        UserError: If there is no finished run, a run or relation is unknown, or a run has no facts
            of the source.
    """,
)
