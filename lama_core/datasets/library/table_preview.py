"""Preview of an import: what it finds in a table."""

from pathlib import Path

from lama_core.datasets import formats, user_table
from lama_core.datasets.column_guess import guess_columns
from lama_core.datasets.library.download import ImportRequest
from lama_core.datasets.user_table import Scan, TablePreview
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


def scan_table(path: Path, request: ImportRequest) -> Scan:
    """Return the relations and facts that an import would find in a table, without importing it.

    Args:
        path: The table.
        request: Names of the columns.

    Raises:
        UserError: If a column is missing, or a template is invalid.
    """
    return user_table.scan(user_path(path), request.columns())
