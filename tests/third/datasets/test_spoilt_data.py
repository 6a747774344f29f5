"""Data that is damaged, or made to do harm: read, or refused in a sentence, and nothing else.

Each is read in a process of its own; afterwards everything else must be as it was before.
"""

import bz2
import gzip
import io
import lzma
import os
import shutil
import socket
import subprocess
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from forked import check, forked, look
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from systems import ON_WINDOWS

from lama_core.candidates.lists import read_candidate_file
from lama_core.datasets import load_analogies, load_dataset, load_questions
from lama_core.datasets.library import download, installed
from lama_core.datasets.passages import read_sentences
from lama_core.files import WORK
from lama_core.metrics.word_counts import load_corpus_counts
from lama_core.probes.analogy.vectors import load_vectors
from lama_core.runs.find import bundled_dir, list_runs, load_run
from lama_core.runs.manage import list_kept
from lama_core.runs.tags import read_tags

MB = 1 << 20
RUN = "a-run"
FACTS = b"".join(
    b'{"uuid": "%d", "sub_label": "Land %d", "obj_label": "City", "predicate_id": "P36", '
    b'"evidences": [{"masked_sentence": "The [MASK] of Land ."}]}\n' % (n, n)
    for n in range(40)
)
ROWS = b"".join(b"Land %d,City %d,[X] has [Y] .,P%d\n" % (n, n, n % 3) for n in range(60))
TABLE = b"subject,object,template,relation\n" + ROWS
PAIRS = b"".join(b"cat%d\tcats%d/felines\n" % (n, n) for n in range(50))
LAMA = {
    "relations.jsonl": b'{"relation": "P36", "template": "The capital of [X] is [Y] ."}\n',
    "TREx/P36.jsonl": FACTS,
}
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
    "SAT": {"sat.txt": b"FROM TESTS\na b n:v\nc d n:v\ne f n:v\nb\n" * 3},
    "U2": {"u2.jsonl": b'{"stem": ["a", "b"], "choice": [["c", "d"], ["e", "f"]], "answer": 1}\n'},
    "CSV": {"t.csv": TABLE},
    "TSV": {"t.tsv": TABLE.replace(b",", b"\t")},
    "JSONL": {"t.jsonl": b'{"subject": "A", "object": "B", "sentence": "A [MASK]"}\n' * 20},
}


def take(path: Path) -> None:
    download.import_dataset(path, name="taken")
    kind = installed.read_record("taken").kind
    {"analogies": load_analogies, "questions": load_questions}.get(kind, load_dataset)("taken")


def look_at_home(_: Path) -> None:
    """All lists, which nothing may stop; then each run and dataset by its name."""
    installed.dataset_names(), installed.analogy_names()
    assert "kept" in {row.name for row in installed.listing()}, "a damaged dataset isn't listed"
    assert RUN in {run.name for run in list_kept()}, "a damaged run isn't listed"
    runs = list_runs()
    assert RUN in {run.id for run in runs} or runs.problems, "nothing says what is wrong"
    load_dataset("kept")
    run = load_run(RUN)
    _read = (run.facts, run.top, run.words, run.details, read_tags(run.info))


def read_vectors(path: Path) -> None:
    load_vectors(str(path), ["cat", "dog"])


def read_text(path: Path) -> None:
    for _ in read_sentences(path):
        continue


Read = Callable[[Path], object]


