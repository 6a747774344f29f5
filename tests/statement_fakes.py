"""Runs of a model that scores statements by a table, on eight facts.

Answers in the data's order, and each fact's scores of them:

    P19  Rome, Paris, Oslo, New York     gold      margin           first
    Anna   -1   -3    -4    -5           Rome      -1 - -3 = 2      right
    Ben    -1   -2    -3    -4           Paris     -2 - -1 = -1     Rome
    Cleo   -5   -2    -6    -7           Rome      -5 - -2 = -3     Paris
    Dan    -4   -3    -1.5  -6           Oslo      -1.5 - -3 = 1.5  right
    Eve    -4   -4    -4    -0.5         New York  -0.5 - -4 = 3.5  right
    P47  Berlin, Paris
    Land   -1   -2                       Berlin    none: both are right for Land
    Land   -1   -2                       Paris     none, and first only when Berlin is taken out
    Isle   -3   -1                       Berlin    -3 - -1 = -2     Paris
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from data_files import write_lama
from probe_fakes import TableFiller
from written_statements import WholeTexts

from lama_core.models.protocols import Chat, GeneratedText
from lama_core.probes.cloze.request import ProbeRequest
from lama_core.probes.generation.plan import plan as plan_texts
from lama_core.probes.generation.request import GenerateRequest
from lama_core.probes.plan import plan as plan_cloze
from lama_core.probes.statements.plan import plan
from lama_core.probes.statements.request import StatementsRequest
from lama_core.runs.execute import execute
from lama_core.runs.info import Run

FACTS = {
    "P19": [
        ("Anna", "Rome"), ("Ben", "Paris"), ("Cleo", "Rome"), ("Dan", "Oslo"), ("Eve", "New York"),
    ],
    "P47": [("Land", "Berlin"), ("Land", "Paris"), ("Isle", "Berlin")],
}  # fmt: skip
RELATIONS = [
    {"relation": "P19", "template": "[X] was born in [Y] .", "type": "N-1"},
    {"relation": "P47", "template": "[X] borders on [Y] .", "type": "N-M"},
]
SCORES = {
    "Anna": {"Rome": -1.0, "Paris": -3.0, "Oslo": -4.0, "New York": -5.0},
    "Ben": {"Rome": -1.0, "Paris": -2.0, "Oslo": -3.0, "New York": -4.0},
    "Cleo": {"Rome": -5.0, "Paris": -2.0, "Oslo": -6.0, "New York": -7.0},
    "Dan": {"Rome": -4.0, "Paris": -3.0, "Oslo": -1.5, "New York": -6.0},
    "Eve": {"Rome": -4.0, "Paris": -4.0, "Oslo": -4.0, "New York": -0.5},
    "Land": {"Berlin": -1.0, "Paris": -2.0},
    "Isle": {"Berlin": -3.0, "Paris": -1.0},
}

# What a model generates for the question about each subject.
TEXTS = {
    "Anna": "Rome, I think.",
    "Ben": "<b>PARISIAN</b>",
    "Cleo": "In Rome.",
    "Dan": "I don't know.",
    "Eve": "London",
    "Land": "",
    "Isle": "Berlin or Paris",
}


class Writer:
    """A model that generates a written text for each question; texts: by words of the question."""

    kind, precision, device, identity, notes = "causal", "fp32", "cpu", "0" * 64, ()

    def __init__(self, name: str, texts: Mapping[str, str] = TEXTS) -> None:
        self.name = self.reference = name
        self.texts = texts

    def generate(
        self, prompts: Sequence[Chat], max_tokens: int, *, again: bool = False
    ) -> list[GeneratedText]:
        texts = [
            next(text for words, text in self.texts.items() if words in one.messages[-1].text)
            for one in prompts
        ]
        return [GeneratedText(text, (text,), np.zeros(1, np.float32)) for text in texts]


def write_facts(folder: Path) -> Path:
    return write_lama(folder / "stated", RELATIONS, FACTS)


def make_statement_run(
    folder: Path, runs: Path, *, model: str = "scorer", **options: object
) -> Run:
    """A run of the model on the eight facts; options: of `StatementsRequest`."""

    def load(reference: str, *, precision: str) -> WholeTexts:
        return WholeTexts(SCORES, name=reference)

    request = StatementsRequest(str(write_facts(folder)), (model,), **options)  # type: ignore[arg-type]
    return execute(plan(request, load=load)[0], folder=runs, load=load)


def make_cloze_run(folder: Path, runs: Path) -> Run:
    """A run of cloze queries on the same facts: the same scores, of the words of one token."""
    templates = {row["relation"]: row["template"] for row in RELATIONS}
    answers = {
        templates[relation].replace("[X]", subject).replace("[Y]", "[MASK]"): {
            word: score for word, score in SCORES[subject].items() if " " not in word
        }
        for relation, pairs in FACTS.items()
        for subject, _ in pairs
    }

    def load(reference: str, *, precision: str) -> TableFiller:
        return TableFiller(answers, ("Rome", "Paris", "Oslo", "Berlin"), reference)

    request = ProbeRequest(str(write_facts(folder)), ("filler",), candidates="full")
    return execute(plan_cloze(request, load=load)[0], folder=runs, load=load)


def make_ways(folder: Path, runs: Path) -> tuple[Run, Run, Run]:
    """Runs of one model on the same facts: words at a blank, whole answers, generated answers."""
    request = GenerateRequest(dataset=str(write_facts(folder)), models=["filler"])

    def load(reference: str, *, precision: str) -> Writer:
        return Writer(reference)

    texts = execute(plan_texts(request, load=load)[0], folder=runs, load=load)
    return make_cloze_run(folder, runs), make_statement_run(folder, runs, model="filler"), texts
