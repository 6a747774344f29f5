"""Writing a dataset in LAMA's layout, which `lama.py` reads."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import orjson

from lama_core.datasets.dataset import SQUAD_RELATION, Dataset
from lama_core.datasets.variants import UHN_SOURCES, uhn_substring
from lama_core.grouping import grouped
from lama_core.types import Fact, Relation


def write(dataset: Dataset, folder: Path, *, suffix: str = "") -> None:
    """Write the relations and facts into `folder`.

    suffix: appended to the names of the sources' folders, such as `_UHN`.
    """
    by_file = grouped((folder / _file(fact, suffix), fact) for fact in dataset.facts)
    _write_lines(folder / "relations.jsonl", (_relation(r) for r in dataset.relations if r.prompts))
    for path, facts in by_file.items():
        _write_lines(path, (_fact(fact) for fact in facts))


def write_uhn(lama: Dataset, folder: Path) -> None:
    """Write LAMA-UHN, computed from `lama` by its first rule (`uhn_substring`), into `folder`."""
    kept = uhn_substring(lama)
    relations = tuple(one for one in kept.relations if one.source in UHN_SOURCES)
    facts = tuple(fact for fact in kept.facts if fact.source in UHN_SOURCES)
    write(replace(kept, relations=relations, facts=facts), folder, suffix="_UHN")


def _file(fact: Fact, suffix: str) -> Path:
    folder = Path(f"{fact.source}{suffix}")
    if fact.source in ("ConceptNet", SQUAD_RELATION):
        return folder / "test.jsonl"
    if fact.source == "Google_RE":
        return folder / f"{fact.relation}_test.jsonl"
    return folder / f"{fact.relation}.jsonl"


def _relation(relation: Relation) -> dict[str, object]:
    more = {
        "type": relation.type,
        "paraphrases": [prompt.template for prompt in relation.prompts[1:]],
        "negated_template": relation.negated_template,
    }
    return {
        "relation": relation.name,
        "template": relation.prompts[0].template,
        "label": relation.label,
        "description": relation.description,
        **{key: value for key, value in more.items() if value},
    }


def _fact(fact: Fact) -> dict[str, object]:
    row: dict[str, object] = {
        "uuid": fact.id.removeprefix(f"{fact.relation}:"),
        "sub_label": fact.subject,
        "obj_label": fact.object,
        "pred" if fact.source == "ConceptNet" else "predicate_id": fact.relation,
        "sub_uri": fact.subject_id,
        "obj_uri": fact.object_id,
        "masked_sentences": fact.sentences,
        "masked_negations": fact.negated_sentences,
        "masked_misprimed": fact.misprimed_sentences,
        "origin": fact.origin,
    }
    if fact.judgments:
        yes, no = fact.judgments
        row["judgments"] = [{"judgment": "yes"}] * yes + [{"judgment": "no"}] * no
    return {key: value for key, value in row.items() if value not in ("", ())}


def _write_lines(path: Path, rows: Iterable[dict[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
