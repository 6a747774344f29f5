"""Writing the starter facts and analogies; the same sources give the same bytes."""

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
    StarterFact,
    at_most,
    at_most_per_object,
    bert_words,
    known_words,
    order_key,
    specs,
)

# LAMA's Figure 4 needs ten sentences per fact. If a relation has at least ten phrasings, its
# sentences are written as LAMA's evidences.
MIN_EVIDENCES = 10
MAX_SENTENCES = 3
# Objects that need "the", which templates don't have before the blank.
OBJECTS_WITH_ARTICLE = {"Netherlands", "Philippines", "Bahamas", "Gambia", "Maldives", "Comoros"}


def build_facts(folder: Path) -> dict[str, int]:
    """Write the starter facts into `folder` in LAMA's layout; return each relation's fact count.

    The folder is replaced after everything was written. Raises UserError if a source isn't
    installed.
    """
    nouns = wordnet.load()
    by_relation: defaultdict[str, list[StarterFact]] = defaultdict(list)
    sources: tuple[Iterable[StarterFact], ...] = (
        geography.facts(nouns),
        hand.facts(),
        people.facts(nouns),
        things.facts(nouns),
    )
    corrected = corrections.load()
    for source in sources:
        for fact in corrected.apply(source):
            by_relation[fact.relation].append(fact)
    corrected.check_used()
    chosen = {spec.relation: _choose(spec, by_relation[spec.relation]) for spec in specs()}
    objects = {name: [fact.object for fact in facts] for name, facts in chosen.items()}
    names = aliases.aliases(objects, nouns)

    def write(new: Path) -> None:
        _write(new, chosen)
        aliases.write(new / ALIASES_FILE, names)

    write_and_replace(folder, write)
    return {name: len(facts) for name, facts in chosen.items()} | {
        SQUAD_RELATION: len(hand.cloze_questions())
    }


def write_and_replace(folder: Path, write: Callable[[Path], None]) -> None:
    """Call `write` with a new folder, then replace `folder` with the new one."""
    new = folder.with_name(folder.name + ".part")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    write(new)
    shutil.rmtree(folder, ignore_errors=True)
    new.rename(folder)


def _choose(spec: Spec, facts: list[StarterFact]) -> list[StarterFact]:
    """Return at most `spec.limit` usable facts of the relation, in a fixed random order."""
    words, fold = (known_words(), False) if spec.single_words == "common" else (bert_words(), True)
    usable: dict[tuple[str, str], StarterFact] = {}
    for fact in facts:
        obj = fact.object.lower() if fold else fact.object
        is_usable = obj in words and fact.object not in OBJECTS_WITH_ARTICLE
        if is_usable and fact.object.lower() != fact.subject.lower():
            usable.setdefault((fact.subject, fact.object), fact)
    limited = at_most(at_most_per_object(usable.values(), spec.per_object), spec.limit)
    return sorted(limited, key=lambda fact: order_key(fact.subject, fact.object))


def _write(folder: Path, chosen: dict[str, list[StarterFact]]) -> None:
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


def _row(spec: Spec, fact: StarterFact) -> dict[str, object]:
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
    """Return the template with the subject and a blank, beginning with a capital letter."""
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
    """Write the starter analogies into `folder` in BATS's layout; return each file's pair count."""
    sections = hand.analogies()
    write_and_replace(folder, lambda new: _write_analogies(new, sections))
    return {section.file: len(section.pairs) for section in sections}


def _write_analogies(folder: Path, sections: list[hand.AnalogySection]) -> None:
    for section in sections:
        path = folder / section.folder / f"{section.file}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{head}\t{tails}\n" for head, tails in section.pairs), "utf-8")
    shutil.copyfile(HERE / "notices" / "analogies-README.md", folder / "README.md")
