"""Rezaee and Camacho-Collados 2022 next to runs: the published accuracies, and what differs."""

import re

from lama_core.papers.differences import differing
from lama_core.probes.analogy.accuracy_tables import UNMARKED, ProbeAccuracy
from lama_core.probes.analogy.instances import SETTINGS, ProbeOptions, Setting
from lama_core.probes.analogy.spec import ProbeRun
from lama_core.published import published_table

PAPER = "rezaee2022"
COLUMNS = ("random", "reverse", "type")  # of the paper's tables
DATASET = "bats"
N_RELATIONS = 40
BY_RELATION = "RoBERTa-large"  # the model of Table 2 and section 4


def differs_from_paper(run: ProbeRun) -> tuple[str, ...]:
    """Return the differences of a run's data and options from the paper's, as short texts."""
    options, usual = run.details.options, ProbeOptions()
    words = {
        "strict": "no true negatives",
        "template": f"template {options.template}",
        "normalise": f"{options.normalise} of log-probabilities",
    }
    name = run.info.dataset
    counted = differing(
        data="" if name == DATASET else f"{name}, not BATS 3.0",
        relations=(len(run.details.relations), N_RELATIONS),
        limit=run.info.limit,
    )
    others = [text for key, text in words.items() if getattr(options, key) != getattr(usual, key)]
    return (*filter(None, counted.split("; ")), *others)


def published_by_kind() -> list[ProbeAccuracy]:
    """Return the paper's Table 1."""
    table = published_table(PAPER, "table1")
    return [
        _published(str(model), setting, probe, str(kind), str(kind), value)
        for kind, model in (row.labels for row in table.rows)
        for setting in SETTINGS
        for probe in COLUMNS
        if (value := table.number(f"{setting} {probe}", kind=kind, model=model)) is not None
    ]


def published_by_relation() -> list[ProbeAccuracy]:
    """Return the paper's Table 2 (RoBERTa-large, supervised), with BATS's names of relations."""
    marks = {"random": ("one-to-many", "*"), "reverse": ("bidirectional", "†")}
    lines = []
    for row in published_table(PAPER, "table2").rows:
        # BATS's files have `male - female` for the paper's `male : female`.
        kind, relation = str(row.labels[0]), re.sub(r"\s*:\s*", " - ", str(row.labels[1]))
        for probe, value in zip(COLUMNS, row.values, strict=True):
            word, sign = marks.get(probe, ("", ""))
            mark = sign if word in row.marks else ""
            if value is not None:
                lines.append(
                    _published(BY_RELATION, "supervised", probe, relation, kind, float(value), mark)
                )
    return lines


def published_unmarked() -> list[ProbeAccuracy]:
    """Return the paper's averages without marked relations (RoBERTa-large, supervised)."""
    table = published_table(PAPER, "averages")
    return [
        _published(BY_RELATION, "supervised", probe, UNMARKED, UNMARKED, value)
        for probe in COLUMNS
        if (value := table.value(probe, model=BY_RELATION)) is not None
    ]


def _published(
    model: str, setting: Setting, probe: str, name: str, kind: str, percent: float, mark: str = ""
) -> ProbeAccuracy:
    return ProbeAccuracy(
        "", model, "BATS 3.0", setting, probe, name, kind, percent / 100, None, 0, 0, mark, True
    )
