"""LAMA's tables and figures done again, on facts few enough to count, with models of paper."""

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from data_files import write_lines
from probe_fakes import TableFiller

from lama_core.errors import UserError
from lama_core.models.protocols import Context, WordScore
from lama_core.paths import CORPUS_SUMMARY, training_dir
from lama_core.types import Query
from lama_papers.framework import ReproduceOptions
from lama_papers.lama_data import Lama
from lama_papers.registry import find_paper
from lama_papers.tables import ReproducedTable, Reproduction

WORDS = ("Paris", "Rome", "Oslo", "Bern", "wings", "Florence")
HERE = ("bert-base-cased", "minilm-mlm")


class Knower(TableFiller):
    """Puts first what it knows of a text, and the others in their order."""

    def __init__(self, known: dict[str, str], name: str) -> None:
        answers: dict[str, dict[str, float]] = defaultdict(
            lambda: {word: -2.0 - place for place, word in enumerate(WORDS)}
        )
        for text, word in known.items():
            others = {one: -2.0 - place for place, one in enumerate(WORDS)}
            answers[text] = others | {word: -0.1}
        super().__init__(answers, WORDS, name)

    def word_log_prob(
        self, query: Query, blank: int, word: str, context: Context, normaliser: float = 0.0
    ) -> WordScore:
        return WordScore((word,), -20.0)


def sentence(text: str, subject: str, city: str, **more: Any) -> dict[str, Any]:
    return {"sub_label": subject, "obj_label": city, "masked_sentences": [text], **more}


def ten(subject: str, city: str) -> dict[str, Any]:
    """A fact with a sentence of its own, and ten others."""
    evidences = [
        {"sub_surface": subject, "obj_surface": city,
         "masked_sentence": f"{subject} number {number}: [MASK] ."}
        for number in range(10)
    ]  # fmt: skip
    return {"sub_label": subject, "obj_label": city, "predicate_id": "P36", "evidences": evidences}


