"""`prompts`: list, mine, paraphrase, select, fit and analyse prompts (Jiang et al. 2020)."""

from lama_core.cli import commands, output
from lama_core.cli.output import percent
from lama_core.probes.prompts import collecting
from lama_core.probes.prompts.analyses import OTHER, PATTERNS
from lama_core.probes.prompts.analysing import StudyAnalysis, analyse_prompts
from lama_core.probes.prompts.backward import both_ways
from lama_core.probes.prompts.collecting import Rows
from lama_core.probes.prompts.fitting import StudyResult, select_prompts, study
from lama_core.rounding import fixed


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else fixed(value, digits)


def print_prompts(rows: Rows) -> None:
    """Print a row for each relation and prompt."""
    output.print_table(
        ("relation", "prompt", "from", "weight"),
        [
            (row["relation"], row["template"], ", ".join(row["origins"]), _number(row["weight"], 4))
            for row in rows
        ],
    )


def print_mined(rows: Rows) -> None:
    """Print a row for each mined prompt."""
    output.print_table(
        ("prompt", "count", "found by"),
        [(row["template"], row["count"], ", ".join(row["methods"])) for row in rows],
    )


def print_paraphrases(rows: Rows) -> None:
    """Print a row for each paraphrase."""
    output.print_table(
        ("prompt", "log-prob", "via"),
        [(row["template"], _number(row["log_prob"], 2), row["via"]) for row in rows],
    )


def print_selected(result: StudyResult) -> None:
    """Print a table for each relation: its prompts, ordered by accuracy on the training facts."""
    rows = result.prompts()
    for one in result.relations:
        output.print_table(
            ("prompt", "from", "training", "test", "right only with it", "shows the subject"),
            [
                (
                    row["template"],
                    row["origin"],
                    percent(row["train"]),
                    percent(row["test"]),
                    row["only_right"],
                    "yes" if row["shows_subject"] else "no (after the blank)",
                )
                for row in rows
                if row["relation"] == one.relation.name
            ],
            title=f"{one.relation.name} {one.relation.label}: {one.model}, "
            f"{len(one.train):,} training and {len(one.test):,} test facts, P@1 in percent, "
            f"{one.ranking} ranking",
        )
        output.print_line()


def print_study(result: StudyResult) -> None:
    """Print a row for each set of prompts and method; with published values for a paper's model."""
    rows = result.table
    paper_model = rows[0].published_model
    published = f"; paper: {paper_model}, all 41 relations of T-REx" if paper_model else ""
    output.print_table(
        (
            "set",
            "method",
            "micro",
            "macro",
            "log P(gold)",
            "n",
            *(("paper micro", "paper macro") if paper_model else ()),
        ),
        [
            (
                row.combination,
                row.method,
                percent(row.micro),
                percent(row.macro),
                _number(row.objective, 4),
                f"{row.n_relations} / {row.n_facts:,}",
                *(
                    (_number(row.published_micro, 1), _number(row.published_macro, 1))
                    if paper_model
                    else ()
                ),
            )
            for row in rows
        ],
        title=f"{rows[0].model}: P@1 in percent, {result.relations[0].ranking} ranking; "
        f"n: relations / test facts{published}",
    )


def print_analysis(analysis: StudyAnalysis) -> None:
    """Print divergence by edit distance, Top-K curves, and patterns and transfer if requested."""
    found, made = analysis.found, analysis.study
    output.print_table(
        ("edit distance", "pairs", "mean divergence", "quartiles"),
        [
            (
                f"{pairs.low:.1f} to {pairs.high:.1f}",
                pairs.n_pairs,
                percent(pairs.mean),
                " / ".join(percent(value) for value in pairs.quartiles),
            )
            for pairs in analysis.divergence.bins
        ],
        title=f"{made.label}, {made.info.ranking} ranking: divergence of pairs of prompts; "
        f"Pearson correlation {fixed(analysis.divergence.correlation, 2)} (paper: 0.25)",
    )
    for (name, kind), values in found["curves"].items():
        shown = [k for k in (1, 2, 3, 5, 10, 20, 29) if k <= len(values)]
        curve = ", ".join(f"{k}: {percent(values[k - 1])}" for k in shown)
        output.print_line(f"Top-K of {name}, {kind}: {curve}")
    if "patterns" in found:
        ranks = {
            name: [row["rank"] for row in found["patterns"] if name in row["patterns"]]
            for name in (*PATTERNS, OTHER)
        }
        output.print_table(
            ("pattern", "prompts", "mean rank"),
            [(name, len(of), f"{sum(of) / len(of):.1f}") for name, of in ranks.items() if of],
            title="Rank by accuracy among the prompts of "
            f"{analysis.request.combination}, 1 is best; a prompt can have several patterns",
        )
    if rows := found.get("transfer"):
        own, foreign = (sum(row[name] for row in rows) / len(rows) for name in ("own", "other"))
        output.print_line(
            f"P@1 with prompt weights of the study's model {percent(own)}, of the other study's "
            f"model {percent(foreign)}"
        )


def print_both_ways(rows: Rows) -> None:
    """Print the accuracy of each relation, forward only and with backward queries."""
    output.print_table(
        ("relation", "forward", "forward and backward", "training", "test"),
        [
            (
                row["relation"],
                percent(row["forward"]),
                percent(row["both"]),
                row["n_train"],
                row["n_test"],
            )
            for row in rows
        ],
    )


prompts = commands.make_group("prompts")
for command in (
    commands.make(
        collecting.list_prompts,
        print_prompts,
        "prompts list --dataset starter --relation P36",
        list,
    ),
    commands.make(
        collecting.mine_prompts,
        print_mined,
        "prompts mine P36 --pairs pairs.jsonl --text my-text.txt --out mine",
        list,
    ),
    commands.make(
        collecting.paraphrase_prompt,
        print_paraphrases,
        'prompts paraphrase "[X] was born in [Y] ." --relation P19',
        list,
    ),
    commands.make(analyse_prompts, print_analysis, "prompts analyse starter-minilm_mlm-0123456789"),
    commands.make(
        select_prompts,
        print_selected,
        select_prompts.example,
        StudyResult.prompts,
    ),
    commands.make(study, print_study, study.example),
    commands.make(
        both_ways,
        print_both_ways,
        "prompts both-ways starter-minilm_mlm --relation P36",
        list,
        has_device=True,
    ),
):
    prompts.command(command)
