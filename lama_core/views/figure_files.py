"""Draw a figure for a paper, as SVG, PDF or PNG on white; `lama_core.views.vega` lays it out."""

import io
import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from lama_core.errors import UserError, choose
from lama_core.progress import OnNote, log_note

if TYPE_CHECKING:  # the command line reads this module for every command
    from lama_core.views.figure import Figure
    from lama_core.views.vega import Spec

FigureFormat = Literal["svg", "pdf", "png"]
FORMATS: tuple[FigureFormat, ...] = get_args(FigureFormat)
WIDTH, WIDTHS = 16.0, (6.0, 60.0)  # cm
FONT_SIZE, FONT_SIZES = 9.0, (5.0, 24.0)  # points
HEIGHT = 21.0  # cm that rows take; figures with more rows are divided into files
DOTS = 300  # of PNG files, per inch
POINTS = 72 / 2.54  # in a cm
SIZE = r'width="([\d.]+)" height="([\d.]+)"'
UNKNOWN = "\ue123"  # a letter that no font has


@dataclass(frozen=True)
class FigureFile:
    """A file for a figure.

    Attributes:
        path: The file; its ending is its format. A figure with more rows than a page has files
            that end with -1, -2 and so on.
        width: In cm.
        font_size: Of labels, in points.
        titled: Whether title and caption are part of the picture.
    """

    path: Path
    width: float = WIDTH
    font_size: float = FONT_SIZE
    titled: bool = True

    @property
    def format(self) -> FigureFormat:
        """The format that the file's name means; raises UserError if there is none."""
        ending = self.path.suffix.lower().removeprefix(".")
        for one in FORMATS:
            if ending == one:
                return one
        raise UserError(f"A figure's file ends with .svg, .pdf or .png, not {self.path.name!r}.")

    def check(self) -> None:
        """Raise UserError if the file can't be drawn."""
        check_figure(self.format, self.width, self.font_size)

    def named(self, files: list[bytes]) -> dict[Path, bytes]:
        """Return the paths of a figure's files, as `draw` returns them."""
        if len(files) == 1:
            return {self.path: files[0]}
        names = [self.path.with_stem(f"{self.path.stem}-{n}") for n in range(1, len(files) + 1)]
        return dict(zip(names, files, strict=True))


def check_figure(file_format: str, width: float, font_size: float) -> None:
    """Raise UserError if the format is unknown, or width or font size are out of bounds."""
    choose(file_format, FORMATS, "format")
    for what, value, (least, most), unit in (
        ("width", width, WIDTHS, "cm"),
        ("font size", font_size, FONT_SIZES, "points"),
    ):
        if not least <= value <= most:
            raise UserError(f"The {what} of a figure is from {least:g} to {most:g} {unit}.")


def draw(
    figure: "Figure",
    file_format: FigureFormat,
    inks: Mapping[str, str],
    *,
    width: float = WIDTH,
    font_size: float = FONT_SIZE,
    titled: bool = True,
    on_note: OnNote = log_note,
) -> list[bytes]:
    """Return a figure as files: one, or several if its rows are higher than a page.

    Args:
        figure: The figure.
        file_format: `svg` or `pdf`, with texts as texts, or `png`, with 300 dots per inch.
        inks: Series -> colour as `#rrggbb`; others are grey.
        width: The width in cm, from 6 to 60.
        font_size: The size of labels in points, from 5 to 24.
        titled: Whether title and caption are part of the picture.
        on_note: Called with the scripts whose letters no installed font has.

    Raises:
        UserError: If the format is unknown, or width or font size are out of bounds.
    """
    check_figure(file_format, width, font_size)
    import vl_convert  # takes longer to load than a first answer

    pages = _pages(figure, inks, width=width, font_size=font_size, titled=titled)
    unit = "pt" if file_format == "svg" else ""  # the others take lengths for points
    pictures = []
    for page in pages:
        picture = vl_convert.vegalite_to_svg(json.dumps(page))
        (wide, high), *_ = re.findall(SIZE, picture)  # in whole pixels
        ends = (("width", width * POINTS), ("height", width * POINTS * float(high) / float(wide)))
        size = " ".join(f'{name}="{length:.2f}{unit}"' for name, length in ends)
        pictures.append(re.sub(SIZE, size, picture, count=1))
    if file_format == "svg":  # a viewer brings its fonts
        return [picture.encode() for picture in pictures]
    texts = "".join(re.findall(r"<text[^>]*>(.*?)</text>", "".join(pictures), re.DOTALL))
    missing = {
        sign
        for sign in unescape(re.sub("<[^>]*>", "", texts))
        if sign.isprintable() and not sign.isspace() and _picture(sign) == _picture(UNKNOWN)
    }
    if missing:
        scripts = sorted({unicodedata.name(sign, "unknown").split()[0].title() for sign in missing})
        on_note(
            f"No installed font has all letters of these scripts: {', '.join(scripts)}. The file "
            "has ? in their place. Install a font with them, such as Noto Sans, or save as SVG."
        )
    pictures = [picture.translate({ord(sign): "?" for sign in missing}) for picture in pictures]
    write = vl_convert.svg_to_pdf
    if file_format == "png":
        write = partial(vl_convert.svg_to_png, scale=DOTS / 72, ppi=DOTS)
    return list(map(write, pictures))


def n_files(figure: "Figure", inks: Mapping[str, str], **options: Any) -> int:
    """Return the number of files that `draw` returns; options: as for `draw`."""
    return len(_pages(figure, inks, **options))


def zipped(files: Mapping[Path, bytes]) -> bytes:
    """Return files as a ZIP archive, the same bytes each time."""
    archive = io.BytesIO()
    with ZipFile(archive, "w", ZIP_DEFLATED) as made:
        for path, content in files.items():
            made.writestr(ZipInfo(path.name), content)
    return archive.getvalue()


def _pages(
    figure: "Figure", inks: Mapping[str, str], *, width: float, font_size: float, titled: bool
) -> "list[Spec]":
    from lama_core.views import vega

    look = vega.Look(width=width * POINTS, size=font_size, titled=titled, legend=True)
    return vega.pages(figure, inks, look, HEIGHT * POINTS)


@cache
def _picture(sign: str) -> bytes:
    """Return a letter as a PNG file, which is that of `UNKNOWN` if no installed font has it."""
    import vl_convert

    from lama_core.views import vega

    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="24" height="24"><text x="2" y="18" '
        f'font-size="16" font-family="{vega.FONT}">&#{ord(sign)};</text></svg>'
    )
    return vl_convert.svg_to_png(svg)
