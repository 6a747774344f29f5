"""The rows of a run as a Parquet table: one row a query, excluded ones with their reason.

    fact_id, relation, source, type     which fact
    subject, object                     as the data writes them
    origin                              where the fact itself is from; null where nothing says so
    prompt                              which of the relation's templates or the fact's sentences
    query                               the text that was asked, with [MASK]
    excluded                            the reason why the row doesn't count; null if it does
    rank_raw, rank_filtered             of the gold, 1 = best
    log_prob                            of the gold, natural log
    first, first_log_prob               the best prediction of all candidates
    first_filtered, first_filtered_log_prob   the best without the other valid objects
    first_is_valid                      `first` is another valid object of this subject and relation
    first_is_object                     `first` is an object of the relation in the data
    n_valid                             valid objects of this subject and relation in the data
    object_count                        facts of the relation with this object in the data
    subject_tokens, subject_pieces      words of the subject, and pieces of the model's tokenizer,
                                        null where nobody says how it writes
    top_words, top_log_probs            the ten best predictions, raw ranking

Everything from rank_raw to first_is_object and the last two is null in an excluded row; `first` and
what is said of it also where nothing was answered. log_prob is NaN of a gold that wasn't found.
"""

import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from lama_core.errors import UserError
from lama_core.files import atomic_file
from lama_core.scoring.top_answers import TOP_K

if TYPE_CHECKING:
    import pandas as pd

# Rows that are read together: so that one relation of many can be.
ROW_GROUP = 1 << 16
BATCH_ROWS = 1024  # that are in memory at a time where one row is looked for
MAX_ROWS = 20_000_000
# Rank of a right answer that a generated text doesn't contain: no list of answers was ranked.
UNRANKED = (1 << 31) - 1
MAX_BYTES = 4 << 30
TOP_COLUMNS = ("top_words", "top_log_probs")


def _words(width: pa.DataType) -> pa.DataType:
    return pa.dictionary(width, pa.string())


SCHEMA = pa.schema(
    [
        ("fact_id", pa.string()),
        ("relation", _words(pa.int16())),
        ("source", _words(pa.int16())),
        ("type", _words(pa.int16())),
        ("subject", _words(pa.int32())),
        ("object", _words(pa.int32())),
        ("origin", _words(pa.int16())),
        ("prompt", pa.int16()),
        ("query", pa.string()),
        ("excluded", _words(pa.int16())),
        ("rank_raw", pa.int32()),
        ("rank_filtered", pa.int32()),
        ("log_prob", pa.float32()),
        ("first", _words(pa.int32())),
        ("first_log_prob", pa.float32()),
        ("first_filtered", _words(pa.int32())),
        ("first_filtered_log_prob", pa.float32()),
        ("first_is_valid", pa.bool_()),
        ("first_is_object", pa.bool_()),
        ("n_valid", pa.int16()),
        ("object_count", pa.int32()),
        ("subject_tokens", pa.int16()),
        ("subject_pieces", pa.int16()),
        ("top_words", pa.list_(_words(pa.int32()), TOP_K)),
        ("top_log_probs", pa.list_(pa.float32(), TOP_K)),
    ]
)


def make_column(values: Sequence[Any] | None, n_rows: int, kind: pa.DataType) -> pa.Array:
    """A column of a table from plain values; None is null in every row."""
    if values is None:
        return pa.nulls(n_rows, kind)
    if pa.types.is_dictionary(kind):
        return pa.array(values, pa.string()).dictionary_encode().cast(kind)
    return pa.array(values, kind)


def write_facts(table: pa.Table, path: Path) -> None:
    """Write the rows whole, compressed; the same rows always give the same bytes."""
    plain = pa.Table.from_arrays(list(map(_plain, table.columns)), names=table.column_names)
    # The bytes of floats apart by their place pack a sixth smaller; words pack by dictionary.
    floats = {
        field.name: f"{field.name}.list.element" if pa.types.is_nested(field.type) else field.name
        for field in plain.schema
        if pa.types.is_floating(getattr(field.type, "value_type", field.type))
    }
    with atomic_file(path) as part:
        pq.write_table(
            plain,
            part,
            compression="zstd",
            compression_level=9,
            version="2.6",
            row_group_size=ROW_GROUP,
            use_byte_stream_split=list(floats.values()),
            use_dictionary=[name for name in plain.column_names if name not in floats],
            write_page_checksum=True,
        )


def _plain(column: pa.ChunkedArray) -> pa.Array:
    """A column as it would be had it never been in pieces or in a file."""
    kind = column.type
    if pa.types.is_dictionary(kind):  # each word once, in order of appearance
        return column.cast(pa.string()).combine_chunks().dictionary_encode().cast(kind)
    whole = column.combine_chunks()
    if pa.types.is_fixed_size_list(kind):  # a file gives the items another name
        values = whole.values
        if pa.types.is_dictionary(kind.value_type):
            values = values.cast(pa.string()).dictionary_encode().cast(kind.value_type)
        return pa.FixedSizeListArray.from_arrays(values, kind.list_size, mask=whole.is_null())
    if pa.types.is_list(kind):
        return whole.cast(pa.list_(kind.value_type))
    return whole


def write_candidates(words: Mapping[str, Sequence[str]], path: Path) -> None:
    """Write which words were ranked, in their order: of each relation, or all under ""."""
    names = pa.array([name for name, known in words.items() for _ in known], pa.string())
    table = pa.table(
        {
            "relation": names.dictionary_encode(),
            "word": pa.array([word for known in words.values() for word in known], pa.string()),
        }
    )
    with atomic_file(path) as part:
        pq.write_table(
            table, part, compression="zstd", compression_level=9, write_page_checksum=True
        )


