"""A new lens is one file and one row: in a copy of the project that has both."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from project_files import ROOT

pytestmark = pytest.mark.usefixtures("home")
LENS = """
from dataclasses import dataclass

from lama_core.models.protocols import BlankFiller
from lama_core.queries.lenses.lens import AnswerRequest, Lens, LensResult
from lama_core.tables import table_of


@dataclass(frozen=True, slots=True)
class ModelLength(LensResult):
    answer: str
    n_tokens: int

    def to_json(self):
        return {"answer": self.answer, "n_tokens": self.n_tokens}

    def rows(self):
        return [{"model": self.name, **self.to_json()}]

    def text(self):
        yield table_of(("answer", "tokens"), [(self.answer, self.n_tokens)], title=self.name)
        yield "Special tokens count."


def count_tokens(inspection):
    answer, _, note = inspection.choose_answer(inspection.request.answer)
    n_tokens = len(inspection.encoded.token_ids)
    return ModelLength(answer=answer, n_tokens=n_tokens, **inspection.about(note))


LENS = Lens(
    name="length", title="Length", about="the number of tokens that the model sees",
    rows="a row for each model", caption="Special tokens count.",
    options=AnswerRequest, requires=BlankFiller, compute=count_tokens,
)
"""
CALLS = """
import json

import lama_core as lama
from calling import printed, told
from opening import open_page

TEXT = "The capital of Norway is ___."
WORDS = ("inspect", TEXT, "--lens", "length", "--answer", "Rome")
page = open_page("cloze", models="minilm-mlm", text=TEXT, look="Length")
print(json.dumps({
    "text": printed(*WORDS),
    "json": told(*WORDS)["models"],
    "frame": lama.inspect(TEXT, lens="length").to_dict("records"),
    "help": printed("inspect", "--help"),
    "docstring": lama.inspect.__doc__,
    "page": page.dataframe[0].value.to_dict("records"),
    "captions": [one.value for one in page.caption],
}))
"""


def test_a_new_lens_is_one_file_and_one_row(tmp_path: Path) -> None:
    for name in ("lama_core", "pages"):
        shutil.copytree(ROOT / name, tmp_path / name)
    shutil.copy(ROOT / "app.py", tmp_path)
    for name in ("assets", "docs"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "tests").mkdir()
    for name in ("calling.py", "opening.py", "project_files.py"):
        shutil.copy(ROOT / "tests" / name, tmp_path / "tests" / name)
    lenses = tmp_path / "lama_core" / "queries" / "lenses"
    (lenses / "length.py").write_text(LENS)
    table = (lenses / "table.py").read_text()
    table = table.replace("import layers, logit", "import layers, length, logit")
    (lenses / "table.py").write_text(
        table.replace("    logit.LENS,\n", "    logit.LENS, length.LENS,\n")
    )

    paths = (tmp_path, tmp_path / "tests")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths))}
    command = [sys.executable, "-c", CALLS]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    lines = [line.split() for line in found["text"].splitlines()]
    assert lines[:4] == [["minilm-mlm"], ["answer", "tokens"], ["Rome", "9"],
                         ["Special", "tokens", "count."]]  # fmt: skip
    of_model = {"name": "minilm-mlm", "kind": "masked"}
    assert found["json"] == [of_model | {"answer": "Rome", "n_tokens": 9}]
    assert found["frame"] == [{"model": "minilm-mlm", "answer": "oslo", "n_tokens": 9}]
    assert "length: the number of tokens" in " ".join(found["help"].replace("│", "").split())
    assert "Lens length: a row for each model." in " ".join(found["docstring"].split())
    assert found["page"] == found["frame"] and "Special tokens count." in found["captions"]
