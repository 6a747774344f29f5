"""The exhaustive ranking that proposals are compared with."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lama_core.candidates.columns import Candidates
from lama_core.scoring.blanks import parse_query
from tools.bench import proposals


@pytest.mark.parametrize(
    "text", ("Ann was born in [MASK] and lives in Rome.", "The [MASK] is old.")
)
def test_the_best_words_are_those_of_all_words_scored(
    text: str, tiny_model: Callable[..., Any]
) -> None:
    model, query = tiny_model("gpt2"), parse_query(text)
    columns = Candidates("full", None).columns(model.vocabulary)
    found = proposals.best_words(model, query, columns, 5)
    encoded = model.encode(query, "both")
    left = list(encoded.token_ids)
    first = model.pick(model.logits([left], [[len(left) - 1]]), [encoded.places[0]], columns)
    suffix = model.vocabulary.encode_after(encoded.suffix)
    ids = columns.table(encoded.places[0]).ids[:, 0]
    rest = model.suffix_log_probs(left, [[int(token)] for token in ids], suffix).sum(1)
    totals = first.log_probs[0] + rest
    best = np.argsort(-totals, kind="stable")[:5]
    assert [word for word, _ in found] == [columns.words[column] for column in best]
    assert [total for _, total in found] == pytest.approx(totals[best].tolist(), abs=1e-3)
