"""Births of eight people: facts, a text about them, and a model that reads."""

from pathlib import Path

from data_files import write_lama
from probe_fakes import TableFiller

CITIES = ("Rome", "Oslo", "Bonn", "Bern", "Nice", "Lima", "Cork", "York")


def write_births(folder: Path) -> Path:
    """Births of eight people; the sentence of the last says nothing of a birth."""
    relation = {"relation": "P19", "template": "[X] was born in [Y] .", "type": "N-1",
                "label": "place of birth", "description": ""}  # fmt: skip
    lines = []
    for number, city in enumerate(CITIES):
        name = f"Person{number}"
        said = "was born in" if city != "York" else "hated"
        evidence = {"sub_surface": name, "obj_surface": city,
                    "masked_sentence": f"{name} {said} [MASK] ."}  # fmt: skip
        lines.append({"uuid": name, "sub_label": name, "obj_label": city, "evidences": [evidence]})
    return write_lama(folder / "small", [relation], {"P19": lines})


def write_text(folder: Path) -> Path:
    """Who was born where, and who hated what."""
    place = folder / "texts"
    place.mkdir()
    lines = [f"Person{number} was born in {city}." for number, city in enumerate(CITIES[:-1])]
    lines += [f"Person{number} hated Person{number + 1}." for number in range(7)]
    (place / "a.txt").write_text("\n".join(lines), encoding="utf-8")
    return place


class Reader(TableFiller):
    """Knows nothing, and reads: the city that stands before the query, else Rome."""

    def __init__(self) -> None:
        super().__init__({}, CITIES, "table")
        self.asked: list[str] = []

    def scores(self, text: str) -> list[float]:
        self.asked.append(text)
        read = next((city for city in CITIES if city in text), "Rome")
        self.answers = {**self.answers, text: {read: -0.1}}
        return super().scores(text)
