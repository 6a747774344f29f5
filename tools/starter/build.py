"""Write the starter facts and analogies, byte for byte the same from the same sources."""

import json
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

from lama_core.datasets.aliases import ALIASES_FILE
from lama_core.datasets.dataset import BLANK, SQUAD_RELATION
from tools.starter import aliases, corrections, geography, hand, people, things, wordnet
from tools.starter.model import (
    HERE,
    Spec,
    Stated,
    at_most,
    at_most_per_object,
    bert_words,
    known_words,
    order_key,
    specs,
)

# LAMA's Figure 4 needs ten sentences a fact; with so many phrasings they become evidences.
MIN_EVIDENCES = 10
MAX_SENTENCES = 3
# A template's blank can't say "the": a fact with such an object would make a wrong sentence.
OBJECTS_WITH_ARTICLE = {"Netherlands", "Philippines", "Bahamas", "Gambia", "Maldives", "Comoros"}


def build_facts(folder: Path) -> dict[str, int]:
    """Write the starter facts into `folder` in LAMA's layout; the number of facts by relation.

    What was in the folder before is replaced only once everything is written beside it.
    Raises UserError if a source isn't installed.
    """
    nouns = wordnet.load()
    stated: defaultdict[str, list[Stated]] = defaultdict(list)
    sources: tuple[Iterable[Stated], ...] = (
        geography.facts(nouns),
        hand.facts(),
        people.facts(nouns),
        things.facts(nouns),
    )
    right = corrections.load()
    for source in sources:
        for fact in right.apply(source):
            stated[fact.relation].append(fact)
    right.check_used()
    chosen = {spec.relation: _choose(spec, stated[spec.relation]) for spec in specs()}
    objects = {name: [fact.object for fact in facts] for name, facts in chosen.items()}
    names = aliases.aliases(objects, nouns)

    def write(beside: Path) -> None:
        _write(beside, chosen)
        aliases.write(beside / ALIASES_FILE, names)

    written_beside(folder, write)
    return {name: len(facts) for name, facts in chosen.items()} | {
        SQUAD_RELATION: len(hand.cloze_questions())
    }


def written_beside(folder: Path, write: Callable[[Path], None]) -> None:
    """Let `write` fill a new folder beside `folder`, then put it in its place."""
    beside = folder.with_name(folder.name + ".part")
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    write(beside)
    shutil.rmtree(folder, ignore_errors=True)
    beside.rename(folder)


def _choose(spec: Spec, facts: list[Stated]) -> list[Stated]:
    """The relation's facts, limited in number, in an order that doesn't follow the sources."""
    words, fold = (known_words(), False) if spec.single_words == "common" else (bert_words(), True)
    usable: dict[tuple[str, str], Stated] = {}
    for fact in facts:
        obj = fact.object.lower() if fold else fact.object
        asked = obj in words and fact.object not in OBJECTS_WITH_ARTICLE
        if asked and fact.object.lower() != fact.subject.lower():
            usable.setdefault((fact.subject, fact.object), fact)
    limited = at_most(at_most_per_object(usable.values(), spec.per_object), spec.limit)
    return sorted(limited, key=lambda fact: order_key(fact.subject, fact.object))


def _write(folder: Path, chosen: dict[str, list[Stated]]) -> None:
    by_source: defaultdict[str, list[Spec]] = defaultdict(list)
    for spec in specs():
        by_source[spec.source].append(spec)
    _write_lines(folder / "relations.jsonl", (_relation_row(spec) for spec in specs()))
    for spec in by_source["TREx"]:
        rows = (_row(spec, fact) for fact in chosen[spec.relation])
        _write_lines(folder / "TREx" / f"{spec.relation}.jsonl", rows)
    for spec in by_source["Google_RE"]:
        rows = (_row(spec, fact) for fact in chosen[spec.relation])
        _write_lines(folder / "Google_RE" / f"{spec.relation}_test.jsonl", rows)
    concepts = (
        _row(spec, fact) for spec in by_source["ConceptNet"] for fact in chosen[spec.relation]
    )
    _write_lines(folder / "ConceptNet" / "test.jsonl", concepts)
    questions = (_question(sentence, answer) for sentence, answer in hand.cloze_questions())
    _write_lines(folder / "Squad" / "test.jsonl", questions)
    for name in ("LICENSE", "README.md"):
        shutil.copyfile(HERE / "notices" / f"facts-{name}", folder / name)


def _relation_row(spec: Spec) -> dict[str, object]:
    return {
        "relation": spec.relation,
        "template": spec.template,
        "label": spec.label,
        "type": spec.type,
        "negated_template": spec.negated,
        "paraphrases": list(spec.paraphrases),
    }


def _row(spec: Spec, fact: Stated) -> dict[str, object]:
    key = "pred" if spec.source != "TREx" else "predicate_id"
    row: dict[str, object] = {
        "uuid": order_key(fact.relation, fact.subject, fact.object)[:32],
        key: fact.relation,
        "sub_label": fact.subject,
        "obj_label": fact.object,
        "origin": fact.origin,
    }
    phrasings = (spec.template, *spec.paraphrases, *spec.statements)
    sentences = [_sentence(text, fact.subject) for text in phrasings]
    if spec.source == "TREx" and len(sentences) >= MIN_EVIDENCES:
        row["evidences"] = [
            {"sub_surface": fact.subject, "obj_surface": fact.object, "masked_sentence": text}
            for text in sentences
        ]
    elif spec.source == "Google_RE" and len(sentences) >= MIN_EVIDENCES:
        row["masked_sentences"] = sentences
    elif spec.source == "ConceptNet":
        row["masked_sentences"] = sentences[:1]
        row["masked_negations"] = [_sentence(spec.negated, fact.subject)]
    else:
        row["masked_sentences"] = sentences[:MAX_SENTENCES]
    return row


def _sentence(template: str, subject: str) -> str:
    """The template with the subject and a blank, its first letter a capital."""
    text = template.replace("[X]", subject).replace("[Y]", BLANK)
    return text[0].upper() + text[1:]


def _question(sentence: str, answer: str) -> dict[str, object]:
    return {
        "id": order_key("question", sentence)[:24],
        "sub_label": SQUAD_RELATION,
        "obj_label": answer,
        "masked_sentences": [sentence],
        "origin": hand.ORIGIN,
    }


def _write_lines(path: Path, rows: Iterable[dict[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.write_text("".join(lines), "utf-8")


def build_analogies(folder: Path) -> dict[str, int]:
    """Write the starter analogies into `folder` in BATS's layout; the number of pairs by file."""
    sections = hand.analogies()
    written_beside(folder, lambda beside: _write_analogies(beside, sections))
    return {section.file: len(section.pairs) for section in sections}


def _write_analogies(folder: Path, sections: list[hand.AnalogySection]) -> None:
    for section in sections:
        path = folder / section.folder / f"{section.file}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{head}\t{tails}\n" for head, tails in section.pairs), "utf-8")
    shutil.copyfile(HERE / "notices" / "analogies-README.md", folder / "README.md")
