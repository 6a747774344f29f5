"""`models convert`: a release in an old format as a folder of safetensors, whole or not at all."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lama_core.errors import UserError
from lama_core.files import work_folder
from lama_core.models.conversion import elmo, ernie, fconv, transformer_xl
from lama_core.models.model_folder import check_contents, check_files
from lama_core.progress import OnProgress, Progress, silent


@dataclass(frozen=True, slots=True)
class Release:
    """An old format. title: for people. files: what a release consists of.

    is_one: whether a folder holds it. convert: (folder, out), writes the model folder.
    """

    title: str
    files: str
    is_one: Callable[[Path], bool]
    convert: Callable[[Path, Path], None]


# A release in another old format is a file beside this one and a row here.
RELEASES = (
    Release("ELMo", elmo.FILES, elmo.is_elmo, elmo.convert_elmo),
    Release(
        "ERNIE (Tsinghua)",
        "ernie_config.json, pytorch_model.bin and vocab.txt",
        ernie.is_ernie,
        ernie.convert_ernie,
    ),
    Release(
        "fairseq's fconv_lm", "dict.txt and a checkpoint *.pt", fconv.is_fconv, fconv.convert_fconv
    ),
    Release(
        "Transformer-XL",
        "config.json, vocab.json or vocab.bin, and pytorch_model.bin or model.safetensors",
        transformer_xl.is_transformer_xl,
        transformer_xl.convert_transformer_xl,
    ),
)


def convert(folder: Path, out: Path, on_progress: OnProgress = silent) -> Release:
    """Write a release as a model folder to `out`, which mustn't be there yet; which it is.

    Raises UserError if it is in no known format, isn't whole, or `out` can't be written: nothing
    is there then.
    """
    if out.exists():
        raise UserError(f"{out} is there already: give another folder with --out.")
    try:
        with work_folder(out.absolute().parent) as work:
            release = convert_into(folder, work / "model", on_progress)
            (work / "model").rename(out)
    except OSError as error:
        raise UserError(f"{out} can't be written: {error.strerror or error}.") from error
    return release


def convert_into(folder: Path, made: Path, on_progress: OnProgress = silent) -> Release:
    """Write a release as a model folder to the new folder `made`; which it is.

    Raises UserError if it is in no known format or isn't whole, OSError if `made` can't be written:
    what is there then is half-made.
    """
    if not folder.is_dir():
        raise UserError(f"There is no folder {str(folder)!r}.")
    check_files(folder)
    release = next((one for one in RELEASES if one.is_one(folder)), None)
    if release is None:
        known = "; ".join(f"{one.title} ({one.files})" for one in RELEASES)
        raise UserError(f"{folder} holds no release that can be converted: {known}.")
    on_progress(Progress(f"Converting {release.title}"))
    made.mkdir()
    release.convert(folder, made)
    try:
        check_contents(made)
    except UserError as error:
        said = str(error).replace(str(made), str(folder))
        raise UserError(f"{folder} makes no whole model: {said}") from error
    return release