def put(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


class Place:
    """A home with a dataset and a run, as any user's, and a folder `given` for what is read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.given, self.data = folder / "given", folder / "home" / "data"
        shutil.rmtree(folder, ignore_errors=True)
        self.given.mkdir(parents=True)
        put(self.data / "datasets" / "kept", LAMA)
        record = b'{"name":"kept","title":"kept","kind":"facts","n_relations":1,"n_facts":40,'
        record += b'"licence":"-","citation":"","homepage":"","size":null}'
        (self.data / "datasets" / "kept" / "source.json").write_bytes(record)
        ranked = [path.parent for path in bundled_dir().glob("*/candidates.parquet")]
        smallest = min(ranked, key=lambda run: (run / "facts.parquet").stat().st_size)
        self.run = self.data / "runs" / RUN
        shutil.copytree(smallest, self.run)

    def read(self, path: Path, read: Read) -> None:
        """Read what is at a path; nothing is lost, changed, or left half made."""
        before = look(self.folder)

        def act() -> None:
            os.environ["LAMA_HOME"] = str(self.folder / "home")
            read(path)

        check(forked(act), path)
        after = look(self.folder)
        new = {name for name in after if name not in before}
        assert not [name for name in new if WORK in name or name.endswith(".part")]
        library = str(self.data / "datasets") + os.sep
        assert not [name for name in new if not name.startswith(library)]
        assert not [name for name in before if after.get(name) != before[name]]


# Damage

PIECES = (
    b"\0" * 5000, b'"' * 9, b"\n" * 300, b"\r", b"x" * 400_000, b"[" * 200_000, b'{"a":' * 100_000,
    b"\\ud800", b"\xed\xa0\x80\xff\xfe", b"NaN,Infinity,-1e999", "\u202e\u2028\x1b[31m".encode(),
    b"," * 90_000, b"[MASK] [X] [Y] [X]" * 99,
)  # fmt: skip
ENCODINGS = ("utf-16", "utf-32", "utf-7", "utf-8-sig", "utf-8")


@st.composite
def damaged(draw: st.DrawFn, data: bytes) -> bytes:
    for _ in range(draw(st.integers(1, 4))):
        # Shares, not places: an archive's length depends on the time at which it was packed.
        shares = sorted(draw(st.tuples(st.floats(0, 1), st.floats(0, 1))))
        first, last = (int(share * len(data)) for share in shares)
        match draw(st.sampled_from(["flipped", "cut", "out", "twice", "in", "coded", "numbers"])):
            case "flipped":
                flip = draw(st.binary(min_size=1, max_size=8))
                data = data[:first] + flip + data[first + len(flip) :]
            case "cut":
                data = data[:first]
            case "out":
                data = data[:first] + data[last:]
            case "twice":
                data = data[:last] + data[first:]
            case "in":
                piece = draw(st.one_of(st.sampled_from(PIECES), st.binary(max_size=300)))
                data = data[:first] + piece + data[first:]
            case "coded":
                data = data.decode("latin-1").encode(draw(st.sampled_from(ENCODINGS)))
            case "numbers":
                new = draw(st.sampled_from([b"-1", b"1e999", b"null", b"9" * 40]))
                data = data.replace(b"%d" % draw(st.integers(0, 9)), new)
    return data


def bind_socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # a socket's path is short
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(path.name)
    os.chdir(here)


def sparse(path: Path) -> None:
    path.touch()
    os.truncate(path, 100 << 30)


ODD: dict[str, Callable[[Path], object]] = {
    "pipe": lambda path: os.mkfifo(path),
    "socket": bind_socket,
    "sparse": sparse,
    "folder": Path.mkdir,
    "empty": Path.touch,
    "zero": lambda path: path.symlink_to("/dev/zero"),
    "random": lambda path: path.symlink_to("/dev/urandom"),
    "memory": lambda path: path.symlink_to("/proc/self/mem"),
    "kernel": lambda path: path.symlink_to("/proc/kmsg"),
    "nowhere": lambda path: path.symlink_to("/nowhere"),
    "loop": lambda path: path.symlink_to(path.name),
}


def zip_of(files: dict[str, bytes]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, content in files.items():
            opened.writestr(name, content)
    return target.getvalue()


def tar_of(files: dict[str, bytes]) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w", format=tarfile.GNU_FORMAT) as opened:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            opened.addfile(member, io.BytesIO(content))
    return target.getvalue()


PACKERS: dict[str, Callable[[dict[str, bytes]], bytes]] = {
    ".zip": zip_of,
    ".tar": tar_of,
    ".tar.gz": lambda files: gzip.compress(tar_of(files)),
    ".tar.bz2": lambda files: bz2.compress(tar_of(files)),
    ".tar.xz": lambda files: lzma.compress(tar_of(files)),
}
if ON_WINDOWS:  # no such files
    for name in ("pipe", "socket", "memory", "kernel"):
        del ODD[name]


def holds(what: Callable[..., None], **strategies: object) -> None:
    chosen = settings(max_examples=60, suppress_health_check=list(HealthCheck))
    chosen(given(**strategies)(what))()  # type: ignore[arg-type]


def test_a_damaged_file_of_any_format_is_read_or_refused(tmp_path: Path) -> None:
    def claim(kind: str, data: st.DataObject) -> None:
        place, files = Place(tmp_path / "place"), EXAMPLES[kind]
        root = put(place.given / "set", files)
        name = data.draw(st.sampled_from(sorted(files)))
        if odd := data.draw(st.sampled_from([None, None, None, None, *ODD])):
            (root / name).unlink()
            ODD[odd](root / name)
        else:
            (root / name).write_bytes(data.draw(damaged(files[name])))
        read = data.draw(st.sampled_from([take, take, load_dataset, load_analogies]))
        place.read(root if data.draw(st.booleans()) or len(files) > 1 else root / name, read)

    holds(claim, kind=st.sampled_from(sorted(EXAMPLES)), data=st.data())


def test_a_damaged_archive_is_read_or_refused(tmp_path: Path) -> None:
    def claim(kind: str, data: st.DataObject) -> None:
        place, files = Place(tmp_path / "place"), EXAMPLES[kind]
        suffixes = st.sampled_from(sorted(PACKERS))
        suffix = data.draw(suffixes)
        packed = PACKERS[suffix](files)
        for outer in data.draw(st.lists(suffixes, max_size=2)):
            packed, suffix = PACKERS[outer]({f"inner{suffix}": packed, **files}), outer
        packed = data.draw(damaged(packed))
        (place.given / f"set{suffix}").write_bytes(packed)
        place.read(place.given / f"set{suffix}", take)

    holds(claim, kind=st.sampled_from(sorted(EXAMPLES)), data=st.data())


def test_a_damaged_run_or_dataset_is_listed_and_stops_no_other(tmp_path: Path) -> None:
    def claim(data: st.DataObject) -> None:
        place = Place(tmp_path / "place")
        file = data.draw(
            st.sampled_from(sorted(path for path in place.data.rglob("*") if path.is_file()))
        )
        how = data.draw(st.sampled_from(["damaged", "damaged", "gone", *ODD]))
        content = file.read_bytes()
        file.unlink()
        if how == "damaged":
            file.write_bytes(data.draw(damaged(content)))
        elif how != "gone":
            ODD[how](file)
        place.read(place.data, look_at_home)

    holds(claim, data=st.data())


COUNTS = gzip.compress(b"word\tcat\t3\nentity\tlima\t2\n" * 40)
VECTORS = b"2 3\ncat 1 2 3\ndog 0.5 2 -3\n"
FILES: tuple[tuple[str, bytes, Read], ...] = (
    ("words.txt", b"".join(b"word%d\n" % n for n in range(200)), read_candidate_file),
    ("text.txt", b"".join(b"word%d\n" % n for n in range(200)), read_text),
    ("counts.gz", COUNTS, load_corpus_counts),
    ("v.txt", VECTORS, read_vectors),
    ("v.txt.gz", gzip.compress(VECTORS), read_vectors),
    ("v.txt.bz2", bz2.compress(VECTORS), read_vectors),
    ("v.txt.xz", lzma.compress(VECTORS), read_vectors),
)


def test_a_damaged_list_text_or_table_of_vectors_is_read_or_refused(tmp_path: Path) -> None:
    def claim(one: tuple[str, bytes, Read], data: st.DataObject) -> None:
        place, (name, content, read) = Place(tmp_path / "place"), one
        (place.given / name).write_bytes(data.draw(damaged(content)))
        place.read(place.given / name, read)

    holds(claim, one=st.sampled_from(FILES), data=st.data())


@pytest.mark.parametrize("odd", ODD)
def test_what_is_no_plain_file_is_not_waited_for(odd: str, tmp_path: Path) -> None:
    readers: tuple[tuple[str, Read], ...] = (
        ("a.zip", take), ("t.csv", take), ("words.txt", read_candidate_file),
        ("v.txt", read_vectors), ("text.txt", read_text),
    )  # fmt: skip
    place = Place(tmp_path / "place")
    for name, read in readers:
        ODD[odd](place.given / name)
        place.read(place.given / name, read)


def zeros(head: bytes, n_bytes: int) -> bytes:
    """Gzip of so many zeros, after a head."""
    target = io.BytesIO()
    with gzip.GzipFile(fileobj=target, mode="wb", compresslevel=1) as packed:
        packed.write(head)
        for _ in range(n_bytes // MB):
            packed.write(bytes(MB))
    return target.getvalue()


# Name of the file -> how it is read, whether it takes long, what it holds.
HARMFUL: dict[str, tuple[str, Read, Callable[[], bytes]]] = {
    "file as a folder": (
        "a.tar", take, lambda: tar_of(LAMA | {"relations.jsonl/x.txt": b"x"})),
    "xz with a dictionary of 1 GB": (
        "a.tar.xz", take,
        lambda: lzma.compress(
            tar_of(LAMA), filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 20}]
        ).replace(b"\x21\x01\x10", b"\x21\x01\x26"),
    ),
    "one fact 200,000 times": (
        "t.jsonl", take,
        lambda: b'{"sub_label":"A","obj_label":"B","masked_sentence":"x"}\n' * 200_000),
    "150,000 bad lines": (
        "t.csv", take, lambda: b"subject,object\n" + b"x\n" * 150_000),
    "a line without end": ("t.jsonl", take, lambda: b"x" * 80 * MB),
    "a line that nests 30 MB deep": ("t.jsonl", take, lambda: b"[" * 30 * MB),
    "a header of 30 MB": ("t.csv", take, lambda: b'"' + b"s" * 30 * MB + b'",object\n'),
    "a cell over csv's limit": (
        "t.csv", take, lambda: TABLE + b"a," + b"b" * 200_000 + b",c,d\n"),
    "a template of 20 MB": (
        "t.csv", take, lambda: TABLE + b"a,b," + b"[X]" * 7_000_000 + b",d\n"),
    "a relation named as a path": (
        "t.csv", load_dataset, lambda: TABLE + b"a,b,[X] [Y],../../../etc/passwd\n"),
    "counts of 2 GB": ("counts.gz", load_corpus_counts, lambda: zeros(b"", 2 << 30)),
    "vectors without a line's end": ("v.txt.gz", read_vectors, lambda: zeros(b"", 1 << 30)),
}  # fmt: skip


@pytest.mark.parametrize("name", HARMFUL)
def test_what_is_made_to_do_harm_is_bounded(name: str, tmp_path: Path) -> None:
    file, read, content = HARMFUL[name]
    place = Place(tmp_path / "place")
    (place.given / file).write_bytes(content())
    place.read(place.given / file, read)


def deep(root: Path, n_folders: int = 600) -> None:
    """Folders so deep, facts in the last."""
    here = Path.cwd()
    os.chdir(root / "TREx")
    for _ in range(n_folders):
        os.mkdir("d")
        os.chdir("d")
    Path("P1.jsonl").write_bytes(FACTS)
    os.chdir(here)


FOLDERS: dict[str, Callable[[Path], object]] = {
    "600 deep": deep,
    "1,200 deep": lambda root: deep(root, 1200),
    "a loop": lambda root: (root / "TREx" / "loop").symlink_to(root),
    "a bomb inside": lambda root: (root / "a.tgz").write_bytes(
        gzip.compress(tar_of({"a": bytes(99 * MB)}), 1)
    ),
    "a name not UTF-8": lambda root: Path(
        os.fsdecode(os.fsencode(root) + b"/TREx/caf\xe9.jsonl")
    ).write_bytes(FACTS),
}


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_made_to_do_harm_is_bounded(name: str, tmp_path: Path) -> None:
    place = Place(tmp_path / "place")
    root = put(place.given / "set", LAMA)
    FOLDERS[name](root)
    try:
        place.read(root, take)
        place.read(root, load_dataset)
    finally:  # pytest removes no folder that is as deep
        subprocess.run(["rm", "-rf", place.given], check=True)
