"""Malformed data, by seed: files, folders, archives, records, runs and lists of candidates.

A case is a sound example with a few changes, or one of the things that do harm by what they are:
bombs, archives in archives, names that no file should have, pipes and devices in place of files.
Each is read by a process of its own; afterwards everything else must be as it was before.
"""

import bz2
import gzip
import io
import lzma
import os
import random
import resource
import shutil
import socket
import stat
import struct
import tarfile
import time
import traceback
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lama_core.candidates.lists import read_candidate_file
from lama_core.datasets import load_analogies, load_dataset
from lama_core.datasets.corpus import read_sentences
from lama_core.datasets.library import download, installed
from lama_core.errors import UserError
from lama_core.files import WORK
from lama_core.metrics.counts import load_corpus_counts
from lama_core.probes.analogy.vectors import load_vectors
from lama_core.runs.find import bundled_dir, list_runs, load_run
from lama_core.runs.keeping import list_kept
from lama_core.runs.tags import read_tags
from tools.stress.campaign import MAX_BYTES, MAX_SECONDS, Fault, Outcome

MB = 1 << 20
MAX_SAID = 2_000  # characters of what is said to a user
RUN = "a-run"

RELATIONS = b'{"relation": "P36", "template": "The capital of [X] is [Y] .", "type": "1-1"}\n'
FACTS = b"".join(
    b'{"uuid": "%d", "sub_label": "Land %d", "obj_label": "City", "predicate_id": "P36", '
    b'"evidences": [{"masked_sentence": "The [MASK] of Land ."}]}\n' % (n, n)
    for n in range(40)
)
ROWS = b"".join(b"Land %d,City %d,[X] has [Y] .,P%d\n" % (n, n, n % 3) for n in range(60))
TABLE = b"subject,object,template,relation\n" + ROWS
PAIRS = b"".join(b"cat%d\tcats%d/felines\n" % (n, n) for n in range(50))
LAMA = {"relations.jsonl": RELATIONS, "TREx/P36.jsonl": FACTS}
EXAMPLES: dict[str, dict[str, bytes]] = {
    "LAMA": LAMA,
    "LPAQA": {
        "prompt/mine/P36.jsonl": b'{"template": "[X] , [Y] .", "weight": 0.5}\n' * 2,
        "prompt/manual_paraphrase/P36.txt": b"[X] lies in [Y] .\n",
        "TREx_train/P36.jsonl": FACTS,
    },
    "ParaRel": {
        "data/pattern_data/graphs_json/P36.jsonl": b'{"pattern": "[X] has [Y]."}\n',
        "data/trex_lms_vocab/P36.jsonl": FACTS,
    },
    "BEAR": {
        "metadata_relations.json": b'{"P36": {"templates": ["[X] has [Y]."], '
        b'"answer_space_labels": ["City", "New City"], "domains": ["Geographic"]}}',
        "relation_info.json": b'{"P36": {"domains": ["Geographic"]}}',
        "P36.jsonl": FACTS,
    },
    "BATS": {"1_Inflectional_morphology/I01 [noun - plural].txt": PAIRS},
    "Google": {"questions-words.txt": b": capitals\nAthens Greece Lima Peru\n" * 3},
    "CSV": {"t.csv": TABLE},
    "TSV": {"t.tsv": TABLE.replace(b",", b"\t")},
    "JSONL": {"t.jsonl": b'{"subject": "A", "object": "B", "sentence": "A [MASK]"}\n' * 20},
}


@dataclass(frozen=True, slots=True)
class Case:
    """What is read, and how. place: where it lies. read: what a user does with it."""

    kind: str
    place: Path
    read: Callable[[Path], object]


Make = Callable[[random.Random, Path], Case]


def run(n: int, seed: int, folder: Path, tell: Callable[[int], None]) -> Outcome:
    """Read `n` malformed things, each in a process of its own."""
    outcome = Outcome("malformed data")
    start = time.monotonic()
    special = sorted(SPECIAL.items())
    for number in range(n):
        draw = random.Random(f"{seed}:{number}")
        work = folder / f"{number}"
        home, given = work / "home", work / "given"
        given.mkdir(parents=True)
        name, make = special[number] if number < len(special) else draw.choice(CHANGED)
        what = f"{name}, seed {seed}, number {number}"
        os.environ["LAMA_HOME"] = str(home)
        _fill_home(home)
        case = make(draw, given)
        before = _looks(work)
        _throw(case, what, outcome)
        _check_after(case, what, home, before, _looks(work), outcome)
        shutil.rmtree(work)
        tell(number + 1)
    outcome.seconds = time.monotonic() - start
    outcome.figures["things that do harm by what they are"] = f"{min(n, len(special))}"
    return outcome


