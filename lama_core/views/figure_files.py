"""Formats and sizes of figures for papers; `lama_core.views.drawing` draws them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from lama_core.errors import UserError, choose

FigureFormat = Literal["svg", "pdf", "png"]
FORMATS: tuple[FigureFormat, ...] = get_args(FigureFormat)
WIDTH, WIDTHS = 16.0, (6.0, 60.0)  # cm
FONT_SIZE, FONT_SIZES = 9.0, (5.0, 24.0)  # points


@dataclass(frozen=True)
class FigureFile:
    """A file for a figure. width: in cm. font_size: of labels, in points."""

    path: Path
    width: float = WIDTH
    font_size: float = FONT_SIZE

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


def check_figure(file_format: str, width: float, font_size: float) -> None:
    """Raise UserError if the format is unknown, or width or font size are out of bounds."""
    choose(file_format, FORMATS, "format")
    for what, value, (least, most), unit in (
        ("width", width, WIDTHS, "cm"),
        ("font size", font_size, FONT_SIZES, "points"),
    ):
        if not least <= value <= most:
            raise UserError(f"The {what} of a figure is from {least:g} to {most:g} {unit}.")
