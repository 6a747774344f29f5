"""The rows of this plug-in come after the project's formats, and before tables."""

from lama_core import plugins
from lama_core.datasets.formats import FORMATS, all_formats

ORDER = ["bear", "entity-questions", "popqa", "counterfact", "zsre"]


def test_tables_are_recognised_last_and_each_format_has_the_name_of_its_row() -> None:
    rows, names = plugins.rows("formats"), [one.name for one in all_formats()]
    *first, table = (one.name for one in FORMATS)
    assert [name for name in names if name in ORDER] == ORDER
    assert names == [*first, *rows, table] and table == "table"
    assert [one.name for one in rows.values()] == [*rows]