def _fill_home(home: Path) -> None:
    """A home with a data set and a run, as anybody's."""
    put(home / "data" / "datasets" / "kept", LAMA)
    record = b'{"name":"kept","title":"kept","kind":"facts","n_relations":1,"n_facts":40,'
    record += b'"licence":"-","citation":"","homepage":"","size":null}'
    (home / "data" / "datasets" / "kept" / "source.json").write_bytes(record)
    runs = bundled_dir().glob("*/facts.parquet")
    smallest = min(runs, key=lambda rows: rows.stat().st_size).parent
    shutil.copytree(smallest, home / "data" / "runs" / RUN)


def put(folder: Path, files: dict[str, bytes]) -> Path:
    """Write files into a folder."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def _looks(folder: Path) -> dict[str, tuple[int, int, int]]:
    """Kind, size and time of everything in a folder."""
    found = {}
    for parent, folders, names in os.walk(os.fsencode(folder)):
        for name in (*folders, *names):
            status = os.lstat(os.path.join(parent, name))
            is_folder = stat.S_ISDIR(status.st_mode)
            about = (0, 0) if is_folder else (status.st_size, status.st_mtime_ns)
            found[os.fsdecode(os.path.join(parent, name))] = (status.st_mode, *about)
    return found


def _throw(case: Case, what: str, outcome: Outcome) -> None:
    """Read the case in a child, and note how that ended."""
    reader, writer = os.pipe()
    start = time.monotonic()
    child = os.fork()
    if not child:
        os.close(reader)
        _read_in_child(case, writer)
    os.close(writer)
    hung = False
    while True:
        ended, status, usage = os.wait4(child, os.WNOHANG)
        if ended:
            break
        if not hung and time.monotonic() - start > MAX_SECONDS:
            hung = True
            os.kill(child, 9)
        time.sleep(0.002)
    seconds = time.monotonic() - start
    with os.fdopen(reader, "rb") as pipe:
        ending, _, said = pipe.read().decode("utf-8", "replace").partition("\n")
    peak = usage.ru_maxrss * 1024
    outcome.count("hung" if hung else ending or "died", seconds, peak)
    if hung:
        outcome.faults.append(Fault("hang", what))
    elif ending not in ("answered", "refused"):
        outcome.faults.append(Fault("traceback", what, said[-1500:] or f"status {status}"))
    elif ending == "refused" and ("\n" in said or len(said) > MAX_SAID or not said.strip()):
        outcome.faults.append(Fault("error", what, f"not one sentence: {said[:300]!r}"))
    if peak > MAX_BYTES:
        outcome.faults.append(Fault("memory", what, f"{peak:,} bytes"))


def _read_in_child(case: Case, writer: int) -> None:
    """Read the case, say how it ended, and end the process whatever happens."""
    ending, said = "traceback", ""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        case.read(case.place)
        ending = "answered"
    except UserError as error:
        ending, said = "refused", str(error)
    finally:
        said = traceback.format_exc() if ending == "traceback" else said
        os.write(writer, f"{ending}\n{said[-9_000:]}".encode("utf-8", "backslashreplace"))
        os._exit(0)


def _check_after(
    case: Case,
    what: str,
    home: Path,
    before: dict[str, tuple[int, int, int]],
    after: dict[str, tuple[int, int, int]],
    outcome: Outcome,
) -> None:
    """Note what was lost, changed or left behind."""
    library = str(home / "data" / "datasets") + os.sep
    new = sorted(path for path in after if path not in before)
    if any(WORK in path or path.endswith(".part") for path in new):
        outcome.faults.append(Fault("left behind", what, new[0]))
    outside = [path for path in new if not path.startswith(library)]
    outside += [path for path in before if path in after and before[path] != after[path]]
    if outside:
        outcome.faults.append(Fault("outside", what, outside[0]))
    lost = [path for path in before if path not in after]
    if lost:
        outcome.faults.append(Fault("lost", what, lost[0]))


# How things are read


def take(path: Path) -> object:
    """Import it, then read it from the library."""
    found = download.import_dataset(path, name="taken")
    record = installed.read_record("taken")
    return load_analogies("taken") if record.kind == "analogies" else load_dataset("taken"), found


def read_data(path: Path) -> object:
    """Read it where it is."""
    return load_dataset(path)


def read_pairs(path: Path) -> object:
    """Read it as analogies where it is."""
    return load_analogies(path)


def look_at_home(_path: Path) -> object:
    """All lists, which nothing may stop; then each run and data set by its name."""
    names = (installed.installed_names(), installed.dataset_names(), installed.analogy_names())
    rows, kept, runs = installed.listing(), list_kept(), list_runs()
    if "kept" not in {row.name for row in rows}:
        raise AssertionError("a damaged data set isn't listed")
    if RUN not in {run.name for run in kept}:
        raise AssertionError("a damaged run isn't listed")
    if RUN not in {run.id for run in runs} and not runs.problems:
        raise AssertionError("nothing says what is wrong with the run")
    facts = load_dataset("kept")
    run = load_run(RUN)
    return names, facts, run.facts, run.top, run.words, run.details, read_tags(run.info)


def read_vectors(path: Path) -> object:
    """Read it as word vectors."""
    return load_vectors(str(path), ["cat", "dog"])


def read_text(path: Path) -> object:
    """Read it as a text to mine."""
    return sum(1 for _ in read_sentences(path))


# Changes of what is sound


def changed(draw: random.Random, data: bytes) -> bytes:
    """The bytes with one to four changes."""
    for _ in range(draw.randint(1, 4)):
        data = draw.choice(CHANGES)(draw, data)
    return data


def _somewhere(draw: random.Random, data: bytes) -> int:
    return draw.randrange(len(data) + 1)


def _flip(draw: random.Random, data: bytes) -> bytes:
    flipped = bytearray(data)
    for _ in range(draw.randint(1, 8) if data else 0):
        flipped[draw.randrange(len(data))] = draw.randrange(256)
    return bytes(flipped)


def _cut(draw: random.Random, data: bytes) -> bytes:
    return data[: _somewhere(draw, data)]


def _drop(draw: random.Random, data: bytes) -> bytes:
    first, last = sorted((_somewhere(draw, data), _somewhere(draw, data)))
    return data[:first] + data[last:]


def _twice(draw: random.Random, data: bytes) -> bytes:
    first, last = sorted((_somewhere(draw, data), _somewhere(draw, data)))
    return data[:last] + data[first:]


def _insert(draw: random.Random, data: bytes) -> bytes:
    at = _somewhere(draw, data)
    return data[:at] + draw.choice(PIECES)(draw) + data[at:]


def _recode(draw: random.Random, data: bytes) -> bytes:
    text = data.decode("latin-1")
    return text.encode(draw.choice(("utf-16", "utf-32", "utf-7", "utf-8-sig", "utf-8")))


def _swap_numbers(draw: random.Random, data: bytes) -> bytes:
    return data.replace(
        b"%d" % draw.randrange(10), draw.choice((b"-1", b"1e999", b"null", b"9" * 40))
    )


CHANGES = (_flip, _cut, _drop, _twice, _insert, _insert, _recode, _swap_numbers)
PIECES: tuple[Callable[[random.Random], bytes], ...] = (
    lambda draw: draw.randbytes(draw.randint(1, 300)),
    lambda draw: b"\0" * draw.randint(1, 5_000),
    lambda draw: b'"' * draw.randint(1, 9),
    lambda draw: b"\n" * draw.randint(1, 300),
    lambda draw: b"\r",
    lambda draw: b"x" * draw.randint(100_000, 400_000),
    lambda draw: b"[" * draw.randint(100, 200_000),
    lambda draw: b'{"a":' * draw.randint(100, 100_000),
    lambda draw: b"\\ud800",
    lambda draw: b"\xed\xa0\x80\xff\xfe",
    lambda draw: b"NaN,Infinity,-1e999",
    lambda draw: "\u202e\u2028\x1b[31m".encode(),
    lambda draw: b"," * draw.randint(1, 90_000),
    lambda draw: b"[MASK] [X] [Y] [X]" * draw.randint(1, 99),
)


def changed_folder(draw: random.Random, given: Path) -> Case:
    """A folder of the field, one file of which is changed, or in place of which is another."""
    kind = draw.choice(sorted(EXAMPLES))
    files = dict(EXAMPLES[kind])
    name = draw.choice(sorted(files))
    root = put(given / "set", files)
    if draw.random() < 0.15:
        (root / name).unlink()
        draw.choice(ODD)(root / name)
    else:
        (root / name).write_bytes(changed(draw, files[name]))
    read = draw.choice((take, take, read_data, read_pairs))
    return Case(kind, root if draw.random() < 0.8 or len(files) > 1 else root / name, read)


def changed_archive(draw: random.Random, given: Path) -> Case:
    """An archive whose bytes are changed, before or after packing; at times packed once more."""
    kind = draw.choice(sorted(EXAMPLES))
    files = dict(EXAMPLES[kind])
    if draw.random() < 0.4:
        name = draw.choice(sorted(files))
        files[name] = changed(draw, files[name])
    suffix = draw.choice(sorted(PACKERS))
    data = PACKERS[suffix](files)
    while draw.random() < 0.3:
        outer = draw.choice(sorted(PACKERS))
        data, suffix = PACKERS[outer]({f"inner{suffix}": data, **files}), outer
    if draw.random() < 0.8:
        data = changed(draw, data) if draw.random() < 0.3 else _flip(draw, data)
    (given / f"set{suffix}").write_bytes(data)
    return Case(f"{kind}{suffix}", given / f"set{suffix}", take)


def changed_home(draw: random.Random, given: Path) -> Case:
    """A run or a data set of which a file is changed, gone, or something else."""
    home = given.parent / "home" / "data"
    files = [path for path in sorted(home.rglob("*")) if path.is_file()]
    file = draw.choice(files)
    act = draw.random()
    if act < 0.6:
        file.write_bytes(changed(draw, file.read_bytes()))
    else:
        file.unlink()
        if act < 0.9:
            draw.choice(ODD)(file)
    return Case(file.name, home, look_at_home)


def changed_file(draw: random.Random, given: Path) -> Case:
    """A list of candidates, word vectors, counts or a text."""
    file = given / "file.txt"
    words = b"".join(b"word%d\n" % n for n in range(200))
    if draw.random() < 0.2:
        draw.choice(ODD)(file)
        return Case("odd file", file, draw.choice((read_candidate_file, read_vectors, read_text)))
    if draw.random() < 0.3:
        counts = gzip.compress(b"word\tcat\t3\nentity\tlima\t2\n" * 40)
        file.write_bytes(changed(draw, counts))
        return Case("counts", file, load_corpus_counts)
    if draw.random() < 0.4:
        packer = draw.choice((bytes, gzip.compress, bz2.compress, lzma.compress))
        suffix = {bytes: "", gzip.compress: ".gz", bz2.compress: ".bz2"}.get(packer, ".xz")
        file = given / f"vectors.txt{suffix}"
        vectors = packer(b"2 3\ncat 1 2 3\ndog 0.5 2 -3\n")
        file.write_bytes(changed(draw, vectors) if draw.random() < 0.5 else _flip(draw, vectors))
        return Case("vectors", file, read_vectors)
    file.write_bytes(changed(draw, words))
    return Case("text", file, draw.choice((read_candidate_file, read_text)))


CHANGED: list[tuple[str, Make]] = [
    ("changed folder", changed_folder),
    ("changed folder", changed_folder),
    ("changed archive", changed_archive),
    ("changed archive", changed_archive),
    ("changed home", changed_home),
    ("changed file", changed_file),
]


# What stands in place of a file


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # a socket's path is short
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(path.name)
    os.chdir(here)


def _sparse(path: Path) -> None:
    path.touch()
    os.truncate(path, 100 << 30)


def _link(target: str) -> Callable[[Path], None]:
    return lambda path: path.symlink_to(target)


ODD: tuple[Callable[[Path], None], ...] = (
    _pipe,
    _socket,
    _sparse,
    lambda path: path.mkdir(),
    lambda path: path.touch(),
    _link("/dev/zero"),
    _link("/dev/urandom"),
    _link("/proc/self/mem"),
    _link("/proc/kmsg"),
    _link("/nowhere"),
    lambda path: path.symlink_to(path.name),
)


# Archives


def zip_of(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip file of files by name."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", method) as opened:
        for name, content in files.items():
            opened.writestr(name, content)
    return target.getvalue()


def tar_of(members: list[tuple[tarfile.TarInfo, bytes]]) -> bytes:
    """A tar file of members."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w", format=tarfile.GNU_FORMAT) as opened:
        for member, content in members:
            member.size = len(content)
            opened.addfile(member, io.BytesIO(content))
    return target.getvalue()


