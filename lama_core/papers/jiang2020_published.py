"""Jiang et al. 2020, tables 2 (micro) and 3 (macro), by our names of their lines and columns."""

from functools import cache
from typing import Literal

from lama_core.papers.published import PublishedTable, published_table

Averaging = Literal["micro", "macro"]

TABLES: dict[Averaging, str] = {"micro": "table2", "macro": "table3"}
COLUMNS = {
    "top1": "Top1",
    "top3": "Top3",
    "top5": "Top5",
    "optimised": "Opti.",
    "oracle": "Oracle",
}
LINES = {
    "manual": "Man",
    "mine": "Mine",
    "mine+man": "Mine+Man",
    "mine+para": "Mine+Para",
    "man+para": "Man+Para",
}
MODELS = ("BERT-base", "BERT-large")


def published(model: str, averaging: Averaging, combination: str, method: str) -> float | None:
    """P@1 in per cent on all 41 relations of T-REx, None if the paper has none of it."""
    if combination not in LINES or method not in COLUMNS:
        return None
    try:
        return _table(TABLES[averaging]).value(
            COLUMNS[method], model=model, prompts=LINES[combination]
        )
    except KeyError:
        return None


def nearest_model(name: str) -> str:
    """The model of the paper whose values stand beside another's."""
    return "BERT-large" if "large" in name.lower() else "BERT-base"


@cache
def _table(name: str) -> PublishedTable:
    return published_table("jiang2020", name)
