"""The rows of a run as a Parquet table: one row per query, excluded ones with their reason.

    fact_id, relation, source, type     the fact
    subject, object                     spelled as in the data
    origin                              where the fact comes from; null if the data doesn't give it
    prompt                              number of the relation's template or the fact's sentence
    query                               the text that the model was queried with, with [MASK]
    excluded                            the reason why the row doesn't count; null if it counts
    rank_raw, rank_filtered             rank of the gold answer, 1 = best
    log_prob                            log-probability of the gold answer, natural log
    first, first_log_prob               the best of all candidates
    first_filtered, first_filtered_log_prob   the best without the other valid objects
    first_is_valid                      `first` is another valid object of this subject and relation
    first_is_object                     `first` is an object of the relation in the data
    n_valid                             valid objects of this subject and relation in the data
    object_count                        facts of the relation with this object in the data
    subject_tokens, subject_pieces      words of the subject, and its subword tokens by the model's
                                        tokenizer; null if the tokenizer is unknown
    top_words, top_log_probs            the ten best predictions, raw ranking

In an excluded row, the columns from rank_raw to first_is_object and the last two are null. The
columns about `first` are also null if the model gave no answer. log_prob is NaN if the gold answer
was not found.
"""

import os
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
from lama_core.files import MAX_TABLE, atomic_file
from lama_core.scoring.top_answers import TOP_K

if TYPE_CHECKING:
    import pandas as pd

# zstd's level for rows: half as fast at 9, where files are 3 % smaller (`tools.bench rows`).
LEVEL = 5
ROW_GROUP = 1 << 16  # rows that can be loaded without the rest of the file
BATCH_ROWS = 1024  # rows in memory at a time when a single row is read
MAX_ROWS = 20_000_000
# Rank of a right answer that a generated text doesn't contain: no list of answers was ranked.
UNRANKED = (1 << 31) - 1
_SCHEMA_KEY = b"ARROW:schema"


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
    """Make a table column from plain values; None makes a column of nulls."""
    if values is None:
        return pa.nulls(n_rows, kind)
    if pa.types.is_dictionary(kind):
        return pa.array(values, pa.string()).dictionary_encode().cast(kind)
    return pa.array(values, kind)


def write_facts(table: pa.Table, path: Path) -> None:
    """Write the rows atomically and compressed; the same rows always give the same bytes."""
    plain = pa.Table.from_arrays(list(map(_plain, table.columns)), names=table.column_names)
    # Byte stream split makes floats a sixth smaller; words are dictionary-encoded, but not those in
    # lists: Arrow can't read lists of words with several dictionaries.
    floats = {
        field.name: f"{field.name}.list.element" if pa.types.is_nested(field.type) else field.name
        for field in plain.schema
        if pa.types.is_floating(getattr(field.type, "value_type", field.type))
    }
    with (
        atomic_file(path) as part,
        pq.ParquetWriter(
            part,
            plain.schema,
            compression="zstd",
            compression_level=LEVEL,
            version="2.6",
            use_byte_stream_split=list(floats.values()),
            use_dictionary=[name for name in plain.column_names if name not in floats],
            write_page_checksum=True,
        ) as file,
    ):
        for start in range(0, max(1, len(plain)), ROW_GROUP):
            # Arrow writes all words of a column in every row group: keep only those of its rows.
            group = [
                _plain(column) if pa.types.is_dictionary(column.type) else column
                for column in plain.slice(start, ROW_GROUP).columns
            ]
            file.write_table(pa.Table.from_arrays(group, schema=plain.schema))


def _plain(column: pa.ChunkedArray) -> pa.Array:
    """Return a column in a canonical form that doesn't depend on chunks or an earlier file."""
    kind = column.type
    if pa.types.is_dictionary(kind):  # store each word once, in order of appearance
        return column.cast(pa.string()).combine_chunks().dictionary_encode().cast(kind)
    whole = column.combine_chunks()
    if pa.types.is_fixed_size_list(kind):  # reading a file renames the list's items
        values = whole.values
        if pa.types.is_dictionary(kind.value_type):
            values = values.cast(pa.string()).dictionary_encode().cast(kind.value_type)
        return pa.FixedSizeListArray.from_arrays(values, kind.list_size, mask=whole.is_null())
    if pa.types.is_list(kind):
        return whole.cast(pa.list_(kind.value_type))
    return whole


