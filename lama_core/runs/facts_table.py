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

import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
# Columns that differ in almost every row: as categories, pandas compares all their words.
TEXTS = ("subject",)
ROW_GROUP = 1 << 16  # rows that can be loaded without the rest of the file
BATCH_ROWS = 1024  # rows in memory at a time when a single row is read
MAX_ROWS = 20_000_000
# Rank of a right answer that is only known not to be among the first: a generated text or a list of
# predictions doesn't contain it, or a tool says that the answer is wrong.
UNRANKED = (1 << 31) - 1
# A column of imported runs: the largest k for which it is known whether the rank is at most k; null
# if the rank is known.
KNOWN_TO = "known_to"
RANKED = UNRANKED  # the value of `Run.known_to` in rows whose rank is known
# The columns that are null in an excluded row; in DataFrames the last two are then False.
FIRSTS = ("first", "first_log_prob", "first_filtered", "first_filtered_log_prob")
FLAGS = ("first_is_valid", "first_is_object")
ANSWERED = ("rank_raw", "rank_filtered", "log_prob", *FIRSTS, *FLAGS)


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


def make_facts_table(
    columns: Mapping[str, Sequence[Any] | pa.Array | None],
    n_rows: int,
    schema: pa.Schema = SCHEMA,
) -> pa.Table:
    """Return a table with the schema's columns; one that isn't given has nulls."""
    arrays = [make_column(columns.get(field.name), n_rows, field.type) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def make_column(
    values: Sequence[Any] | pa.Array | None, n_rows: int, kind: pa.DataType
) -> pa.Array:
    """Return a column of the type `kind`; None makes a column of nulls."""
    if values is None:
        return pa.nulls(n_rows, kind)
    if isinstance(values, pa.Array):
        return values.cast(kind)
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
    return whole.cast(pa.list_(kind.value_type)) if pa.types.is_list(kind) else whole


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
    return {name: tuple(words.to_pylist()) for name, words in read_word_lists(path).items()}


def read_word_lists(path: Path) -> dict[str, pa.Array]:
    """Return the words that `write_candidates` wrote, in their order, as Arrow's texts.

    Raises:
        UserError: If the file is missing or damaged.
    """
    table = read_columns(path, ["relation", "word"])
    relation, words = whole(table["relation"]).dictionary_encode(), whole(table["word"])
    codes = relation.indices.to_numpy(zero_copy_only=False)
    names = enumerate(relation.dictionary.to_pylist())
    return {name: words.filter(pa.array(codes == code)) for code, name in names}


def read_scores(path: Path, row: int) -> NDArray[np.float32] | None:
    """Return the scores of all answers to the fact of one row, float32 [answer].

    None if the run doesn't store them. Reads at most BATCH_ROWS rows at a time.

    Raises:
        UserError: If the file is missing or damaged.
    """
    if "scores" not in column_names(path):
        return None
    first = 0
    for batch in read_batches(path, ["scores"], BATCH_ROWS):
        if row < first + batch.num_rows:
            values = batch.column(0)[row - first].values
            return None if values is None else np.asarray(values, dtype=np.float32)
        first += batch.num_rows
    with _reading(path):
        raise ValueError(f"row {row:,} is missing")


def column_names(path: Path, *, lists: bool = True) -> list[str]:
    """Return the names of a file's columns, or raise UserError if it is missing or damaged."""
    with _reading(path):
        fields = pq.read_schema(path)
        return [one.name for one in fields if lists or not pa.types.is_nested(one.type)]


def to_series(column: pa.ChunkedArray, name: str) -> "pd.Series[Any]":
    """Return a column as in `Run.facts`."""
    import pandas as pd

    if pa.types.is_dictionary(column.type):
        # Not `to_pandas`, which makes a Python object of each word.
        words = whole(column)
        if name in TEXTS:
            return pd.Series(pd.array(words.dictionary_decode(), "str"), name=name)
        kind = pd.CategoricalDtype(pd.Index(pd.array(words.dictionary, "str")))
        codes = words.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return pd.Series(pd.Categorical.from_codes(codes, dtype=kind), name=name)
    if name in FLAGS:
        column = column.fill_null(False)
    return column.to_pandas().rename(name)


def whole(column: pa.ChunkedArray) -> pa.Array:
    """Return a column in one piece; copies it only if it has several."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def read_top_words(path: Path) -> tuple[NDArray[np.int32], pa.Array]:
    """Return the ten best words of a file as `encode_top` does.

    Raises:
        UserError: If the file is missing or damaged.
    """
    codes, words = encode_top(
        batch.column(0) for batch in read_batches(path, ["top_words"], full=False)
    )
    with _reading(path):
        words.validate(full=True)  # each word once, not in every list
    return codes, words


def read_top_log_probs(path: Path) -> NDArray[np.float32]:
    """Return the log-probabilities of the ten best words, float32 [row, 10]; NaN where excluded.

    Raises:
        UserError: If the file is missing or damaged.
    """
    batches = read_batches(path, ["top_log_probs"])
    return np.concatenate([place_top(batch.column(0)) for batch in batches])


def encode_top(parts: Iterable[pa.Array]) -> tuple[NDArray[np.int32], pa.Array]:
    """Return lists of ten words as codes, int32 [row, 10], and the words, texts [code].

    The code -1 marks excluded rows, and places after the last prediction.
    """
    encoded, valid = [], []
    for part in parts:
        encoded.append(part.flatten().dictionary_encode())
        valid.append(np.asarray(part.is_valid()))
    unified = pa.chunked_array(encoded, _words(pa.int32())).unify_dictionaries()
    is_valid = np.concatenate([np.zeros(0, bool), *valid])
    codes = np.full((len(is_valid), TOP_K), -1, np.int32)
    filled = [chunk.indices.fill_null(-1).to_numpy() for chunk in unified.chunks]
    codes[is_valid] = np.concatenate([codes[:0].ravel(), *filled]).reshape(-1, TOP_K)
    return codes, whole(unified).dictionary


def known_words(words: pa.Array) -> NDArray[np.object_]:
    """Return the words of `encode_top`, object [code]; None, the last one, is for the code -1."""
    return np.array([*words.to_pylist(), None], dtype=object)


def place_top(lists: pa.Array) -> NDArray[np.float32]:
    """Return lists of ten numbers as rows, float32 [row, 10]; NaN in the rows of null lists."""
    rows = np.full((len(lists), TOP_K), np.nan, dtype=np.float32)
    values = lists.flatten().to_numpy(zero_copy_only=False)
    rows[np.asarray(lists.is_valid())] = values.reshape(-1, TOP_K)
    return rows


def check_size(path: Path) -> pq.FileMetaData:
    """Return a table's metadata after checking its size; a few bytes can claim any number of rows.

    Raises:
        OSError: If it isn't a regular file or would unpack to an implausible size.
    """
    status = path.stat()
    if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_TABLE:
        raise OSError("not a regular file, or too large")
    about = pq.read_metadata(path)
    check_rows(about)
    return about


def check_rows(about: pq.FileMetaData) -> None:
    """Raise OSError if a table has too many rows or would unpack to an implausible size."""
    groups = (about.row_group(number) for number in range(about.num_row_groups))
    if about.num_rows > MAX_ROWS or sum(group.total_byte_size for group in groups) > MAX_TABLE:
        raise OSError(f"{about.num_rows:,} rows, too many for a run")


def read_columns(path: Path, names: Sequence[str] | None = None) -> pa.Table:
    """Return the named columns of a run's rows; by default all columns except lists.

    Repeated words are dictionary-encoded as in the file, but not those in lists. `origin` is null
    if the file was written without it.

    Raises:
        UserError: If the file is missing or damaged.
    """
    with _opened(path, names) as (file, present):
        table = file.read(columns=present).unify_dictionaries()
        columns = dict(zip(table.column_names, table.columns, strict=True))
        for name, column in columns.items():
            has_words = pa.types.is_dictionary(column.type)
            columns[name] = pa.chunked_array([whole(column)]) if has_words else column
            columns[name].validate(full=True)  # of words in one piece, which has all words
        for name in set(names or ()) - columns.keys():
            nulls = pa.nulls(file.metadata.num_rows, pa.string()).dictionary_encode()
            columns[name] = pa.chunked_array([nulls])
        return pa.table({name: columns[name] for name in names or present})


def read_batches(
    path: Path, names: Sequence[str], n_rows: int = ROW_GROUP, *, full: bool = True
) -> Iterator[pa.RecordBatch]:
    """Yield the named columns of a run's rows in order, at most `n_rows` rows at a time.

    full: whether every value is checked; else the caller does it.

    Raises:
        UserError: If the file is missing or damaged.
    """
    with _opened(path, names) as (file, present):
        for batch in file.iter_batches(n_rows, columns=present):
            batch.validate(full=full)
            yield batch


@contextmanager
def _opened(path: Path, names: Sequence[str] | None) -> Iterator[tuple[pq.ParquetFile, list[str]]]:
    """Yield a run's file, and the names of the columns to read; see `read_columns`."""
    with _reading(path):
        stored = check_size(path)
        schema = stored.schema.to_arrow_schema()
        if names is None:
            names = [field.name for field in schema if not pa.types.is_nested(field.type)]
        if unknown := [name for name in names if name not in {*SCHEMA.names, *schema.names}]:
            raise LookupError(f"no run has a column {unknown[0]!r}")  # the caller's mistake
        present = [name for name in names if name != "origin" or name in schema.names]
        for name in present:
            at = schema.get_field_index(name)
            if at < 0:
                raise TypeError(f"the column {name} is missing")
            wanted = SCHEMA.field(name).type if name in SCHEMA.names else None
            if wanted is not None and _kind(schema.field(at).type) != _kind(wanted):
                raise TypeError(f"the column {name} has type {schema.field(at).type}")
        if any(_has_words(schema.field(name).type) for name in present):
            # Arrow takes ten times as long to read lists of words as to read lists of texts.
            lists = pa.list_(pa.string())
            texts = [
                (field.name, lists if _has_words(field.type) else field.type) for field in schema
            ]
            buffer = pa.BufferOutputStream()
            pq.write_metadata(pa.schema(texts), buffer, store_schema=False)
            found = pq.read_metadata(pa.BufferReader(buffer.getvalue()))
            found.append_row_groups(stored)
            stored = found
        with pq.ParquetFile(path, metadata=stored, page_checksum_verification=True) as file:
            yield file, present


def _has_words(kind: pa.DataType) -> bool:
    """Whether a type is a list of dictionary-encoded words."""
    return pa.types.is_nested(kind) and pa.types.is_dictionary(getattr(kind, "value_type", kind))


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


def _kind(type_: pa.DataType) -> str:
    """Return a type regardless of its width: text, number, boolean, or a list of these."""
    if pa.types.is_dictionary(type_):
        return _kind(type_.value_type)
    if pa.types.is_nested(type_):
        return f"list of {_kind(type_.value_type)}" if pa.types.is_fixed_size_list(type_) else "?"
    if pa.types.is_integer(type_) or pa.types.is_floating(type_):
        return "number"
    return "text" if pa.types.is_string(type_) or pa.types.is_large_string(type_) else str(type_)
