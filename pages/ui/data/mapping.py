"""The preview of a table to import: first rows, choice of columns, missing templates."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from lama_core.datasets.library.download import ImportRequest
from lama_core.datasets.library.installed import STARTER
from lama_core.datasets.library.table_preview import is_table, preview_table, scan_table
from lama_core.datasets.proposed_sentences import proposed_template
from lama_core.datasets.user_table import Scan, TablePreview
from lama_core.errors import UserError
from lama_core.files import format_bytes
from lama_core.queries.cloze import ClozeKind, ClozeRequest
from lama_core.scoring.blanks import fill
from pages.ui.data.contents import draw_dropped
from pages.ui.shared import cache, visitors
from pages.ui.shared.messages import errors_shown, plain
from pages.ui.shared.run_form import default_models
from pages.ui.shared.tables import draw_table
from pages.ui.shared.url_state import title_of

MAX_SCANNED = 20_000_000  # bytes; rows of larger files are checked only by the import
MAX_SENTENCES = 5  # that are shown
MAX_FIELDS = 12  # maximum number of template fields; for more relations one field serves all
NONE = ""
EXAMPLE = "The capital of [X] is [Y]."
READ = "tables that were read"  # session key: the last table's mark and results


@dataclass(frozen=True)
class ChosenFile:
    """The chosen file.

    Attributes:
        name: The file's name or path.
        mark: Identifies the content: changes when the content changes.
        n_bytes: The file's size; 0 for a folder.
        open: Returns the path of the file.
        is_copy: Whether `open` saves a temporary copy, which the caller deletes with its folder.
    """

    name: str
    mark: str
    n_bytes: int
    open: Callable[[], Path]
    is_copy: bool

    def read(self, reader: Callable[..., Any], *more: Any) -> Any:
        """Return `reader(path, *more)`, and delete the file if it is a temporary copy."""
        path = self.open()
        try:
            return reader(path, *more)
        except UserError as error:  # names the file as the user does, not the temporary copy
            raise UserError(str(error).replace(str(path), self.name)) from error
        finally:
            if self.is_copy:
                shutil.rmtree(path.parent, ignore_errors=True)


def draw_mapping(file: ChosenFile, request: ImportRequest) -> ImportRequest | str:
    """Draw a table's first rows and the choice of its columns and templates.

    Args:
        file: The chosen file; other formats than tables need no choices.
        request: The import without columns and templates.

    Returns:
        The complete import, or a sentence with the choice that is missing.

    Raises:
        UserError: If the table has no usable row, or a template is invalid.
    """
    if not read_once(file, (), is_table):
        return request
    preview: TablePreview = read_once(file, (), preview_table)
    if not preview.header:
        raise UserError(f"{Path(file.name).name} has no readable row. Choose another table.")
    draw_rows(preview)
    request = _choose_columns(file, preview, request)
    chosen = {role: getattr(request, name) or preview.columns[role] for role, name in FIELDS}
    if not (chosen["subject"] and chosen["object"]):
        return "Choose the columns of the subjects and the right answers."
    if chosen["subject"] == chosen["object"]:
        return "Choose two different columns for the subjects and the objects."
    templates = st.container()
    separator = st.text_input(
        "Separator of several right answers (optional)",
        key=f"separator {file.mark}",
        placeholder="None: a cell is one answer",
        help="For example `;`, or `json` if each cell is a JSON list. Each answer becomes a fact.",
    )
    request = replace(request, object_separator=(separator.strip() or None))
    if file.n_bytes > MAX_SCANNED:
        st.caption(
            f"The file is larger than {format_bytes(MAX_SCANNED)}, so its rows are checked only "
            "during the import."
        )
        with templates:
            text = _type_template("Template for rows without one", f"{file.mark} all")
        request = replace(request, template=(text,) if text else ())
        request.columns()  # raises for an invalid template
        return request
    columns = (*(getattr(request, name) for _, name in FIELDS), request.object_separator)
    found: Scan = read_once(file, columns, scan_table, request)
    is_named = chosen["relation"] or preview.columns["object"]
    with templates:
        request = _choose_templates(
            file, found, request, meaning="" if is_named else str(chosen["object"])
        )
    request.columns()
    _draw_first(file, found, request)
    usable = found.n_facts or found.unasked
    draw_dropped(found.dropped, what="row", opened=not usable)
    if not usable:
        raise UserError(f"{Path(file.name).name} has no usable row. The table shows the reasons.")
    if not found.n_facts and not request.template:
        return "Type a template: no row has a template or a sentence with `[MASK]`."
    return request


FIELDS = (
    ("subject", "subject"),
    ("relation", "relation"),
    ("object", "object"),
    ("template", "template_column"),
)
LABELS = {
    "subject": "Subjects",
    "relation": "Relations",
    "object": "Right answers",
    "template": "Templates",
}
WITHOUT = {"relation": "None: one relation", "template": "None"}


def _choose_columns(
    file: ChosenFile, preview: TablePreview, request: ImportRequest
) -> ImportRequest:
    """Draw a field for each role's column; return the request.

    A column that is recognised by its name is not added to the request.
    """
    chosen: dict[str, Any] = {}
    for (role, name), cell in zip(FIELDS, st.columns(len(FIELDS)), strict=True):
        by_name = preview.columns[role]
        first = by_name or preview.guessed.get(role, "")
        options = [NONE, *preview.header] if role in WITHOUT and not by_name else preview.header
        column = cell.selectbox(
            LABELS[role],
            options,
            index=options.index(first) if first else 0 if role in WITHOUT else None,
            format_func=lambda column, role=role: column or WITHOUT[role],
            key=f"column {role} {file.mark}",
            placeholder="Choose a column",
        )
        chosen[name] = column if column and column != by_name else None
    if preview.guessed:
        st.caption("Columns with other names are guessed: check them.")
    return replace(request, **chosen)


def draw_rows(preview: TablePreview) -> None:
    """Draw the first rows of a table, each cell as text."""
    rows = [
        {
            name: cell
            if isinstance(cell, str)
            else json.dumps(cell, ensure_ascii=False, default=str)
            for name, cell in row.items()
        }
        for row in preview.rows
    ]
    draw_table(pd.DataFrame(rows, columns=list(preview.header)), placeholder="")


def read_once(
    file: ChosenFile, columns: tuple[Any, ...], reader: Callable[..., Any], *more: Any
) -> Any:
    """Return `reader(path, *more)`, cached by reader and columns until another file is chosen."""
    mark, kept = st.session_state.get(READ, ("", {}))
    if mark != file.mark:
        kept = {}
        st.session_state[READ] = (file.mark, kept)
    key = (reader.__name__, columns)
    if key not in kept:
        kept[key] = file.read(reader, *more)
    return kept[key]


def _choose_templates(
    file: ChosenFile, found: Scan, request: ImportRequest, *, meaning: str
) -> ImportRequest:
    """Draw a field for the template of each relation that has none.

    meaning: what the objects are, if the table has no relations.
    """

    def propose(relation: str) -> str:  # or what the objects are; "" is no proposal
        known = cache.dataset_of(STARTER).relations
        return proposed_template(relation, found.labels.get(relation, ""), known)

    if not found.unasked:
        return request
    if 1 < len(found.unasked) <= MAX_FIELDS:
        typed = (
            (name, _type_template(f"Template of {name}", f"{file.mark} {name}", propose(name)))
            for name in found.unasked
        )
        return replace(request, template=tuple(f"{name}={text}" for name, text in typed if text))
    label, proposed = "Template of all relations without one", ""
    if len(found.unasked) == 1:
        is_named = request.relation or len(found.relations) > 1
        label = "Template"
        proposed = propose(meaning or (found.unasked[0] if is_named else ""))
    text = _type_template(label, f"{file.mark} all", proposed)
    return replace(request, template=(text,) if text else ())


def _draw_first(file: ChosenFile, found: Scan, request: ImportRequest) -> None:
    """Draw the first fact of each relation as it will be asked; a button asks a model the first."""
    typed = request.columns().templates
    sentences: dict[str, str] = {}  # sentence -> the right answer
    for fact, own in found.first:
        text = own or typed.get(fact.relation) or typed.get("", "")
        if text:
            query = fill(text, fact.subject).text() if "[X]" in text else text
            sentences.setdefault(query, fact.object)
    shown = list(sentences.items())[:MAX_SENTENCES]
    if not shown:
        return
    lines = (
        f"- {plain(text.replace('[MASK]', '___'))} → **{plain(answer)}**" for text, answer in shown
    )
    st.markdown("\n".join(("As it will be asked, with the right answer:", "", *lines)))
    models = default_models(visitors.models_here())[:1]
    if models and st.button(
        "Try the first sentence", icon=":material/bolt:", key=f"try {file.mark}"
    ):
        text, answer = shown[0]
        with errors_shown():
            asked = ClozeRequest(text, models=tuple(models), gold=answer, top_k=3)
            (blank, *_) = cache.answer(ClozeKind(), asked, models[0]).blanks
            words = ", ".join(f"{row.token} ({row.prob:.1%})" for row in blank.rows)
            st.caption(f"{plain(title_of(models[0]))} answers: {plain(words)}.")


def _type_template(label: str, mark: str, first: str = "") -> str:
    """Draw the field for a template, with a first text that depends on the relation."""
    return st.text_input(
        plain(label),
        first,
        key=f"template {mark} {first}",
        placeholder=EXAMPLE,
        help="A sentence in which **[X]** stands for the subject and **[Y]** for the object, such "
        f"as `{EXAMPLE}`. Rows of a relation without a template are excluded.",
    ).strip()
