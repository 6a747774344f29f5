"""For each format, what was written is read again, or its line is excluded with a reason."""

import gzip
import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_table_file import WRITERS

from lama_core.datasets import formats
from lama_core.datasets.dataset import AnalogyDataset

Pair = tuple[str, str]  # subject and object
Write = Callable[[Path, Sequence[Pair], str], None]

# What files contain that readers may stumble over. A name has no space at its ends, and none of the
# marks to which a format gives a meaning: `_` and `/` (BATS), `{}` (CounterFact), `[SEP]` (zsRE).
MARKS = "aZé北ا '\",;|\\:#@?!.-()“«0¿‘…\u00a0\u200b\u200d"
NAMES = st.text(st.sampled_from(MARKS), min_size=1, max_size=8).filter(
    lambda text: text == text.strip() and any(map(str.isalnum, text))
)
ENDS = ("\n", "\r\n", "\n\n", "")


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode())


def lines_of(rows: Sequence[object], end: str) -> str:
    return (end or "\n").join([json.dumps(row, ensure_ascii=False) for row in rows] + [""])


def lama(folder: Path, pairs: Sequence[Pair], end: str) -> None:
    write(folder / "relations.jsonl", '{"relation": "P1", "template": "[X] is [Y]."}')
    rows = [{"sub_label": a, "obj_label": b, "uuid": str(n)} for n, (a, b) in enumerate(pairs)]
    write(folder / "TREx" / "P1.jsonl", lines_of(rows, end))


def mlama(folder: Path, pairs: Sequence[Pair], end: str) -> None:
    write(folder / "templates.jsonl", '{"relation": "P1", "template": "[X] is [Y]."}')
    rows = [{"sub_label": a, "obj_label": b, "lineid": n} for n, (a, b) in enumerate(pairs)]
    write(folder / "P1.jsonl", lines_of(rows, end))


def bear(folder: Path, pairs: Sequence[Pair], end: str) -> None:
    write(folder / "metadata_relations.json", '{"P1": {"templates": ["[X] is [Y]."]}}')
    rows = [{"sub_label": a, "obj_label": b} for a, b in pairs]
    write(folder / "P1.jsonl", lines_of(rows, end))


def pararel(folder: Path, pairs: Sequence[Pair], end: str) -> None:
    rows = [{"sub_label": a, "obj_label": b} for a, b in pairs]
    write(folder / "trex_lms_vocab" / "P1.jsonl", lines_of(rows, end))


def lpaqa(folder: Path, pairs: Sequence[Pair], end: str) -> None:
    write(folder / "prompt" / "mine" / "P1.jsonl", '{"template": "[X] is [Y]."}')
    rows = [{"sub_label": a, "obj_label": b} for a, b in pairs]
    write(folder / "TREx_train" / "P1.jsonl", lines_of(rows, end))


def kbc(folder: Path, pairs: Sequence[Pair], end: str) -> None:
    rows = [{"SubjectEntity": a, "Relation": "P1", "ObjectEntities": [b]} for a, b in pairs]
    write(folder / "kbc", lines_of(rows, end))


def zsre(folder: Path, pairs: Sequence[Pair], end: str) -> None:
    rows = [
        {
            "id": str(n),
            "input": f"{a} [SEP] P1",
            "output": [{"answer": b}],
            "meta": {"template_questions": ["Who?"]},
        }
        for n, (a, b) in enumerate(pairs)
    ]
    write(folder / "zsre.txt", lines_of(rows, end))


def counterfact(folder: Path, pairs: Sequence[Pair], end: str) -> None:
    rows = [
        {
            "case_id": n,
            "requested_rewrite": {
                "prompt": "{} is",
                "relation_id": "P1",
                "subject": a,
                "target_true": {"str": b},
            },
            "paraphrase_prompts": [],
            "neighborhood_prompts": [],
        }
        for n, (a, b) in enumerate(pairs)
    ]
    write(folder / "cases", json.dumps(rows, ensure_ascii=False, indent=len(end) or None))


