"""Figures for papers: files with their fonts and texts."""

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from calling import invoke
from test_every_view import shown as show_view

from lama_core.views.figure import Figure
from lama_core.views.figure_files import draw
from lama_core.views.ranks import ranks

RUN = "starter-minilm_mlm-manual"


def words_of(text: str) -> list[str]:
    return re.findall(r"\w+", text)


@pytest.fixture(scope="module")
def figure() -> Figure:
    return show_view(ranks, {"runs": (RUN,)}).figure


def test_letters_that_no_font_has_are_named_by_their_script(figure: Figure) -> None:
    said: list[str] = []
    # Cuneiform and Linear B: letters that no font of a usual machine has.
    title = "Ω and \U00012000\U00010000"
    (pdf,) = draw(replace(figure, title=title), "pdf", {}, on_note=said.append)
    draw(replace(figure, title="Ω, ÄÖÜ, Ж"), "png", {}, on_note=said.append)
    (svg,) = draw(replace(figure, title=title), "svg", {}, on_note=said.append)
    assert len(said) == 1 and "Cuneiform, Linear." in said[0] and "save as SVG" in said[0]
    assert "\U00012000" in svg.decode() and pdf.startswith(b"%PDF")


def test_a_pdf_has_its_fonts_and_its_texts(figure: Figure, tmp_path: Path) -> None:
    (made,) = draw(figure, "pdf", {}, width=12)
    assert made.startswith(b"%PDF") and b"/FontFile" in made and b"/Type3" not in made
    box = re.search(rb"/MediaBox ?\[ ?0 0 ([\d.]+) ([\d.]+) ?\]", made)
    assert box is not None and float(box[1]) == pytest.approx(12 / 2.54 * 72, abs=0.1)
    if shutil.which("gs") is None:
        pytest.skip("without Ghostscript")
    file = tmp_path / "figure.pdf"
    file.write_bytes(made)
    read = ["gs", "-q", "-dNOPAUSE", "-dBATCH", "-sDEVICE=txtwrite", "-sOutputFile=-", str(file)]
    said = subprocess.run(read, capture_output=True, text=True, check=True).stdout
    for text in (figure.title, figure.caption, "minilm-mlm"):
        assert set(words_of(text)) <= set(words_of(said)), text


def test_the_command_writes_the_figure(tmp_path: Path) -> None:
    file = tmp_path / "ranks.svg"
    told = invoke(("results", "ranks", RUN, "--figure", str(file), "--figure-width", "10"))
    assert told.exit_code == 0 and "Facts by the rank" in told.stdout
    assert 'width="283.46pt"' in file.read_text(encoding="utf-8")
    words = ("results", "ranks", RUN, "--figure", str(file), "--no-figure-title")
    assert "Caption: Rank of the right answer" in invoke(words).stderr
    for words, why in (
        (("--figure", "x.doc"), "ends with .svg, .pdf or .png"),
        (("--figure", "x.svg", "--figure-width", "900"), "from 6 to 60 cm"),
        (("--figure", "x.svg", "--font-size", "1"), "from 5 to 24 points"),
    ):
        told = invoke(("results", "ranks", RUN, *words))
        assert why in str(told.exception) and not told.stdout