def _tar_of_files(files: dict[str, bytes]) -> bytes:
    return tar_of([(tarfile.TarInfo(name), content) for name, content in files.items()])


PACKERS: dict[str, Callable[[dict[str, bytes]], bytes]] = {
    ".zip": zip_of,
    ".tar": _tar_of_files,
    ".tar.gz": lambda files: gzip.compress(_tar_of_files(files)),
    ".tar.bz2": lambda files: bz2.compress(_tar_of_files(files)),
    ".tar.xz": lambda files: lzma.compress(_tar_of_files(files)),
}


def _archive(name: str, make: Callable[[], bytes]) -> Make:
    def made(_draw: random.Random, given: Path) -> Case:
        (given / name).write_bytes(make())
        return Case(name, given / name, take)

    return made


def _with_lama(**more: bytes) -> dict[str, bytes]:
    return {**LAMA, **more}


def _nested(depth: int) -> bytes:
    data = zip_of(LAMA)
    for level in range(depth):
        data = zip_of({f"level{level}.zip": data, **LAMA})
    return data


def _many_bombs() -> bytes:
    bomb = zip_of({"a.txt": bytes(40 * MB)})
    return zip_of({f"{n}/b.zip": bomb for n in range(200)} | LAMA, zipfile.ZIP_STORED)