def trex(folder: Path, pairs: Sequence[Pair], end: str) -> None:
    documents = []
    for number, (a, b) in enumerate(pairs):
        text = f"{a} is {b}"
        at = len(f"{a} is ")
        documents.append(
            {
                "docid": str(number),
                "title": "",
                "text": text,
                "sentences_boundaries": [[0, len(text)]],
                "triples": [
                    {
                        "subject": {"uri": f"wiki/Q{number}", "surfaceform": a},
                        "predicate": {"uri": "direct/P1"},
                        "object": {
                            "uri": "wiki/Q9",
                            "surfaceform": b,
                            "boundaries": [at, len(text)],
                        },
                        "sentence_id": 0,
                    }
                ],
            }
        )
    write(
        folder / "re-nlg.json", json.dumps(documents, ensure_ascii=False, indent=len(end) or None)
    )


def popqa(form: str) -> Write:
    def write_form(folder: Path, pairs: Sequence[Pair], end: str) -> None:
        header = ("id", "subj", "prop", "obj", "question", "possible_answers", "s_pop")
        rows = [
            (str(n), a, "P1", b, "Who?", json.dumps([b], ensure_ascii=False), "1.0")
            for n, (a, b) in enumerate(pairs)
        ]
        folder.mkdir(parents=True, exist_ok=True)
        data = WRITERS[form]([header, *rows])
        (folder / "popqa").write_bytes(gzip.compress(data) if end == "" else data)

    return write_form


FACTS: dict[str, Write] = {
    "lama": lama,
    "mlama": mlama,
    "bear": bear,
    "pararel": pararel,
    "lpaqa": lpaqa,
    "kbc": kbc,
    "zsre": zsre,
    "counterfact": counterfact,
    "trex": trex,
    **{f"popqa as {form}": popqa(form) for form in ("csv", "quoted tsv", "jsonl", "parquet")},
}
CAMPAIGN = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.mark.parametrize("form", FACTS)
@CAMPAIGN
@given(
    pairs=st.lists(st.tuples(NAMES, NAMES), min_size=1, max_size=5, unique=True),
    end=st.sampled_from(ENDS),
)
def test_facts_are_read_as_they_were_written(form: str, pairs: list[Pair], end: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        FACTS[form](Path(name), pairs, end)
        dataset = formats.load(Path(name))
    assert not isinstance(dataset, AnalogyDataset)
    assert dataset.report.dropped == ()
    assert [(fact.subject, fact.object) for fact in dataset.facts] == pairs


def bats(folder: Path, pairs: Sequence[Pair], end: str) -> None:
    rows = [f"{a}\t{b}" for a, b in pairs]
    write(folder / "3_Encyclopedic_semantics" / "E01 [x].TXT", (end or "\n").join([*rows, ""]))


def google(folder: Path, pairs: Sequence[Pair], end: str) -> None:
    rows = [" ".join((*pair, *pair)) for pair in pairs]
    text = (end or "\n").join([": x", *rows, ""])
    write(folder / "questions", f"\ufeff{text}" if end == "" else text)


WORDS = NAMES.filter(lambda text: len(text.split()) == 1 and not text.startswith(":"))


@pytest.mark.parametrize(("form", "words"), [(bats, NAMES), (google, WORDS)])
@CAMPAIGN
@given(data=st.data(), end=st.sampled_from(ENDS))
def test_pairs_are_read_as_they_were_written(
    form: Write, words: st.SearchStrategy[str], data: st.DataObject, end: str
) -> None:
    pairs = data.draw(
        st.lists(st.tuples(words, words), min_size=1, max_size=5, unique_by=lambda pair: pair[0])
    )
    with tempfile.TemporaryDirectory() as name:
        form(Path(name), pairs, end)
        analogies = formats.load(Path(name))
    assert isinstance(analogies, AnalogyDataset)
    assert analogies.report.dropped == ()
    (relation,) = analogies.relations
    assert [(head, *tails) for head, tails in relation.pairs] == pairs