def read_candidates(path: Path) -> dict[str, tuple[str, ...]]:
    """The words that `write_candidates` wrote, in their order.

    Raises UserError if the file is missing or damaged.
    """
    table = read_columns(path, ["relation", "word"])
    words: dict[str, list[str]] = {}
    for name, word in zip(table["relation"].to_pylist(), table["word"].to_pylist(), strict=True):
        words.setdefault(name, []).append(word)
    return {name: tuple(known) for name, known in words.items()}


def read_scores(path: Path, row: int) -> NDArray[np.float32] | None:
    """The scores of all answers to the fact of one row, float32 [answer].

    None where they weren't kept. Few rows are in memory at a time.
    Raises UserError if the file is missing or damaged.
    """
    with _reading(path):
        check_size(path)
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            if "scores" not in file.schema_arrow.names:
                return None
            first = 0
            for batch in file.iter_batches(BATCH_ROWS, columns=["scores"]):
                if row < first + batch.num_rows:
                    values = batch.column(0)[row - first].values
                    return None if values is None else np.asarray(values, dtype=np.float32)
                first += batch.num_rows
            raise ValueError(f"there is no row {row:,}")


def read_facts(path: Path) -> "pd.DataFrame":
    """The rows without the ten best and other lists, as a DataFrame.

    Words that repeat are categories; ranks and log-probabilities are floats, NaN where excluded.
    A run that was made before origins were kept has none.
    Raises UserError if the file is missing or damaged.
    """
    table = read_columns(path)
    frame = table.to_pandas(self_destruct=True, split_blocks=True)
    for name in ("first_is_valid", "first_is_object"):
        frame[name] = frame[name].eq(True)
    if "origin" not in frame:
        frame["origin"] = frame["type"].cat.set_categories([])
    return frame


def read_top(path: Path) -> tuple[NDArray[np.object_], NDArray[np.float32]]:
    """The ten best words, object [row, 10], and their log-probabilities, float32 [row, 10].

    Raises UserError if the file is missing or damaged.
    """
    table = read_columns(path, list(TOP_COLUMNS)).combine_chunks()
    n_rows = table.num_rows
    words = np.full((n_rows, TOP_K), None, dtype=object)
    log_probs = np.full((n_rows, TOP_K), np.nan, dtype=np.float32)
    if not n_rows:
        return words, log_probs
    scored = np.asarray(table["top_words"].chunk(0).is_valid())
    flat = table["top_words"].chunk(0).flatten()
    if not isinstance(flat, pa.DictionaryArray):
        flat = flat.dictionary_encode()
    # One Python string a word, not one a cell; None stands at -1, the last.
    known = np.array([*flat.dictionary.to_pylist(), None], dtype=object)
    codes = flat.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    words[scored] = known[codes].reshape(-1, TOP_K)
    values = table["top_log_probs"].chunk(0).flatten().to_numpy(zero_copy_only=False)
    log_probs[scored] = values.reshape(-1, TOP_K)
    return words, log_probs


def check_size(path: Path) -> None:
    """Raise OSError if a table is no plain file, or unpacks to more than a run has.

    A few bytes can state any number of rows.
    """
    status = path.stat()
    if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
        raise OSError("no plain file of a run's size")
    about = pq.read_metadata(path)
    groups = (about.row_group(number) for number in range(about.num_row_groups))
    if about.num_rows > MAX_ROWS or sum(group.total_byte_size for group in groups) > MAX_BYTES:
        raise OSError(f"{about.num_rows:,} rows")


def read_columns(path: Path, names: list[str] | None = None) -> pa.Table:
    """The named columns of a run's rows; without names all that are no lists.

    Raises UserError if the file is missing or damaged.
    """
    with _reading(path):
        check_size(path)
        schema = pq.read_schema(path)
        if names is None:
            names = [field.name for field in schema if not pa.types.is_nested(field.type)]
        for name in names:
            _check_kind(name, schema)
        table = pq.read_table(path, columns=names, page_checksum_verification=True)
        table.validate(full=True)
        return table


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """What goes wrong with a run's file, in a sentence."""
    try:
        yield
    except FileNotFoundError as error:
        raise UserError(
            f"{path}: the run's rows are missing: delete the run and make it again."
        ) from error
    except (pa.ArrowException, OSError, KeyError, ValueError, TypeError) as error:
        said = (str(error).splitlines() or [type(error).__name__])[0]
        raise UserError(
            f"{path}: the run's rows are damaged ({said}): delete the run and make it again."
        ) from error


def _check_kind(name: str, schema: pa.Schema) -> None:
    """Raise TypeError if a column isn't there, or not of the kind that it is written with."""
    at = schema.get_field_index(name)
    if at < 0:
        raise TypeError(f"the column {name} is missing")
    wanted = SCHEMA.field(name).type if name in SCHEMA.names else None
    if wanted is not None and _kind(schema.field(at).type) != _kind(wanted):
        raise TypeError(f"the column {name} is of {schema.field(at).type}")


def _kind(type_: pa.DataType) -> str:
    """What a type holds, whatever its width: text, numbers, truth values, or lists of them."""
    if pa.types.is_dictionary(type_):
        return _kind(type_.value_type)
    if pa.types.is_nested(type_):
        return f"list of {_kind(type_.value_type)}" if pa.types.is_fixed_size_list(type_) else "?"
    if pa.types.is_integer(type_) or pa.types.is_floating(type_):
        return "number"
    return "text" if pa.types.is_string(type_) or pa.types.is_large_string(type_) else str(type_)