def _patched(old: bytes, new: bytes) -> bytes:
    return zip_of(LAMA).replace(old, new)


def _method(number: int) -> bytes:
    """A zip that states a method of compression: in its directory and before each file."""
    data = bytearray(zip_of(LAMA))
    for magic, offset in ((b"PK\3\4", 8), (b"PK\1\2", 10)):
        at = data.find(magic)
        while at >= 0:
            data[at + offset : at + offset + 2] = struct.pack("<H", number)
            at = data.find(magic, at + 4)
    return bytes(data)


def _typed(kind: bytes, target: str = "/etc/passwd") -> bytes:
    member = tarfile.TarInfo("TREx/P36.jsonl")
    member.type, member.linkname = kind, target
    return _tar_of_files(LAMA)[: -10 * 1024] + tar_of([(member, b"")])


def _long_name(n_bytes: int) -> bytes:
    """A tar whose first header says that a name of so many bytes follows, as many as there are."""
    header = tarfile.TarInfo("././@LongLink")
    header.type, header.size = tarfile.GNUTYPE_LONGNAME, n_bytes
    return header.tobuf(tarfile.GNU_FORMAT)


def _chain_of_names() -> bytes:
    return (_long_name(512) + b"a" * 512) * 3_000


def _gzip_of_zeros(head: bytes, n_bytes: int) -> bytes:
    target = io.BytesIO()
    with gzip.GzipFile(fileobj=target, mode="wb", compresslevel=1) as packed:
        packed.write(head)
        for _ in range(n_bytes // MB):
            packed.write(bytes(MB))
    return target.getvalue()


def _named(name: str | bytes) -> bytes:
    shown = os.fsdecode(name) if isinstance(name, bytes) else name
    return _tar_of_files({**LAMA, shown: b"x"})


def _zip_named(name: bytes) -> bytes:
    return zip_of(_with_lama(**{"N" * len(name): b"x"})).replace(b"N" * len(name), name)


def _bad_flag() -> bytes:
    data = bytearray(_zip_named(b"\xff\xfe\xfd"))
    at = data.rfind(b"PK\1\2")
    data[at + 9] |= 0x08  # the name is said to be UTF-8
    return bytes(data)


def _in_folder(write: Callable[[Path], object], read: Callable[[Path], object] = take) -> Make:
    def made(_draw: random.Random, given: Path) -> Case:
        root = put(given / "set", LAMA)
        write(root)
        return Case("folder", root, read)

    return made


def _deep_folder(root: Path) -> None:
    here = Path.cwd()
    os.chdir(root / "TREx")
    for _ in range(600):
        os.mkdir("d")
        os.chdir("d")
    Path("P1.jsonl").write_bytes(FACTS)
    os.chdir(here)


def _file(name: str, content: Callable[[], bytes], read: Callable[[Path], object] = take) -> Make:
    def made(_draw: random.Random, given: Path) -> Case:
        (given / name).write_bytes(content())
        return Case(name, given / name, read)

    return made


def _odd(number: int, read: Callable[[Path], object], name: str) -> Make:
    def made(_draw: random.Random, given: Path) -> Case:
        ODD[number](given / name)
        return Case(name, given / name, read)

    return made


def _damaged_table(write: Callable[[Path], object]) -> Make:
    def made(_draw: random.Random, given: Path) -> Case:
        home = given.parent / "home" / "data"
        write(home / "runs" / RUN)
        return Case("run", home, look_at_home)

    return made


def _rows_bomb(run: Path) -> None:
    """A table of a few kilobytes that states thirty million rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    column = pa.nulls(3_000_000, pa.string())
    schema = pa.schema([("fact_id", pa.string())])
    with pq.ParquetWriter(run / "facts.parquet", schema) as writer:
        for _ in range(10):
            writer.write_table(pa.table({"fact_id": column}))


def _other_columns(run: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(
        pa.table({"fact_id": [1, 2], "first_is_valid": ["a", "b"]}), run / "facts.parquet"
    )


def _text_of(run: Path, name: str, text: str) -> None:
    (run / name).write_text(text)


SPECIAL: dict[str, Make] = {
    "zip bomb": _archive("a.zip", lambda: zip_of({"a.txt": bytes(200 * MB), **LAMA})),
    "zip bomb, bzip2": _archive("a.zip", lambda: zip_of({"a": bytes(200 * MB)}, zipfile.ZIP_BZIP2)),
    "zip bomb, lzma": _archive("a.zip", lambda: zip_of({"a": bytes(200 * MB)}, zipfile.ZIP_LZMA)),
    "zip that lies of its size": _archive(
        "a.zip",
        lambda: zip_of({"a.txt": bytes(99 * MB)}).replace(struct.pack("<L", 99 * MB), b"\1\0\0\0"),
    ),
    "tar bomb": _archive(
        "a.tar.gz", lambda: gzip.compress(_tar_of_files({"a": bytes(200 * MB)}), 1)
    ),
    "two hundred bombs in one": _archive("a.zip", _many_bombs),
    "nested twice": _archive("a.zip", lambda: _nested(2)),
    "nested ten times": _archive("a.zip", lambda: _nested(10)),
    "zip of 60,000 files": _archive(
        "a.zip", lambda: zip_of({f"{n}.txt": b"" for n in range(60_000)})
    ),
    "tar of 60,000 files": _archive(
        "a.tar.gz", lambda: gzip.compress(_tar_of_files({f"{n}": b"" for n in range(60_000)}), 1)
    ),
    "encrypted": _archive(
        "a.zip", lambda: _patched(b"PK\1\2\x14\3\x14\0\0\0", b"PK\1\2\x14\3\x14\0\1\0")
    ),
    **{
        f"zip of method {number}": _archive("a.zip", lambda number=number: _method(number))  # type: ignore[misc]
        for number in (1, 6, 9, 12, 14, 93, 95, 99, 65_535)
    },
    **{
        f"tar member of type {kind!r}": _archive("a.tar", lambda kind=kind: _typed(kind))  # type: ignore[misc]
        for kind in (b"1", b"2", b"3", b"4", b"6", b"7", b"S", b"x", b"g", b"V", b"\xff")
    },
    "tar name of 4 GB": _archive("a.tar", lambda: _long_name(4 << 30)),
    "tar name of 4 GB of zeros": _archive(
        "a.tar.gz", lambda: _gzip_of_zeros(_long_name(1 << 30), 1 << 30)
    ),
    "tar names of names": _archive("a.tar", _chain_of_names),
    "tar name out of the folder": _archive("a.tar", lambda: _named("../../out.txt")),
    "tar name of 300 bytes": _archive("a.tar", lambda: _named("n" * 300)),
    "tar name not UTF-8": _archive("a.tar", lambda: _named(b"caf\xe9.txt")),
    "tar 500 deep": _archive("a.tar", lambda: _named("d/" * 500 + "x.txt")),
    "tar file as a folder": _archive("a.tar", lambda: _named("relations.jsonl/x.txt")),
    "tar without a name": _archive("a.tar", lambda: _named("")),
    "zip name out of the folder": _archive("a.zip", lambda: zip_of({**LAMA, "../out": b"x"})),
    "zip name of 300 bytes": _archive("a.zip", lambda: zip_of({**LAMA, "n" * 300: b"x"})),
    "zip name not text": _archive("a.zip", lambda: _zip_named(b"\xff\xfe\xfd")),
    "zip name said to be UTF-8": _archive("a.zip", _bad_flag),
    "zip name with zero bytes": _archive("a.zip", lambda: _zip_named(b"a\0b")),
    "zip 500 deep": _archive("a.zip", lambda: zip_of({**LAMA, "d/" * 500 + "x.txt": b"x"})),
    "zip of nothing": _archive("a.zip", lambda: zip_of({})),
    "an empty zip": _archive("a.zip", lambda: b""),
    "a text called zip": _archive("a.zip", lambda: TABLE),
    "a zip called tar": _archive("a.tar.gz", lambda: zip_of(LAMA)),
    "xz with a dictionary of 1 GB": _archive(
        "a.tar.xz",
        lambda: lzma.compress(
            _tar_of_files(LAMA), filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 20}]
        ).replace(b"\x21\x01\x10", b"\x21\x01\x26"),
    ),
    "folder 600 deep": _in_folder(_deep_folder),
    "folder 600 deep, read": _in_folder(_deep_folder, read_data),
    "folder with a name not UTF-8": _in_folder(
        lambda root: Path(os.fsdecode(os.fsencode(root) + b"/TREx/caf\xe9.jsonl")).write_bytes(
            FACTS
        )
    ),
    "folder that holds a zip bomb": _in_folder(
        lambda root: (root / "a.tgz").write_bytes(
            gzip.compress(_tar_of_files({"a": bytes(99 * MB)}))
        )
    ),
    "folder with a loop": _in_folder(lambda root: (root / "TREx" / "loop").symlink_to(root)),
    "the same fact 200,000 times": _file(
        "t.jsonl", lambda: b'{"sub_label":"A","obj_label":"B","masked_sentence":"x"}\n' * 200_000
    ),
    "LAMA with one fact 200,000 times": _in_folder(
        lambda root: (root / "TREx" / "P36.jsonl").write_bytes(
            b'{"sub_label": "A", "obj_label": "B"}\n' * 200_000
        ),
        read_data,
    ),
    "a million bad lines": _file("t.csv", lambda: b"subject,object\n" + b"x\n" * 1_000_000),
    "lines without end": _file("t.jsonl", lambda: b"x" * 300 * MB),
    "a line that nests 30 MB deep": _file("t.jsonl", lambda: b"[" * 30 * MB),
    "a header of 30 MB": _file("t.csv", lambda: b'"' + b"s" * 30 * MB + b'",object\n'),
    "a cell over csv's limit": _file("t.csv", lambda: TABLE + b"a," + b"b" * 200_000 + b",c,d\n"),
    "a template of 20 MB": _file("t.csv", lambda: TABLE + b"a,b," + b"[X]" * 7_000_000 + b",d\n"),
    "a relation named as a path": _file(
        "t.csv", lambda: TABLE + b"a,b,[X] [Y],../../../etc/passwd\n", read_data
    ),
    "run.json nested deep": _damaged_table(lambda run: _text_of(run, "run.json", "[" * 200_000)),
    "run.json of other types": _damaged_table(
        lambda run: _text_of(
            run,
            "run.json",
            (run / "run.json").read_text().replace('"made": "', '"made": 5, "x": "'),
        )
    ),
    "rows that are a bomb": _damaged_table(_rows_bomb),
    "rows of other columns": _damaged_table(_other_columns),
    "tags nested deep": _damaged_table(lambda run: _text_of(run, "tags.json", "[" * 200_000)),
    "tags of numbers": _damaged_table(
        lambda run: _text_of(
            run, "tags.json", '{"rows": [{"fact_id": 1, "prompt": 1e999, "tags": 3}]}'
        )
    ),
    "candidates without a column": _damaged_table(
        lambda run: shutil.copyfile(run / "facts.parquet", run / "candidates.parquet")
    ),
    "counts that are a bomb": _file(
        "counts.gz", lambda: _gzip_of_zeros(b"", 2 << 30), load_corpus_counts
    ),
    "vectors without a line end": _file(
        "v.txt.gz", lambda: _gzip_of_zeros(b"", 1 << 30), read_vectors
    ),
    **{
        f"odd {number} as {name}": _odd(number, read, name)
        for number in range(len(ODD))
        for name, read in (
            ("a.zip", take),
            ("t.csv", take),
            ("words.txt", read_candidate_file),
            ("v.txt", read_vectors),
        )
    },
}
