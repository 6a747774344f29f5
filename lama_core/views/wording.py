"""View: effects of the wording on the same facts: paraphrases, negated and misprimed queries."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from lama_core import metrics
from lama_core.errors import UserError
from lama_core.metrics.score_tables import of_run, stacked
from lama_core.rounding import counted, fixed, percent
from lama_core.runs.info import Run
from lama_core.tables import Column, Line, Table, count, number, share, table_of_frame, text
from lama_core.views.choice import RunsRequest
from lama_core.views.conclusions import as_share, listed
from lama_core.views.figure import RELATION, Axis, Figure, right_title, said
from lama_core.views.view import Facts, Shown, View, ViewFunction

MEAN = "mean over relations"
MOST_RELATIONS = 12  # of the figure
LONGEST = 36  # characters of a label in the chart
# The two columns of the figure, and what hollow and full points mean.
ALTERED = (("plain", "altered"), "plain query", "altered query")
SEVERAL = (("consistent_accuracy", "accuracy"), "right in every wording", "mean of the wordings")


@dataclass(frozen=True)
class WordingRequest(RunsRequest, command="results wording", python="wording"):
    """Request for effects of the wording: the fields of `results wording`."""


@dataclass(frozen=True)
class Wordings:
    """Effects of the wording of queries, with a row for each run and relation.

    Attributes:
        agreement: Consistency of paraphrases (Elazar et al. 2021): the columns run and model, and
            those of `metrics.paraphrase_consistency`. Empty if no run has several wordings.
        altered: Negated and misprimed queries compared with plain ones (Kassner and Schütze 2020):
            the columns of `metrics.contrast`, and prompts. Empty if no run has altered queries.
    """

    agreement: pd.DataFrame
    altered: pd.DataFrame


class WordingView(View[WordingRequest, Wordings]):
    """Consistency of paraphrases, and negated and misprimed queries compared with plain ones."""

    name = "wording"
    title = "Wording and negation"
    question = "Does the first answer change with the wording, or with a negation?"
    example = "results wording starter-minilm_mlm-negated starter-minilm_mlm-paraphrases"
    aligned = False
    keys = ("relation",)

    def compute(self, runs: Sequence[Run], request: WordingRequest) -> Wordings:
        """Return both tables.

        Raises:
            UserError: If no run has several wordings for a fact.
        """
        agreement, altered = [], []
        for run in runs:
            info, ranking = run.info, request.ranking_of(run.info)
            found = metrics.paraphrase_consistency(run.facts, ranking=ranking)
            agreement.append(of_run(run, **found))
            if "plain" in run.facts:
                found = metrics.contrast(run, ranking=ranking)
                altered.append(found.assign(prompts=info.prompts))
        tables = Wordings(_chosen(agreement, request), _chosen(altered, request))
        if tables.agreement.empty and tables.altered.empty:
            of = " of these relations" * bool(request.relations)
            raise UserError(
                f"None of these runs has several wordings for a fact{of}. Run `probe` with "
                "--prompts paraphrases, negated or misprimed."
            )
        return tables

    def frame(self, shown: Shown[WordingRequest, Wordings]) -> pd.DataFrame:
        """Return both tables, one after the other."""
        return _filled([shown.found.agreement, shown.found.altered])

    def columns(self, shown: Shown[WordingRequest, Wordings]) -> tuple[Column, ...]:
        """Return the columns of both tables."""
        prompts = {info.id: info.prompts for info in shown.infos}
        return (
            text("relation"),
            text("model"),
            text("run", cell=lambda line: shown.names[line["run"]]),
            text("prompts", cell=lambda line: prompts[line["run"]]),
            share(
                "consistency",
                help_text="Pairs of wordings with the same first answer, before filtering.",
            ),
            share("accuracy", "P@1", "P@1 over all wordings."),
            share("consistent_accuracy", "consistent P@1", "Facts that every wording gets right."),
            count("n_facts", "facts", "Facts with several wordings."),
            number("n_prompts", 1, "prompts", "Wordings of each fact, on average."),
            share(
                "overlap",
                "same first",
                "Facts with the same first answer to both queries, before filtering.",
            ),
            number("spearman", 2, "Spearman", "Mean correlation of the candidates' ranks."),
            share("plain", "P@1 plain", "P@1 of the plain queries."),
            share(
                "altered",
                "object named first",
                "Altered queries whose first answer is the object. Of a negated query it is wrong.",
            ),
            count("n", "facts", "Facts with both queries."),
        )

    def tables(self, shown: Shown[WordingRequest, Wordings]) -> Iterator[Table | str]:
        """Yield each table that has rows."""
        agreement, altered = shown.found.agreement, shown.found.altered
        if len(agreement):
            yield table_of_frame(
                shown.chosen(
                    "relation model consistency accuracy consistent_accuracy n_facts n_prompts"
                ),
                agreement,
                title="Pairs of wordings with the same first answer, in percent (Elazar et al. "
                "2021)",
            )
        if len(altered):
            yield table_of_frame(
                shown.chosen("relation model prompts overlap spearman plain altered n"),
                altered,
                title="Negated or misprimed compared with plain, in percent (Kassner and Schütze "
                "2020)",
            )

    def conclusion(self, shown: Shown[WordingRequest, Wordings]) -> str:
        """Return the means of the chart, over relations that all runs have."""
        altered, agreement = map(in_all, (shown.found.altered, shown.found.agreement))
        found = []
        if len(altered):
            found.append(
                f"Of the altered queries, {_means(shown, altered, 'overlap')} keep the first "
                f"answer; the object is the first answer of {_means(shown, altered, 'altered')}, "
                f"of plain queries of {_means(shown, altered, 'plain')}"
            )
        if len(agreement):
            of = agreement.groupby("run", sort=False)["n_facts"].sum()
            n_wordings = agreement.groupby("run", sort=False)["n_prompts"].mean()
            differ = ", ".join(
                f"{of[run]:,} facts in {fixed(n_wordings[run], 0)} wordings ({name})"
                for run, name in shown.names.items()
                if run in of.index
            )
            is_same = of.nunique() == n_wordings.nunique() == 1
            found.append(
                f"Not comparable, as the runs have {differ}. "
                * (not is_same)
                + "Of the pairs of wordings, "
                f"{_means(shown, agreement, 'consistency')} have the same first answer; of the "
                f"facts, {_means(shown, agreement, 'consistent_accuracy')} are right in every "
                f"wording, {_means(shown, agreement, 'accuracy')} in one on average"
            )
        return ". ".join(found)

    def basis(self, shown: Shown[WordingRequest, Wordings]) -> str:
        """Return the numbers of relations that all runs have, and of their facts."""
        both = map(in_all, (shown.found.altered, shown.found.agreement))
        names = {name for table in both if len(table) for name in table["relation"]}
        return "means over " + shown.size(counts=lambda one: one.name in names)

    def json(self, shown: Shown[WordingRequest, Wordings]) -> dict[str, list[dict[Any, Any]]]:
        """Return both tables by their names."""
        return {
            "consistency": shown.found.agreement.to_dict("records"),
            "contrast": shown.found.altered.to_dict("records"),
        }

    def figure(self, shown: Shown[WordingRequest, Wordings]) -> Figure:
        """Return P@1 of the relations that the wording changes most, from a hollow to a full point.

        Altered queries are compared with plain ones; several wordings with every wording.
        """
        altered = len(shown.found.altered) > 0
        value = "object named first, % (P@1)" if altered else right_title(1)
        frame = in_all(shown.found.altered if altered else shown.found.agreement)
        (before, after), hollow, full = ALTERED if altered else SEVERAL
        # Two marks for each run: of its mean, and of the relations that change most.
        table = frame.rename(columns={"n_facts": "n"})[["run", "relation", before, after, "n"]]
        means = table.groupby("run", sort=False, as_index=False).agg(
            {before: "mean", after: "mean", "n": "sum"}
        )
        change = (table[after] - table[before]).abs().groupby(table["relation"]).mean()
        most = list(change.sort_values(ascending=False, kind="stable").index[:MOST_RELATIONS])
        table = table[table["relation"].isin(most)].sort_values(
            "relation", key=lambda names: names.map(most.index), kind="stable"
        )
        both = stacked([means.assign(relation="", by=MEAN), table.assign(by=table["relation"])])
        ends = ((before, True), (after, False))
        marks = stacked(both.assign(value=both[name], hollow=is_hollow) for name, is_hollow in ends)
        n_relations = frame["relation"].nunique()
        in_it = tuple(info for info in shown.infos if info.id in set(frame["run"]))
        names = tuple(dict.fromkeys(frame["relation"]))
        drawn = replace(shown, infos=in_it, request=replace(shown.request, relations=names))
        few = f"; the {MOST_RELATIONS} of {n_relations} relations that change most"
        return Figure(
            shape="points",
            frame=marks.assign(
                said=[
                    said(
                        f"{shown.names[line['run']]}, {shown.labels.get(line['by'], line['by'])}",
                        f"{hollow if line['hollow'] else full}: {percent(line['value'])} %",
                        counted(int(line["n"]), "fact"),
                    )
                    for line in marks.to_dict("records")
                ],
                by=[_short(shown.labels.get(name) or name) for name in map(str, marks["by"])],
            ),
            by=Axis(column="by", title=RELATION),
            value=Axis(column="value", title=value, share=True),
            names=shown.names,
            bold=frozenset([MEAN]),
            hollow="hollow",
            hollow_name=hollow,
            title=shown.title_of("P@1 by wording"),
            caption=drawn.caption + few * (n_relations > MOST_RELATIONS),
        )

    def facts(self, shown: Shown[WordingRequest, Wordings], line: Line, column: str = "") -> Facts:
        """Return the facts of a relation, or of all for the mean."""
        names = [line["relation"]] if line["relation"] else shown.request.relations
        return Facts(line["run"], {"relations": tuple(names)})


def _means(shown: Shown[WordingRequest, Wordings], table: pd.DataFrame, name: str) -> str:
    """Return the mean of each run; or of all if they are the same."""
    means = table.groupby("run", sort=False).mean(numeric_only=True)
    same = set(map(as_share, means[name]))
    return same.pop() if len(same) == 1 else listed(shown.names, means[name])


def _short(label: str) -> str:
    """Return a label that fits on one line of the chart."""
    return label if len(label) <= LONGEST else label[: LONGEST - 1].rstrip() + "…"


def in_all(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the relations that all runs of a table have; all rows if there is none."""
    if table.empty:
        return table
    common = table[table.groupby("relation")["run"].transform("nunique") == table["run"].nunique()]
    return common if len(common) else table


def _chosen(tables: Sequence[pd.DataFrame], request: WordingRequest) -> pd.DataFrame:
    """Return tables as one, without relations that the request doesn't name."""
    found, names = _filled(tables), request.relations
    if names and len(found):
        found = found[found["relation"].isin(names)].reset_index(drop=True)
    return found


def _filled(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return tables as one; those without rows would make numbers of others floats."""
    return stacked(table for table in tables if len(table))


wording = ViewFunction(
    WordingRequest,
    WordingView(),
    """Show the effect of the wording: paraphrases, and negated and misprimed queries.

    Paraphrases: how often pairs of wordings have the same first answer (Elazar et al. 2021).
    Negated and misprimed queries are compared with plain ones (Kassner and Schütze 2020).

    Returns:
        A DataFrame with a row for each run and relation. Columns of paraphrases: consistency (share
        of pairs that agree), accuracy (P@1), consistent_accuracy (share of facts that every wording
        gets right), n_facts, n_prompts. Columns of altered queries: overlap (share of facts with
        the same first answer), spearman, plain and altered (P@1), n, prompts.

    Raises:
        UserError: If a run or relation is unknown, or no run has several wordings for a fact.
    """,
)
