"""Figures for papers: everything that a reader needs is in the file, and nothing is cut off."""

import re
import shutil
import subprocess
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any
from unicodedata import normalize

import pytest
from calling import invoke
from matplotlib import rc_context
from test_every_view import EVERY
from test_every_view import shown as show_view

from lama_core.errors import UserError
from lama_core.views import drawing
from lama_core.views.colours import run_colours
from lama_core.views.figure import Figure
from lama_core.views.figure_files import FORMATS
from lama_core.views.ranks import ranks
from lama_core.views.view import Shown

RUN = "starter-minilm_mlm-manual"
DRAWN = [(view, fields) for view, fields in EVERY if view.view.has_figure]


def words_of(text: str) -> list[str]:
    """The words of a text; a ligature is its letters."""
    return re.findall(r"\w+", normalize("NFKC", text))


def words_in_svg(made: bytes) -> str:
    texts = re.findall(r"<text[^>]*>(.*?)</text>", made.decode(), re.DOTALL)
    return " ".join(unescape(re.sub("<.*?>", "", text)) for text in texts)


def needed(shown: Shown[Any, Any], figure: Figure) -> list[str]:
    """Title, caption, axes and series."""
    axis = figure.rows if figure.shape == "heat map" else figure.by.title
    names = [figure.names[one] for one in dict.fromkeys(figure.frame[figure.series])]
    baselines = [
        one.name
        for one in figure.baselines
        if (figure.frame[one.column].astype(float) >= one.least).any()
    ]
    return [figure.title, figure.caption, axis, figure.value.title, *names, *baselines]


@pytest.mark.parametrize(("function", "fields"), DRAWN)
def test_a_file_says_what_it_shows(function: Any, fields: dict[str, Any]) -> None:
    shown = show_view(function, fields)
    figure = shown.figure
    inks = run_colours(shown.infos)
    said = words_of(words_in_svg(drawing.draw(figure, "svg", inks, width=30)))
    for text in needed(shown, figure):
        assert set(words_of(text)) <= set(said), text
    assert re.search(r"\d (fact|facts|queries|decisions)\b", figure.caption), figure.caption


@pytest.mark.parametrize(("width", "font_size"), ((6, 8), (12, 14)))
@pytest.mark.parametrize(("function", "fields"), DRAWN)
def test_nothing_is_cut_off(
    function: Any, fields: dict[str, Any], width: float, font_size: float
) -> None:
    shown = show_view(function, fields)
    figure = replace(shown.figure, title=shown.figure.title + " and a_long_name" * 9)
    with rc_context(drawing.SETTINGS | {"font.size": font_size}):
        canvas = drawing.make(figure, run_colours(shown.infos), width=width, font_size=font_size)
        canvas.draw_without_rendering()
        renderer = canvas.canvas.get_renderer()  # type: ignore[attr-defined]
        wide, high = canvas.get_size_inches() * canvas.dpi
        title, *others = [
            text.get_window_extent(renderer) for text in canvas.texts if text.get_text()
        ]
        charts = [axes.get_tightbbox(renderer) for axes in canvas.axes]
        legends = [legend.get_window_extent(renderer) for legend in canvas.legends]
    assert wide == pytest.approx(width / 2.54 * canvas.dpi)
    for box in (title, *others, *charts, *legends):
        assert box.x0 >= -0.5 and box.x1 <= wide + 0.5
        assert box.y0 >= -0.5 and box.y1 <= high + 0.5
    for box in (*charts, *legends):
        assert box.y1 <= title.y0
    for caption in others:
        assert all(caption.y1 <= box.y0 for box in charts)
    for legend in legends:
        assert all(box.y1 <= legend.y0 + 0.5 for box in charts)


@pytest.fixture
def figure() -> Figure:
    return show_view(ranks, {"runs": (RUN,)}).figure


def test_texts_of_data_are_drawn_as_they_are(figure: Figure) -> None:
    text = r"price $x_1$ & <b> \alpha"
    made = drawing.draw(replace(figure, title=text), "svg", {})
    assert text in words_in_svg(made)


def test_letters_that_no_font_has_are_named(figure: Figure) -> None:
    said: list[str] = []
    drawing.draw(replace(figure, title="Ω and \U00012000"), "pdf", {}, on_note=said.append)
    drawing.draw(replace(figure, title="Ω"), "pdf", {}, on_note=said.append)
    drawing.draw(replace(figure, title="\U00012000"), "svg", {}, on_note=said.append)
    assert said == ["No installed font has the letters \U00012000: the file shows boxes instead."]


def test_a_pdf_has_its_fonts_and_its_texts(figure: Figure, tmp_path: Path) -> None:
    made = drawing.draw(figure, "pdf", {}, width=12)
    assert made.startswith(b"%PDF") and b"/FontFile2" in made and b"/Type3" not in made
    box = re.search(rb"/MediaBox \[ 0 0 ([\d.]+) ([\d.]+) \]", made)
    assert box is not None and float(box[1]) == pytest.approx(12 / 2.54 * 72, abs=0.1)
    if shutil.which("gs") is None:
        pytest.skip("without Ghostscript")
    file = tmp_path / "figure.pdf"
    file.write_bytes(made)
    read = ["gs", "-q", "-dNOPAUSE", "-dBATCH", "-sDEVICE=txtwrite", "-sOutputFile=-", str(file)]
    said = subprocess.run(read, capture_output=True, text=True, check=True).stdout
    for text in (figure.title, figure.caption, figure.by.title, "minilm-mlm"):
        assert set(words_of(text)) <= set(words_of(said)), text


@pytest.mark.parametrize("file_format", FORMATS)
def test_the_same_figure_gives_the_same_file(figure: Figure, file_format: Any) -> None:
    one, two = (drawing.draw(figure, file_format, {}) for _ in range(2))
    assert one == two and len(one) > 5000


def test_the_command_writes_the_figure(tmp_path: Path) -> None:
    file = tmp_path / "ranks.svg"
    told = invoke(("results", "ranks", RUN, "--figure", str(file), "--figure-width", "10"))
    assert told.exit_code == 0 and "Facts by the rank" in told.stdout
    assert 'width="283.46' in file.read_text(encoding="utf-8")
    for words, why in (
        (("--figure", "x.doc"), "ends with .svg, .pdf or .png"),
        (("--figure", "x.svg", "--figure-width", "900"), "from 6 to 60 cm"),
        (("--figure", "x.svg", "--font-size", "1"), "from 5 to 24 points"),
    ):
        told = invoke(("results", "ranks", RUN, *words))
        assert why in str(told.exception) and not told.stdout


def test_a_figure_has_a_known_format(figure: Figure) -> None:
    with pytest.raises(UserError, match="jpg"):
        drawing.draw(figure, "jpg", {})  # type: ignore[arg-type]
