"""The files that the tab Import takes besides data: forms of plug-ins."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pages.ui.data.mapping import ChosenFile

Takes = Literal["yes", "likely", "perhaps", "no"]


@dataclass(frozen=True)
class FileForm:
    """A form for files without facts to ask. Its name says what these have: results of models.

    Attributes:
        describe: Returns what it takes, as Markdown.
        help: More for the help text of the file's field, as Markdown.
        example: A name of an example file, and its text.
        takes: Whether it takes a file, folder or archive. If that is only likely, the visitor
            can choose between the form and facts; if perhaps, the visitor has to.
        draw: Draws the form.
        draw_progress: Draws what it is doing, or how that ended, above the choice of a file.
    """

    describe: Callable[[], str]
    help: str
    example: tuple[str, str]
    takes: Callable[[Path], Takes]
    draw: Callable[[ChosenFile], None]
    draw_progress: Callable[[], None]
