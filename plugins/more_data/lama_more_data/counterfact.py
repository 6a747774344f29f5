"""CounterFact's true facts (Meng et al. 2022), with paraphrases and facts of the neighborhood.

A JSON file with a list of cases: case_id, requested_rewrite (prompt with {} for the subject,
relation_id, target_true, subject), paraphrase_prompts and neighborhood_prompts. The counterfactual
target (`target_new`) is not read.

Each prompt ends where the object follows, so `[MASK]` and a full stop are added. A fact's sentences
are its own prompt, then its paraphrases. A neighborhood prompt is about another subject with the
same object. It becomes a fact with the origin `neighborhood` if it has the form of a prompt of its
relation; otherwise its subject is unknown. Facts of cases have the origin `case`, and come before
all others of their relation.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from lama_core.datasets.dataset import BLANK, Dataset, make_dataset
from lama_core.datasets.file_search import find_files, head_of
from lama_core.datasets.formats import one_file
from lama_core.datasets.line_reader import (
    JsonObject,
    Reading,
    Rejected,
    as_object,
    distinct,
    optional_text,
    required_text,
    text_list,
)
from lama_core.types import Fact, Relation
from lama_more_data.json_items import json_items, named

SOURCE = "CounterFact"
SUBJECT = "{}"
CASE, NEIGHBORHOOD = "case", "neighborhood"


@dataclass
class _Relation:
    """A relation's facts, prompts (texts before and after the subject) and neighborhood prompts."""

    facts: list[Fact] = field(default_factory=list)
    prompts: dict[tuple[str, str], None] = field(default_factory=dict)
    neighbors: dict[tuple[str, str], Fact] = field(default_factory=dict)  # by prompt and object


def is_counterfact(path: Path) -> bool:
    """Return whether a file is a JSON list of CounterFact's cases."""
    head = head_of(path)
    return head.lstrip().startswith(b"[") and b'"requested_rewrite"' in head


def load(path: Path, *, name: str | None = None, **about: str) -> Dataset:
    """Return the true facts of CounterFact's file at or under `path`.

    Raises:
        UserError: If there is no such file, or no usable case.
    """
    file = next(iter(find_files(path, is_counterfact)), None)
    reading = Reading.at(file, path, "holds no JSON file with CounterFact's cases")
    found: defaultdict[str, _Relation] = defaultdict(_Relation)
    ids: dict[str, int] = {}
    for number, row in json_items(reading, reading.root):
        with reading.dropping(reading.root, 0, named(number)):
            _read_case(row, number, found, ids)
    unknown = 0
    for relation in found.values():
        neighbors, n_unknown = _neighborhood(relation)
        reading.facts += [*relation.facts, *neighbors]
        unknown += n_unknown
    if not reading.facts:
        raise reading.nothing(path, "case")
    if unknown:
        reading.notes.append(
            f"{unknown:,} neighborhood prompts are excluded: none has the form of a prompt of its "
            "relation"
        )
    relations = [Relation(one, SOURCE) for one in found]
    return make_dataset(name or path.stem, relations, reading.facts, reading.report, **about)


def _read_case(
    row: JsonObject, number: int, found: dict[str, _Relation], ids: dict[str, int]
) -> None:
    """Add a case to its relation. ids: Id of a fact -> number of its item."""
    rewrite = as_object(row.get("requested_rewrite"))
    name = required_text(rewrite, "relation_id")
    prompt, subject = required_text(rewrite, "prompt"), required_text(rewrite, "subject")
    target = as_object(rewrite.get("target_true"))
    obj = required_text(target, "str")
    if prompt.count(SUBJECT) != 1:
        raise Rejected(f"the prompt {prompt!r} needs exactly one {SUBJECT} for the subject")
    paraphrases = text_list(row, "paraphrase_prompts")
    neighbors = text_list(row, "neighborhood_prompts")
    fact_id = f"{name}:{optional_text(row, 'case_id') or f'{subject}|{obj}'}"
    if fact_id in ids:
        raise Rejected(f"the id {fact_id!r} is that of item {ids[fact_id]:,}")
    ids[fact_id] = number
    object_id = optional_text(target, "id")
    sentences = _sentences([prompt.replace(SUBJECT, subject), *paraphrases])
    relation = found[name]
    relation.facts.append(
        Fact(
            fact_id,
            subject,
            name,
            obj,
            SOURCE,
            object_id=object_id,
            sentences=sentences,
            origin=CASE,
        )
    )
    before, after = prompt.split(SUBJECT)
    relation.prompts[before, after] = None
    for text in distinct(neighbors):
        neighbor = Fact(
            f"{name}:{text}|{obj}",
            "",
            name,
            obj,
            SOURCE,
            object_id=object_id,
            sentences=_sentences([text]),
            origin=NEIGHBORHOOD,
        )
        relation.neighbors.setdefault((text, obj), neighbor)


def _sentences(prompts: Iterable[str]) -> tuple[str, ...]:
    texts = dict.fromkeys(" ".join(prompt.split()) for prompt in prompts)
    return tuple(f"{text} {BLANK}." for text in texts if text and BLANK not in text)


def _neighborhood(relation: _Relation) -> tuple[list[Fact], int]:
    """Return the neighbors as facts, and the number of neighbors whose subject isn't found.

    The subject is found if the neighbor has the form of a prompt of the relation. A neighbor is
    skipped if its pair of subject and object is already a fact, even in another wording.
    """
    pairs = {(fact.subject, fact.object) for fact in relation.facts}
    facts, unknown = [], 0
    for (text, obj), fact in relation.neighbors.items():
        fits = [
            (len(before) + len(after), text[len(before) : len(text) - len(after)].strip())
            for before, after in relation.prompts
            if text.startswith(before)
            and text.endswith(after)
            and len(text) > len(before) + len(after)
        ]
        subject = max(fits, default=(0, ""))[1]
        if not subject:
            unknown += 1
        elif (subject, obj) not in pairs:
            pairs.add((subject, obj))
            facts.append(replace(fact, subject=subject))
    return facts, unknown


COUNTERFACT = one_file("counterfact", "CounterFact's list", is_counterfact, load)