def write_candidates(words: Mapping[str, Sequence[str]], path: Path) -> None:
    """Write the ranked words in their order, by relation, or under "" for one common list."""
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
    """Return the words that `write_candidates` wrote, in their order.

    Raises:
        UserError: If the file is missing or damaged.
    """
    table = read_columns(path, ["relation", "word"])
    relation = table["relation"].combine_chunks().dictionary_encode()
    codes, words = relation.indices.to_numpy(zero_copy_only=False), table["word"].to_numpy()
    names = enumerate(relation.dictionary.to_pylist())
    return {name: tuple(words[codes == code].tolist()) for code, name in names}


def read_scores(path: Path, row: int) -> NDArray[np.float32] | None:
    """Return the scores of all answers to the fact of one row, float32 [answer].

    None if the run doesn't store them. Reads at most BATCH_ROWS rows at a time.

    Raises:
        UserError: If the file is missing or damaged.
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
            raise ValueError(f"row {row:,} is missing")


def read_facts(path: Path) -> "pd.DataFrame":
    """Return the rows as a DataFrame, without the list columns such as the ten best predictions.

    Repeated words are categories; ranks and log-probabilities are floats, NaN where excluded.
    `origin` is empty in runs made before origins were stored.

    Raises:
        UserError: If the file is missing or damaged.
    """
    return to_frame(read_columns(path))


def to_frame(table: pa.Table) -> "pd.DataFrame":
    """Return columns as a DataFrame, as described for `read_facts`."""
    import pandas as pd

    frame = pd.DataFrame({name: to_series(table[name], name) for name in table.column_names})
    if "origin" not in frame and "type" in frame:
        frame["origin"] = frame["type"].cat.set_categories([])
    return frame


def column_names(path: Path) -> list[str]:
    """Return the names of a file's columns, or raise UserError if it is missing or damaged."""
    with _reading(path):
        return list(pq.read_schema(path).names)


def read_column(path: Path, name: str) -> pa.ChunkedArray:
    """Return a column of `read_facts`; `origin` is null in runs made without it.

    Raises:
        UserError: If the file is missing or damaged.
    """
    if name == "origin" and name not in column_names(path):
        n_rows = read_columns(path, ["relation"]).num_rows
        return pa.chunked_array([pa.nulls(n_rows, pa.string()).dictionary_encode()])
    return read_columns(path, [name])[name]


def to_series(column: pa.ChunkedArray, name: str) -> "pd.Series[Any]":
    """Return a column as in `read_facts`."""
    import pandas as pd

    if pa.types.is_dictionary(column.type):
        # Not `to_pandas`, which makes a Python object of each word.
        words = column.combine_chunks()
        kind = pd.CategoricalDtype(pd.Index(pd.array(words.dictionary, "str")))
        codes = words.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return pd.Series(pd.Categorical.from_codes(codes, dtype=kind), name=name)
    if name in ("first_is_valid", "first_is_object"):
        column = column.fill_null(False)
    return pa.table({name: column}).to_pandas(split_blocks=True)[name]


def read_top_codes(path: Path) -> tuple[NDArray[np.int32], NDArray[np.object_]]:
    """Return the ten best words as codes, int32 [row, 10], and the words, object [code].

    The code -1 marks excluded rows, and places after the last prediction; the last word, None, is
    for this code.

    Raises:
        UserError: If the file is missing or damaged.
    """
    column = read_columns(path, ["top_words"])["top_words"].combine_chunks()
    codes = np.full((len(column), TOP_K), -1, dtype=np.int32)
    # One Python string per distinct word, not per cell.
    flat = column.flatten().dictionary_encode()
    values = flat.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    codes[np.asarray(column.is_valid())] = values.reshape(-1, TOP_K)
    return codes, np.array([*flat.dictionary.to_pylist(), None], dtype=object)


def read_top_log_probs(path: Path) -> NDArray[np.float32]:
    """Return the log-probabilities of the ten best words, float32 [row, 10]; NaN where excluded.

    Raises:
        UserError: If the file is missing or damaged.
    """
    column = read_columns(path, ["top_log_probs"])["top_log_probs"].combine_chunks()
    log_probs = np.full((len(column), TOP_K), np.nan, dtype=np.float32)
    values = column.flatten().to_numpy(zero_copy_only=False)
    log_probs[np.asarray(column.is_valid())] = values.reshape(-1, TOP_K)
    return log_probs


