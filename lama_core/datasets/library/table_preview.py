"""Preview of an import: what it finds in a table."""

from pathlib import Path

from lama_core.datasets import formats, user_table
from lama_core.datasets.column_guess import guess_columns
from lama_core.datasets.user_table import TablePreview
from lama_core.errors import UserError
from lama_core.files import user_path

PREVIEWED = 5  # rows


def is_table(path: Path) -> bool:
    """Whether a file is a table, or may be one whose columns have other names."""
    path = user_path(path)
    try:
        return formats.detect(path).name == "table"
    except UserError:
        return len(user_table.first_names(path)) > 1


def preview_table(path: Path) -> TablePreview:
    """Return the first rows of a table; a role without a matching name has the column "".

    Raises:
        UserError: If the file can't be read.
    """
    header, rows = user_table.first_rows(user_path(path), PREVIEWED)
    columns = {role: user_table.named_column(header, role) for role in user_table.ROLES}
    return TablePreview(header, rows, columns, guess_columns(header, rows, columns))
