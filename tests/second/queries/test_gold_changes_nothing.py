"""A right answer that a user types changes no answer, score or rank, in any kind of query or run.

Each query is answered with and without its right answer, by models that read a text in different
ways. The rows must be the same, except in what is about the right answer.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest
from every_kind import plan_runs
from written_statements import write_bear

from lama_core.probes.cloze.request import ProbeRequest
from lama_core.queries.kind import ask_models
from lama_core.queries.table import QUERIES
from lama_core.runs.execute import execute
from lama_core.scoring.limits import UNLIMITED

Models = Callable[..., Any]
pytestmark = pytest.mark.usefixtures("home")
TEXTS = (
    "Ann was born in ___ and lives in London.",  # a blank inside a sentence
    "___ is the capital of France.",
    "The capital of France is ___.",
    "In ___ , the river flows into the ___ of Oslo.",
)
# A likely word, a word that no model proposes, several tokens, and a word that none can write.
GOLDS = ("London", "poet", "Ouagadougou in Paris", "🙂")
# What a row says about the right answer.
ABOUT = r"^(gold|is_gold|is_right|right|correct|verdict|matches|margin)"


def queries(gold: str, folder: Path) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Function -> the fields of a query without a right answer, and those that give one."""
    file = folder / "sentences.csv"
    pd.DataFrame({"text": TEXTS[:3]}).to_csv(file, index=False)
    with_gold = folder / "with_gold.csv"
    pd.DataFrame({"text": TEXTS[:3], "gold": gold}).to_csv(with_gold, index=False)
    answers = ("Paris", "London in France", gold)
    return [
        *(("fill", {"text": text}, {"gold": gold}) for text in TEXTS[:3]),
        ("fill", {"text": TEXTS[3]}, {"gold": f"{gold}|{gold}"}),
        ("fill", {"text": TEXTS[0], "renormalise": True, "context": "left"}, {"gold": gold}),
        ("batch", {"file": str(file)}, {"file": str(with_gold)}),
        ("relation", {"relation": "P36", "subject": "Norway"}, {"gold": gold}),
        ("rank", {"text": TEXTS[0], "answers": answers}, {"gold": gold}),
        ("analogy", {"text": ("Paris", "France", "___", "England")}, {"gold": gold}),
        ("score_analogies", {"query": "Paris:France", "pairs": ("Oslo:Rome", "London:Berlin")},
         {"gold": "Oslo:Rome"}),
    ]  # fmt: skip


def rows(name: str, model: Any, fields: dict[str, Any]) -> pd.DataFrame:
    """The rows of an answer, without the columns about a right answer."""
    query = next(one for one in QUERIES if one.request.python == name)
    options: dict[str, Any] = {"candidates": "full", "n_rescored": 8, "top_k": 20}
    known = {one: options[one] for one in options.keys() & set(query.request.__dataclass_fields__)}
    request = query.request(**known, **fields, models=("m",))
    shared = query.kind.prepare(request, UNLIMITED)
    frame = ask_models(query.kind, request, shared, [model]).frame()
    return frame.drop(columns=[name for name in frame if pd.Series(name).str.match(ABOUT)[0]])


@pytest.mark.parametrize("gold", GOLDS)
@pytest.mark.parametrize("family", ("bert-cased", "gpt2", "smollm2", "t5"))
def test_rows_are_the_same_with_and_without_the_right_answer(
    family: str, gold: str, tiny_model: Models, tmp_path: Path
) -> None:
    model = tiny_model(family)
    for name, fields, given in queries(gold, tmp_path):
        without, with_gold = rows(name, model, fields), rows(name, model, fields | given)
        pd.testing.assert_frame_equal(without, with_gold, rtol=1e-4, obj=f"{name} {fields}")


@pytest.mark.parametrize("family", ("bert-cased", "smollm2"))
def test_a_runs_answers_depend_on_the_relation_but_not_on_which_object_is_right(
    family: str, tiny_model: Models, tmp_path: Path
) -> None:
    model = tiny_model(family)
    golds = [("London", "poet", "Paris"), ("Paris", "London", "poet")]
    tops, ranks = [], []
    for number, objects in enumerate(golds):
        facts = list(zip(("Anna", "Ann", "Emma"), objects, strict=True))
        data = write_bear(tmp_path / f"{number}", facts, objects, ("[X] is in [Y] now, said Ann.",))
        request = ProbeRequest(
            str(data), ("m",), candidates="full", context="both" if family == "smollm2" else None
        )
        (spec,) = plan_runs(request, lambda *_, **__: model)
        run = execute(spec, folder=tmp_path / f"runs {number}", load=lambda *_, **__: model)
        table = pq.read_table(run.info.folder / "facts.parquet")
        tops.append(table["top_words"].to_pylist())
        ranks.append(table["rank_raw"].to_pylist())
    assert tops[0] == tops[1]
    assert ranks[0] != ranks[1]
