"""Four countries and their cities: facts, and a model with beliefs that don't all agree.

| relation | subject | believed, with its probability |
| --- | --- | --- |
| capital | Norway, Italy | Oslo 0.9; Rome 0.9 |
| capital | Sweden | Oslo 0.5 |
| capital | France | Paris 0.9, Lyon 0.15 |
| capital of | Oslo; Paris; Rome; Lyon | Sweden 0.7; France 0.9; Italy 0.9; nothing (0.05) |
| country | Oslo; Paris; Rome; Lyon | Norway 0.8; Italy 0.6; Italy 0.9; France 0.7 |
| shares border with | Norway; Sweden | Sweden 0.6, France 0.2; Norway 0.9 |
| shares border with | France; Italy | Italy 0.8; France 0.5 |
"""

import math
from pathlib import Path
from typing import Any

from data_files import write_lama
from probe_fakes import TableFiller

from lama_core.runs.execute import execute_all
from lama_core.runs.info import Run
from lama_entities.crawl import CrawlRequest, plan_crawl

TEMPLATES = {
    "P36": ("capital", "The capital of [X] is [Y] ."),
    "P1376": ("capital of", "[X] is the capital of [Y] ."),
    "P17": ("country", "[X] is located in [Y] ."),
    "P47": ("shares border with", "[X] shares a border with [Y] ."),
}
CAPITALS = (("Norway", "Oslo"), ("France", "Paris"), ("Italy", "Rome"))
FACTS = {
    "P36": CAPITALS,
    "P1376": tuple((city, country) for country, city in CAPITALS),
    "P17": (*((city, country) for country, city in CAPITALS), ("Lyon", "France")),
    "P47": (("Norway", "Sweden"), ("Sweden", "Norway"), ("France", "Italy"), ("Italy", "France")),
}
BELIEFS: dict[tuple[str, str], dict[str, float]] = {
    ("Norway", "P36"): {"Oslo": 0.9},
    ("Sweden", "P36"): {"Oslo": 0.5},
    ("France", "P36"): {"Paris": 0.9, "Lyon": 0.15},
    ("Italy", "P36"): {"Rome": 0.9},
    ("Oslo", "P1376"): {"Sweden": 0.7},
    ("Paris", "P1376"): {"France": 0.9},
    ("Rome", "P1376"): {"Italy": 0.9},
    ("Lyon", "P1376"): {"France": 0.05},
    ("Oslo", "P17"): {"Norway": 0.8},
    ("Paris", "P17"): {"Italy": 0.6},
    ("Rome", "P17"): {"Italy": 0.9},
    ("Lyon", "P17"): {"France": 0.7},
    ("Norway", "P47"): {"Sweden": 0.6, "France": 0.2},
    ("Sweden", "P47"): {"Norway": 0.9},
    ("France", "P47"): {"Italy": 0.8},
    ("Italy", "P47"): {"France": 0.5},
}
WORDS = ("Norway", "Sweden", "France", "Italy", "Oslo", "Paris", "Rome", "Lyon")


def write_world(folder: Path, facts: Any = None, more: Any = None) -> Path:
    templates = TEMPLATES | (more or {})
    relations = [
        {"relation": name, "label": label, "template": template, "type": "N-M", "description": ""}
        for name, (label, template) in templates.items()
    ]
    return write_lama(folder / "world", relations, facts or FACTS)


class Believer(TableFiller):
    """The model; `asked` has each text that it was asked."""

    def __init__(self, name: str = "believer", changed: Any = None) -> None:
        beliefs = {**BELIEFS, **(changed or {})}
        answers = {
            TEMPLATES[relation][1].replace("[X]", subject).replace("[Y]", "[MASK]"): {
                word: math.log(prob) for word, prob in found.items()
            }
            for (subject, relation), found in beliefs.items()
        }
        words = dict.fromkeys([*WORDS, *(word for one in beliefs.values() for word in one)])
        super().__init__(answers, [*words], name)
        self.asked: list[str] = []

    def scores(self, text: str) -> list[float]:
        self.asked.append(text)
        self.answers = {text: {}, **self.answers}
        return super().scores(text)


def crawl_world(data: Path, model: Believer, **fields: Any) -> Run:
    options = {"out": None, "stopped": None, "candidates": "full"} | fields
    stopped, out = options.pop("stopped"), options.pop("out")
    notes = options.setdefault("on_note", lambda _: None)
    seeds = options.pop("seeds", ("Norway",))
    request = CrawlRequest(seeds, **{"models": (model.name,), "dataset": str(data), **options})
    request.check()
    specs = plan_crawl(request, load=lambda *_, **__: model)
    (run,) = execute_all(
        specs, folder=out, load=lambda *_, **__: model, stopped=stopped, on_note=notes
    )
    return run
