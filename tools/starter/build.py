"""Writing the starter facts and analogies; the same sources give the same bytes."""

import json
import shutil
from collections import defaultdict
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

from lama_core.datasets.aliases import ALIASES_FILE
from lama_core.datasets.dataset import BLANK, SQUAD_RELATION
from tools.starter import aliases, geography, hand, people, things, wordnet
from tools.starter.corrections import corrected
from tools.starter.model import HERE, Spec, StarterFact, order_key, specs, words

# LAMA's Figure 4 needs ten sentences per fact. If a relation has at least ten phrasings, its
# sentences are written as LAMA's evidences.
MIN_EVIDENCES = 10
MAX_SENTENCES = 3
FILES = {
    "TREx": "TREx/{}.jsonl",
    "Google_RE": "Google_RE/{}_test.jsonl",
    "ConceptNet": "ConceptNet/test.jsonl",
}
# Objects that need "the", which templates don't have before the blank.
OBJECTS_WITH_ARTICLE = {"Netherlands", "Philippines", "Bahamas", "Gambia", "Maldives", "Comoros"}


def build_facts(folder: Path) -> dict[str, int]:
    """Write the starter facts into `folder` in LAMA's layout; return each relation's fact count.

    The folder is replaced. Raises UserError if a source isn't installed.
    """
    nouns = wordnet.load()
    by_relation: defaultdict[str, list[StarterFact]] = defaultdict(list)
    sources = (geography.facts(nouns), hand.facts(), people.facts(nouns), things.facts(nouns))
    for fact in corrected(chain.from_iterable(sources)):
        by_relation[fact.relation].append(fact)
    chosen = {spec.relation: _choose(spec, by_relation[spec.relation]) for spec in specs()}
    objects = {name: [fact.object for fact in facts] for name, facts in chosen.items()}
    names = aliases.table(objects, nouns)
    questions = [*hand.cells("cloze.txt")]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / ALIASES_FILE).write_text(names, "utf-8")
    for name in ("LICENSE", "README.md"):
        shutil.copyfile(HERE / "notices" / f"facts-{name}", folder / name)
    _write_lines(folder / "relations.jsonl", map(_relation_row, specs()))
    rows: defaultdict[str, list[dict[str, object]]] = defaultdict(list)
    for spec in specs():
        rows[FILES[spec.source].format(spec.relation)] += [
            _row(spec, fact) for fact in chosen[spec.relation]
        ]
    rows["Squad/test.jsonl"] = [
        {
            "id": order_key("question", sentence)[:24],
            "sub_label": SQUAD_RELATION,
            "obj_label": answer,
            "masked_sentences": [sentence],
            "origin": hand.ORIGIN,
        }
        for sentence, answer in questions
    ]
    for file, lines in rows.items():
        _write_lines(folder / file, lines)
    return {name: len(facts) for name, facts in chosen.items()} | {SQUAD_RELATION: len(questions)}


def _choose(spec: Spec, facts: list[StarterFact]) -> list[StarterFact]:
    """Return at most `spec.limit` usable facts of the relation, in a fixed random order.

    At most `spec.per_object` facts of each object are drawn. Then subjects are; all facts of a
    subject are kept or none: filtered ranking needs all valid objects of a subject.
    """
    is_common = spec.single_words == "common"
    known = words("words.txt" if is_common else "bert_words.txt")
    by_object: defaultdict[str, dict[str, StarterFact]] = defaultdict(dict)
    for fact in facts:
        obj = fact.object if is_common else fact.object.lower()
        is_usable = obj in known and fact.object not in OBJECTS_WITH_ARTICLE
        if is_usable and fact.object.lower() != fact.subject.lower():
            by_object[fact.object].setdefault(fact.subject, fact)
    by_subject: defaultdict[str, list[StarterFact]] = defaultdict(list)
    for group in by_object.values():
        ordered = sorted(group, key=lambda subject: order_key(spec.relation, subject))
        for subject in ordered[: spec.per_object]:
            by_subject[subject].append(group[subject])
    kept: list[StarterFact] = []
    for subject in sorted(by_subject, key=lambda subject: order_key(spec.relation, subject)):
        if len(kept) + len(by_subject[subject]) <= spec.limit:
            kept += by_subject[subject]
    return sorted(kept, key=lambda fact: order_key(fact.subject, fact.object))


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


def _write_lines(path: Path, rows: Iterable[dict[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.write_text("".join(lines), "utf-8")


def build_analogies(folder: Path) -> dict[str, int]:
    """Write the starter analogies into `folder` in BATS's layout; return each file's pair count.

    The folder is replaced. BATS joins the tails of a head by slashes.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shutil.copyfile(HERE / "notices" / "analogies-README.md", folder / "README.md")
    counts = {}
    for line in hand.lines("analogies.txt"):
        if line.startswith("["):
            section, file = line[1:-1].split(" | ")
            continue
        pairs = [pair.replace(" ", "\t") + "\n" for pair in line.split(", ")]
        (folder / section).mkdir(exist_ok=True)
        (folder / section / f"{file}.txt").write_text("".join(pairs), "utf-8")
        counts[file] = len(pairs)
    return counts