@pytest.fixture
def data(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two capitals, three things of one relation of ConceptNet and one of another, all of SQuAD."""
    folder = tmp_path / "small"
    relation = {"relation": "P36", "template": "The capital of [X] is [Y] .", "type": "1-1",
                "label": "capital", "description": ""}  # fmt: skip
    write_lines(folder / "relations.jsonl", [relation])
    write_lines(folder / "TREx" / "P36.jsonl", [ten("Gallia", "Paris"), ten("Norvegia", "Oslo")])
    write_lines(
        folder / "ConceptNet" / "test.jsonl",
        [sentence(f"Bird {n} has [MASK] .", f"bird {n}", "wings", pred="HasA") for n in range(3)]
        + [sentence("A wing is for [MASK] .", "wing", "Bern", pred="UsedFor")],
    )
    write_lines(
        folder / "Squad" / "test.jsonl",
        [sentence(f"Question {n} is [MASK] .", "", "Rome", id=str(n)) for n in range(305)],
    )
    (folder / "common_vocab_cased.txt").write_text("\n".join(WORDS), encoding="utf-8")
    known = {f"Bird {n} has [MASK] .": "wings" for n in range(3)}
    known |= {"The capital of Norvegia is [MASK] .": "Oslo"}
    known |= {f"Norvegia number {n}: [MASK] .": "Oslo" for n in range(9)}
    known |= {f"Question {n} is [MASK] .": "Rome" for n in range(61)}
    known |= {"Francesco Bartolomeo Conti was born in [MASK].": "Florence"}
    models = {name: Knower(known, name) for name in HERE}

    def load(reference: str, *, precision: str = "auto", on_progress: object = None) -> Knower:
        if reference not in models:
            raise UserError(f"{reference} can't be had.")
        return models[reference]

    monkeypatch.setattr("lama_core.models.cache.load_model", load)
    return folder


def done(data: Path, *tables: str, limit: int | None = None) -> Reproduction:
    options = ReproduceOptions("", str(data), ("minilm-mlm",), limit, tables)
    return find_paper("petroni2019").reproduce(options)


def cells(table: ReproducedTable, model: str) -> dict[str, Any]:
    return {row.what: row for row in table.made.rows if row.model == model}


def test_the_difference_is_given_where_the_facts_are_as_many_as_the_papers(data: Path) -> None:
    (table,) = done(data, "table2").tables
    rows = cells(table, "BERT-base")
    squad = rows["Squad total"]
    assert (squad.n, squad.ours, squad.published) == (305, pytest.approx(100 * 61 / 305), 14.1)
    assert squad.differs == "" and squad.difference == pytest.approx(20 - 14.1)
    capitals = rows["TREx total"]
    # Paris is first where nothing is known; Oslo is known.
    assert (capitals.n, capitals.ours) == (2, 100.0)
    assert capitals.differs == "1 of 41 relations; 2 of 34,039 facts"
    assert capitals.difference is None
    assert rows["Google_RE total"].reason == "not in this dataset"
    (table,) = done(data, "table2", limit=20).tables
    squad = cells(table, "BERT-base")["Squad total"]
    assert (squad.n, squad.difference) == (20, None)
    assert squad.differs == "20 of 305 facts; at most 20 a relation"


def test_p_at_10_on_squad_is_compared_with_the_text_of_section_5(data: Path) -> None:
    (table,) = done(data, "section5").tables
    what = "Squad P@10"
    rows = {row.model: row for row in table.made.rows}
    # All six words are among the ten best.
    assert (rows["BERT-base"].n, rows["BERT-base"].ours) == (305, 100.0)
    assert rows["BERT-base"].published is None, "the text has none of it"
    large, drqa = rows["BERT-large"], rows["DrQA"]
    assert (large.what, large.published, large.ours) == (what, 57.1, None)
    assert large.reason == "bert-large-cased can't be had."
    assert (drqa.published, drqa.ours) == (63.5, None) and drqa.reason.startswith("needs a trained")


def test_the_extractors_and_the_open_book_stand_beside_the_models(data: Path) -> None:
    text = training_dir() / "corpus"
    text.mkdir(parents=True)
    said = [
        f"The capital of {one} is {two}."
        for one, two in (("Gallia", "Paris"), ("Norvegia", "Oslo"))
    ]
    (text / "a.txt").write_text("\n".join([*said, "Paris knows Norvegia."]), encoding="utf-8")
    (text / CORPUS_SUMMARY).write_text("{}", encoding="utf-8")
    found = done(data, "table2")
    (table,) = found.tables
    extracted = cells(table, "RE_n")
    total = extracted["TREx total"]
    assert (total.n, total.published, total.difference) == (2, 6.1, None)
    assert (
        total.differs == "another extractor and another text; 1 of 41 relations; 2 of 34,039 facts"
    )
    assert "ConceptNet total, mean over facts" not in extracted, "the paper has no such value"
    opened = cells(table, "minilm-mlm, open-book context")
    # Nothing in the text is of SQuAD's questions: they are asked alone, as with the book closed.
    closed = cells(table, "minilm-mlm")
    assert opened["Squad total"].ours == closed["Squad total"].ours == pytest.approx(100 * 61 / 305)
    low, high = closed["Squad total"].interval or (0, 0)
    assert low < 100 * 61 / 305 < high
    names = {one.what for one in found.absent}
    assert "DrQA" in names and not names & {"RE_n", "RE_o", "models with open-book context"}


def test_conceptnets_total_is_said_both_ways(data: Path) -> None:
    (table,) = done(data, "table2").tables
    rows = cells(table, "BERT-base")
    over_facts = rows["ConceptNet total, mean over facts"]
    over_relations = rows["ConceptNet total, mean over relations"]
    assert over_facts.ours == pytest.approx(100 * 3 / 4)
    assert over_relations.ours == pytest.approx(100 * (3 / 3 + 0 / 1) / 2)
    assert (over_facts.published, over_relations.published) == (15.6, None)
    assert any("mean over its facts" in note for note in table.made.notes)


def test_what_cannot_be_had_stays_with_its_number_its_reason_and_what_brings_it(data: Path) -> None:
    found = done(data, "table2", "table3")
    table, examples = found.tables
    large = cells(table, "BERT-large")["TREx total"]
    assert (large.ours, large.published) == (None, 32.3)
    assert large.reason == "bert-large-cased can't be had."
    brought = {one.what: one.command for one in found.absent}
    assert brought["BERT-large"] == "lama-explorer models get bert-large-cased"
    assert brought["ELMo"] == "lama-explorer models get elmo"
    assert brought["DrQA"] == ""
    assert brought["RE_o"] == brought["models with open-book context"]
    assert brought["RE_o"] == "python -m tools.training.corpus"
    # Every published number of Table 2 is a line, whether it was run or not.
    n_published = sum(row.published is not None for row in table.made.rows)
    assert n_published == 9 + 1 + 2 * 8 + 6 * 10
    assert len(cells(examples, "BERT-large")) == 33 + 2


def test_the_examples_are_answered_with_five_words_and_their_log_probabilities(data: Path) -> None:
    (table,) = done(data, "table3").tables
    rows = cells(table, "minilm-mlm")
    conti = rows["Francesco Bartolomeo Conti was born in ___."]
    assert conti.ours == "Florence [-0.1], Paris [-2.0], Rome [-3.0], Oslo [-4.0], Bern [-5.0]"
    # Of the golds this model has Florence and Paris: it gives Paris to Adam, whom it doesn't know.
    assert rows["right answers ranked first, of 33"].ours == 2
    assert rows["right answers among the five, of 33"].ours == 2
    published = cells(table, "BERT-large")["right answers ranked first, of 33"]
    assert published.published == 9


def test_the_curve_and_the_ten_sentences_are_of_t_rex_alone(data: Path) -> None:
    curve, spread = done(data, "figure2", "figure4").tables
    rows = cells(curve, "BERT-base")
    assert [rows[f"P@{k}"].ours for k in (1, 10, 100)] == [100, 100, 100]
    assert [rows[f"P@{k}"].published for k in (1, 10, 100)] == [31.1, 60, 80]
    assert all(row.n == 2 and row.difference is None for row in rows.values())
    rows = cells(spread, "minilm-mlm")
    # Paris always first; Oslo first in nine sentences, and behind Paris and Rome in one.
    oslo = (9 * 1 + 3) / 10
    assert rows["mean over facts"].ours == pytest.approx((1 + oslo) / 2)
    deviation = (sum((rank - oslo) ** 2 for rank in [1] * 9 + [3]) / 9) ** 0.5
    said = "a fact's standard deviation, mean over facts"
    assert rows[said].ours == pytest.approx((0 + deviation) / 2)
    (chart,) = spread.made.charts
    assert [*chart.frame["series"]] == ["BERT-base", "minilm-mlm"]
    assert chart.frame["median"].iloc[0] == pytest.approx((1.0 + oslo) / 2)


def test_correlations_are_the_papers_only_where_the_measure_is(data: Path) -> None:
    (table,) = done(data, "figure3").tables
    rows = cells(table, "BERT-large")
    assert len(rows) == 1 + 2 + 3 + 4 + 5 + 6 == 21
    assert rows["P@1 and LPFP"].published == 0.42
    ours = cells(table, "minilm-mlm")["P@1 and LPFP"]
    assert (ours.n, ours.ours) == (2, None), "P@1 is 1 of both facts"
    assert any("BERT's training text" in one.what for one in table.made.absent)


def test_the_starter_facts_are_never_taken_for_lama(data: Path) -> None:
    lama = Lama(ReproduceOptions("", "starter"))
    assert "starter facts" in lama.notes[0] and "not LAMA's facts" in lama.notes[1]
    assert list(lama.usable) == ["minilm-mlm"]
    assert lama.missing["BERT-large"].reason == "bert-large-cased is not on this machine."
    assert lama.missing["ELMo"].reason == "elmo is not on this machine."
    assert lama.differs(relations=(2, 2)) == "starter facts"
