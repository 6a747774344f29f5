"""Shared workloads: queries as long as T-REx's, and a model of BERT-base size.

The model has random weights, which are as fast as trained ones, and the embedded model's tokenizer.
"""

import json
import tempfile
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from lama_core.candidates.columns import Candidates, Columns
from lama_core.models.cpu import computed_precision
from lama_core.models.devices import chosen_device
from lama_core.models.protocols import Encoded, Scores
from lama_core.models.registry import open_model
from lama_core.models.sources.catalog import find_model
from lama_core.models.sources.locations import LocatedModel, fetch
from lama_core.scoring.batches import score_cloze
from lama_core.scoring.blanks import fill
from lama_core.scoring.ranking import best_candidates
from lama_core.types import Query

if TYPE_CHECKING:
    from lama_core.models.hf.masked import MaskedModel

MASKED, CAUSAL = "minilm-mlm", "smollm2-135m"
# The templates of T-REx's relations (Petroni et al. 2019) and names as long as its subjects.
TEMPLATES = (
    "[X] was born in [Y] .",
    "[X] died in [Y] .",
    "[X] is a subclass of [Y] .",
    "The official language of [X] is [Y] .",
    "[X] plays in [Y] position .",
    "The headquarter of [X] is in [Y] .",
    "[X] was originally aired on [Y] .",
    "[X] is affiliated with the [Y] religion .",
    "[X] is produced by [Y] .",
    "The original language of [X] is [Y] .",
    "[X] was created in [Y] .",
    "[X] is owned by [Y] .",
    "[X] maintains diplomatic relations with [Y] .",
    "[X] is a legal term in [Y] .",
    "The capital of [X] is [Y] .",
    "[X] used to communicate in [Y] .",
)
SUBJECTS = (
    "Lu Xun",
    "iPod Touch",
    "Marie Curie",
    "Claude Arrieu",
    "Hamburg Airport",
    "Anne Redpath",
    "Bandai Namco Holdings",
    "Adolphe Adam",
    "Sunday Night Baseball",
    "Francesco Bartolomeo Conti",
    "Province of Benevento",
    "Mohammad Hossein Shahriar",
    "Nintendo",
    "Stockholm University",
    "Bailey Peninsula",
    "Red Bull Racing",
    "Fiat Multipla",
    "Kingdom of Italy",
    "Windows Update",
    "Eibenstock",
    "Allan Peiper",
    "Sverre Lunde Pedersen",
    "Yahoo! Japan",
    "Order of Saint Benedict",
    "James Hilton",
    "Thiruvananthapuram",
    "Gothenburg tram",
    "Wilhelm Fritz von Roettig",
    "BBC",
    "St. Mary Axe",
    "Nissan Skyline GT-R",
    "Dharmendra Pradhan",
)
OBJECTS = ("paris", "london", "french", "english", "actor", "germany", "italy", "japan")


def trex_like_queries(n_queries: int) -> list[Query]:
    """Return short cloze queries like T-REx's, combining each subject with each template."""
    pairs = list(product(SUBJECTS, TEMPLATES))
    return [
        fill(template, subject)
        for subject, template in (pairs * (1 + n_queries // len(pairs)))[:n_queries]
    ]


def write_lama(folder: Path, n_facts: int) -> Path:
    """Write facts in LAMA's layout, with a relation for each template; return their folder."""
    (folder / "TREx").mkdir(parents=True)
    per_relation = -(-n_facts // len(TEMPLATES))
    names = [f"{first} {second}" for first, second in product(SUBJECTS, SUBJECTS)]
    names = [*SUBJECTS, *names, *(f"{name} {n}" for n in range(3) for name in names)]
    relations = []
    for number, template in enumerate(TEMPLATES):
        relation = f"P{number + 1}"
        relations.append({"relation": relation, "template": template, "label": relation})
        left = n_facts - number * per_relation
        rows = [
            {
                "uuid": f"{relation}-{at}",
                "sub_label": subject,
                "predicate_id": relation,
                "obj_label": OBJECTS[at % len(OBJECTS)],
                "evidences": [],
            }
            for at, subject in enumerate(names[: max(0, min(per_relation, left))])
        ]
        _write_lines(folder / "TREx" / f"{relation}.jsonl", rows)
    _write_lines(folder / "relations.jsonl", relations)
    return folder


def _write_lines(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def plain_model(model: str, precision: str) -> tuple[Any, Any, str]:
    """Load a model of the catalogue with transformers; return it, its tokenizer and its kind."""
    import torch
    from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoTokenizer

    entry = find_model(model)
    folder, kind = fetch(entry).folder, str(entry.kind)
    opened = AutoModelForMaskedLM if kind == "masked" else AutoModelForCausalLM
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    return opened.from_pretrained(folder, dtype=dtype).eval(), tokenizer, kind


def plain_base_sized_model() -> tuple[Any, Any]:
    """Return transformers' BERT base with random weights, and the embedded model's tokenizer."""
    import torch
    from transformers import AutoTokenizer, BertConfig, BertForMaskedLM
    from transformers.utils import logging

    logging.disable_progress_bar()
    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(fetch(find_model(MASKED)).folder)
    return BertForMaskedLM(BertConfig(vocab_size=len(tokenizer))).eval(), tokenizer


class Costless:
    """A model that returns stored scores."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._scores = np.empty((0, 0), dtype=np.float32)

    def __getattr__(self, name: str) -> Any:
        """Return any other attribute of the model."""
        return getattr(self._model, name)

    def blank_log_probs(self, batch: list[Encoded], columns: Columns) -> Scores:
        """Return the first rows of the stored scores."""
        n_words = len(columns.words)
        if self._scores.shape[1] != n_words or len(self._scores) < len(batch):
            shape = (max(512, len(batch)), n_words)
            draw = np.random.default_rng(0)
            self._scores = -draw.standard_exponential(shape, dtype=np.float32)
        return Scores(self._scores[: len(batch)])


def base_sized_model(precision: str = "fp32") -> "MaskedModel":
    """Return the model of `plain_base_sized_model`, opened from a folder like a user's model."""
    with tempfile.TemporaryDirectory() as folder:
        for part in plain_base_sized_model():
            part.save_pretrained(folder)
        located = LocatedModel(Path(folder), "random")
        precision = computed_precision(precision, chosen_device())
        return cast("MaskedModel", open_model("random-bert-base", located, "masked", precision))


def first_answers(model: Any, queries: Sequence[Query], candidates: Candidates) -> list[int]:
    """Return the column of the best candidate for each query."""
    answers = [0] * len(queries)
    for block in score_cloze(model, queries, candidates.columns(model.vocabulary)):
        best = best_candidates(block.log_probs, 1, order=block.order)
        for index, column in zip(block.indices, best.columns[:, 0], strict=True):
            answers[index] = int(column)
    return answers