def encode_top(words: NDArray[np.object_]) -> tuple[NDArray[np.int32], NDArray[np.object_]]:
    """Return words as `read_top_codes` does; words: object [row, 10]."""
    flat = pa.array(words.ravel(), pa.string()).dictionary_encode()
    codes = flat.indices.fill_null(-1).to_numpy(zero_copy_only=False).reshape(words.shape)
    return codes, np.array([*flat.dictionary.to_pylist(), None], dtype=object)


def check_size(path: Path) -> None:
    """Raise OSError if a table isn't a regular file or would unpack to an implausible size.

    A file of a few bytes can claim any number of rows.
    """
    status = path.stat()
    if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_TABLE:
        raise OSError("not a regular file, or too large")
    check_rows(pq.read_metadata(path))


def check_rows(about: pq.FileMetaData) -> None:
    """Raise OSError if a table has too many rows or would unpack to an implausible size."""
    groups = (about.row_group(number) for number in range(about.num_row_groups))
    if about.num_rows > MAX_ROWS or sum(group.total_byte_size for group in groups) > MAX_TABLE:
        raise OSError(f"{about.num_rows:,} rows, too many for a run")


def read_columns(path: Path, names: list[str] | None = None) -> pa.Table:
    """Return the named columns of a run's rows; by default all columns except lists.

    Repeated words are dictionary-encoded as in the file, but not those in lists.

    Raises:
        UserError: If the file is missing or damaged.
    """
    with _reading(path):
        check_size(path)
        schema = pq.read_schema(path)
        if names is None:
            names = [field.name for field in schema if not pa.types.is_nested(field.type)]
        for name in names:
            _check_kind(name, schema)
        about = _without_schema(path)
        with pq.ParquetFile(path, metadata=about, page_checksum_verification=True) as file:
            table = file.read(columns=names)
        table.validate(full=True)
        columns = [_as_written(table[name], schema.field(name).type) for name in names]
        return pa.table(columns, names)


def _without_schema(path: Path) -> pq.FileMetaData:
    """Return the metadata of a run's file without the Arrow schema that is stored in its footer.

    With that schema, Arrow builds dictionaries while it decodes the pages, which takes four times
    as long as reading plain words and encoding them (twenty times in lists).
    """
    with path.open("rb") as file:
        end = file.seek(-8, os.SEEK_END)
        file.seek(max(0, end - int.from_bytes(file.read(4), "little")))
        footer = file.read().replace(_SCHEMA_KEY, _SCHEMA_KEY.lower(), 1)
    return pq.read_metadata(pa.BufferReader(b"PAR1" + footer))


def _as_written(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Return a column in the type that it was written in; lists remain lists of plain values."""
    if pa.types.is_dictionary(kind):
        return column.combine_chunks().dictionary_encode().cast(kind)
    return column if pa.types.is_nested(kind) else column.cast(kind)


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn errors of reading a run's file into a UserError."""
    try:
        yield
    except FileNotFoundError as error:
        raise UserError(
            f"{path}: the run's rows are missing. Delete the run and make it again."
        ) from error
    except (pa.ArrowException, OSError, KeyError, ValueError, TypeError) as error:
        message = (str(error).splitlines() or [type(error).__name__])[0]
        raise UserError(
            f"{path}: the run's rows are damaged ({message}). Delete the run and make it again."
        ) from error


def _check_kind(name: str, schema: pa.Schema) -> None:
    """Raise TypeError if a column is missing or has a type other than the schema's."""
    at = schema.get_field_index(name)
    if at < 0:
        raise TypeError(f"the column {name} is missing")
    wanted = SCHEMA.field(name).type if name in SCHEMA.names else None
    if wanted is not None and _kind(schema.field(at).type) != _kind(wanted):
        raise TypeError(f"the column {name} has type {schema.field(at).type}")


def _kind(type_: pa.DataType) -> str:
    """Return a type regardless of its width: text, number, boolean, or a list of these."""
    if pa.types.is_dictionary(type_):
        return _kind(type_.value_type)
    if pa.types.is_nested(type_):
        return f"list of {_kind(type_.value_type)}" if pa.types.is_fixed_size_list(type_) else "?"
    if pa.types.is_integer(type_) or pa.types.is_floating(type_):
        return "number"
    return "text" if pa.types.is_string(type_) or pa.types.is_large_string(type_) else str(type_)
