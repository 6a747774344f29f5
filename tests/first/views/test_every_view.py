"""What holds for every view of runs: the same numbers everywhere, and facts behind each of them."""

import re
from typing import Any

import pandas as pd
import pytest

from lama_core.errors import UserError
from lama_core.runs.find import bundled_dir
from lama_core.testing import check_view
from lama_core.views.choice import RunsRequest
from lama_core.views.table import VIEWS
from lama_core.views.view import Shown, show

A, B, C = (
    next(bundled_dir().glob(f"starter-{model}-manual-*")).name
    for model in ("minilm_mlm", "smollm2_135m", "minilm_mlm_twin")
)
STEPS = tuple(f"starter-minilm_mlm_step{step}-manual" for step in (1024, 4096, 0))
THREE_WAYS = (
    B,
    "starter-smollm2_135m-statements_template_0",
    "starter-smollm2_135m-questions_0_shot",
)
# Name of a view -> the fields of its request; without a row, the runs A and B.
ASKED: dict[str, list[dict[str, Any]]] = {
    "scores": [
        {"runs": (A, B)},
        {"runs": (A, B), "by": "source", "k": 5},
        {"runs": (A, B), "by": "type", "relations": ("P36", "P19", "P31")},
        {"runs": (A,), "ranking": "raw", "conceptnet": "facts", "by": "source"},
    ],
    "known-by": [
        {"runs": (A, B)},
        {"runs": (A, B, C), "by": "relation", "relations": ("P36", "P19"), "k": 10},
        {"runs": (A, C), "by": "source"},
    ],
    "analogies": [{"runs": ("starter_analogies-minilm_mlm-type_supervised",)}, {"by": "relation"}],
    "slices": [
        {"runs": (A, B), "relations": ("P36", "P1376"), "k": 10},
        {"runs": (A, C), "slice_by": "origin", "relations": ("P36", "P19")},
    ],
    "compare": [
        {"run_a": A, "run_b": B},
        {"run_a": A, "run_b": B, "slices": True, "k": 10, "relations": ("P36", "P19", "P31")},
    ],
    "training": [
        {"runs": STEPS},
        {"runs": STEPS, "by": "source", "measure": "mean_rank", "k": 5},
        {"runs": STEPS, "by": "relation", "measure": "log_prob", "relations": ("P36", "P19")},
    ],
    "ways": [
        {"runs": THREE_WAYS},
        {"runs": THREE_WAYS, "relations": ("P36", "P19"), "ranking": "raw"},
    ],
    "wording": [
        {"runs": ("starter-minilm_mlm-negated", "starter-minilm_mlm-paraphrases")},
        {"runs": ("starter-minilm_mlm-misprimed",), "relations": ("P36",), "ranking": "raw"},
    ],
    "quartiles": [
        {"runs": (A, B)},
        {"runs": ("starter-minilm_mlm-ten_sentences",), "mean_ranks": True, "relations": ("P36",)},
    ],
    "margins": [{"runs": ("starter-minilm_mlm-statements", "starter-smollm2_135m-statements")}],
    "correlations": [
        {"runs": (A, B), "of": A},
        {"runs": (B,), "source": "ConceptNet", "ranking": "raw"},
    ],
}
# Views and groupings whose conclusion pages make (`metrics.headline`), or that have none.
NO_CONCLUSION = {
    ("scores", None),
    ("scores", "source"),
    ("scores", "type"),
    ("analogies", "relation"),
}
EVERY = [
    (view, fields) for view in VIEWS for fields in ASKED.get(view.view.name, [{"runs": (A, B)}])
]


def shown(function: Any, fields: dict[str, Any]) -> Shown[Any, Any]:
    """What a view shows."""
    return show(function.view, function.request(**fields))


@pytest.mark.parametrize(("function", "fields"), EVERY)
def test_numbers_are_the_same_everywhere_with_facts_behind_them(
    function: Any, fields: dict[str, Any]
) -> None:
    found = check_view(function, **fields)
    assert found.frame.index.equals(pd.RangeIndex(len(found.frame)))
    assert not {"index", "level_0"} & {*found.frame.columns}
    if (function.view.name, fields.get("by")) not in NO_CONCLUSION:
        assert re.search(r"\d relations?\b", found.conclusion)
        assert re.search(r"\d (facts?|queries|decisions)\b", found.conclusion)


@pytest.mark.parametrize("function", VIEWS, ids=lambda one: one.view.name)
def test_bad_input_is_one_sentence(function: Any) -> None:
    wrong: list[dict[str, Any]] = [{"runs": ("nosuch",)}]
    if function.view.name == "compare":
        wrong = [{"run_a": A, "run_b": "nosuch"}, {"run_a": A, "run_b": B, "relations": ("no",)}]
    if issubclass(function.request, RunsRequest):
        wrong.append({"runs": (A, B), "relations": ("P3666",)})
    for fields in wrong:
        with pytest.raises(UserError) as raised:
            shown(function, fields)
        assert "\n" not in str(raised.value)
