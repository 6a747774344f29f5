"""The papers' numbers: as the papers print them, and consistent with one another."""

from hashlib import sha256

import pytest

from lama_core.published import (
    lama_shares,
    partial_lama,
    published_examples,
    published_paper,
    published_scores,
)

CHECKED = {
    "jiang2020": "d37b19397c029707c7cfd6fcaf74ab2735b0f3247634f3ff6f450bbfb46ef2fb",
    "petroni2019": "67d5baeb75b2f9103c809f4eb2f414f1c42870774d26593c3776cb103a5b14d0",
    "rezaee2022": "6d83127aca68f525306278af72c6c1b941c2d7018abe33722cb314f12ba78eeb",
    "wiland2024": "2e7b30b21384e9b2e32d90aaa190139a8614d8d16d3e0d2bd66f81f0d77e6b4f",
}


@pytest.mark.parametrize(("paper", "digest"), CHECKED.items())
def test_the_numbers_are_those_that_were_checked(paper: str, digest: str) -> None:
    """Each cell, and that a paper's tables agree with one another and with the papers they cite.

    Who changes a number checks it in the paper and in the tables that it follows from (means,
    totals, a model's own weights) before writing the new digest here.
    """
    tables = published_paper(paper).tables
    assert sha256(repr(tables).encode()).hexdigest() == digest
    for table in tables:
        for row in table.rows:
            assert len(row.values) == len(table.columns), (table.id, row.labels)
            assert len(row.labels) == len(table.labels), (table.id, row.labels)


def test_bert_large_gives_the_gold_first_in_nine_of_its_examples() -> None:
    ranks = [one.rank for one in published_examples()]
    assert len(ranks) == 23 + 10
    listed = [rank for rank in ranks if rank]
    assert (ranks.count(1), len(listed)) == (9, 33 - 6)  # six golds are not among the five
    scores = published_scores()
    total = scores[(scores["source"] == "TREx") & scores["type"].isna()]
    values = total.set_index("model")["p_at_1"].to_dict()
    assert (values["BERT-base"], values["Freq"]) == pytest.approx((0.311, 0.2203)), "as fractions"
    assert scores["published"].all()


def test_a_part_of_lama_is_told_from_all_of_it_and_from_other_data() -> None:
    whole = [("TREx", n) for n in (10_000, *[602] * 40)] + [("Google_RE", 2000)] * 3
    whole += [("ConceptNet", 1000)] * 16 + [("Squad", 305)]
    assert sum(n for source, n in whole if source == "TREx") >= 34_039
    assert partial_lama(lama_shares("lama", whole)) == ""
    part = [one for one in whole if one[0] != "TREx"] + [("TREx", 5)] * 20 + [("TREx", 0)]
    shares = lama_shares("lama", part)
    assert partial_lama(shares) == "partial LAMA: 20 of 41 relations"
    assert str(shares[0]) == "T-REx: 20 of 41 relations, 100 of 34,039 facts"
    assert [share.lacks for share in shares] == [True, False, False, False]
    few = [(source, 304 if source == "Squad" else n) for source, n in whole]
    assert partial_lama(lama_shares("lama", few)) == "partial LAMA: 304 of 305 facts of SQuAD"
    assert lama_shares("starter", part) == ()
