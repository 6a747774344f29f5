"""Malformed model folders: each is added, loaded and asked as a user's would be.

A folder is drawn by seed and number from the embedded model or a tiny one of another family, and
spoilt in one to three ways. Each is tried in a process of its own, forked from one that has the
libraries already. What must not happen: a traceback, a hang, memory over the bound, a refusal of
several lines, or code of the folder's that runs: its pickles would leave a mark.
"""

import json
import os
import shutil
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from itertools import count
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from lama_core.paths import ASSETS
from tools.stress.campaign import MAX_BYTES, MAX_SECONDS, Fault, Outcome

EMBEDDED = "minilm-mlm"
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
WORDS = ("the", "is", "in", "of", "capital", "city", "Tokyo", "Paris", "Oslo", "Japan", "France")
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
MAX_REFUSAL = 700
POLL_SECONDS = 0.02
VALUES: tuple[Any, ...] = (
    -1, 0, 1, 7, 2**31, 2**40, 10**30, -(2**63), 0.5, float("nan"), True, None, "", "x" * 300,
    "../../etc/passwd", "\ud800", [], {}, [[0]], {"x": 1},
)  # fmt: skip


class Ending(NamedTuple):
    """How one folder's trial ended. peak: bytes of resident memory."""

    how: str
    said: str
    seconds: float
    peak: int


def run(n: int, seed: int, folder: Path, tell: Callable[[int], None]) -> Outcome:
    """A `Campaign` of malformed model folders, no two of them spoilt alike."""
    started = time.monotonic()
    outcome = Outcome("model folders")
    families = make_families(folder / "families")
    mark = folder / "was-run"
    case = folder / "case"
    thrown: set[str] = set()
    for number in count():
        if outcome.n == n:
            break
        drawn, given = draw_folder(families, case, Random(f"{seed}-{number}"), mark)
        if given in thrown or given.endswith("nothing"):
            shutil.rmtree(case)
            continue
        thrown.add(given)
        ending = _try(drawn, folder / "home")
        outcome.count(ending.how, ending.seconds, ending.peak)
        given = f"seed {seed}, number {number}: {given}"
        if ending.how in ("traceback", "hang", "error"):
            outcome.faults.append(Fault(ending.how, given, ending.said))
        if ending.peak > MAX_BYTES:
            outcome.faults.append(Fault("memory", given, f"{ending.peak:,} bytes"))
        if mark.exists():
            outcome.faults.append(Fault("outside", given, "the folder's code was run"))
            mark.unlink()
        shutil.rmtree(case)
        shutil.rmtree(folder / "home", ignore_errors=True)
        tell(outcome.n)
    outcome.seconds = time.monotonic() - started
    return outcome


# Families


def make_families(folder: Path) -> tuple[Path, ...]:
    """Folders of whole models: the embedded one, and tiny random ones of other families."""
    import torch
    from transformers import (
        BertConfig,
        BertForMaskedLM,
        DistilBertConfig,
        DistilBertForMaskedLM,
        GPT2Config,
        GPT2LMHeadModel,
        LlamaConfig,
        LlamaForCausalLM,
    )
    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()
    torch.manual_seed(0)
    n = len(_vocabulary())
    wide: dict[str, Any] = {"vocab_size": n, "hidden_size": 16, "intermediate_size": 24}
    deep: dict[str, Any] = {"num_hidden_layers": 2, "num_attention_heads": 2}
    distil = DistilBertConfig(vocab_size=n, dim=16, hidden_dim=24, n_layers=2, n_heads=2)
    models: dict[str, Any] = {
        "bert": BertForMaskedLM(BertConfig(**wide, **deep)),
        "distilbert": DistilBertForMaskedLM(distil),
        "gpt2": GPT2LMHeadModel(GPT2Config(vocab_size=n, n_embd=16, n_layer=2, n_head=2)),
        "llama": LlamaForCausalLM(LlamaConfig(**wide, **deep)),
    }
    for name, model in models.items():
        # Two of them in several parts, with an index.
        parts = {"max_shard_size": "6kB"} if name in ("distilbert", "llama") else {}
        model.save_pretrained(folder / name, **parts)
        _tokenizer().save_pretrained(folder / name)
    return (ASSETS / "models" / EMBEDDED, *(folder / name for name in models))


def _vocabulary() -> dict[str, int]:
    letters = [chr(number) for number in range(ord("!"), ord("~") + 1)]
    pieces = dict.fromkeys([*SPECIAL, *WORDS, *letters, *(f"##{letter}" for letter in letters)])
    return {piece: number for number, piece in enumerate(pieces)}


def _tokenizer() -> Any:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    backend = Tokenizer(models.WordPiece(_vocabulary(), unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=False)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = {f"{token[1:-1].lower()}_token": token for token in SPECIAL}
    return PreTrainedTokenizerFast(tokenizer_object=backend, **names)


# Spoiling


def draw_folder(
    families: tuple[Path, ...], folder: Path, random: Random, mark: Path
) -> tuple[Path, str]:
    """A model's folder in `folder`, spoilt, and what was done to it in words.

    mark: what a pickle in it would write, if it ran.
    """
    family = families[0] if random.random() < 0.1 else random.choice(families[1:])
    model = folder / "model"
    shutil.copytree(family, model)
    done = [family.name]
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        spoil = random.choices(tuple(SPOILERS), weights=tuple(SPOILERS.values()))[0]
        done.append(f"{spoil.__name__.strip('_')}: {spoil(model, random, mark)}")
    ggufs = list(model.glob("*.gguf"))
    return (ggufs[0] if ggufs else model), "; ".join(done)


def _json_value(folder: Path, random: Random, mark: Path) -> str:
    """A value somewhere in a JSON file, replaced or taken out."""
    file = _choose(folder, random, ".json")
    content = _parsed(file)
    if content is None:
        return "nothing"
    inner, way = content, []
    while True:
        keys = list(inner) if isinstance(inner, dict) else range(len(inner))
        key = random.choice(list(keys))
        way.append(str(key))
        below = inner[key]
        if not (isinstance(below, dict | list) and below) or random.random() < 0.3:
            break
        inner = below
    if random.random() < 0.2:
        del inner[key]
        said = "taken out"
    else:
        inner[key] = random.choice(VALUES)
        said = repr(inner[key])[:40]
    file.write_text(json.dumps(content), encoding="utf-8")
    return f"{file.name} {'/'.join(way)[:80]} {said}"


def _config_size(folder: Path, random: Random, mark: Path) -> str:
    """A number of the configuration, replaced by an absurd one."""
    content = _parsed(folder / "config.json")
    if content is None:
        return "nothing"
    names = [name for name, value in content.items() if type(value) is int]
    if not names:
        return "nothing"
    name = random.choice(names)
    content[name] = random.choice((-1, -(10**9), 0, 1, 3, 100, 10**5, 10**9, 2**40, 10**30))
    (folder / "config.json").write_text(json.dumps(content), encoding="utf-8")
    return f"{name} {content[name]}"


def _bytes(folder: Path, random: Random, mark: Path) -> str:
    """A file cut off, emptied, doubled, nested, or with bytes of chance in it."""
    file = _choose(folder, random)
    if not file.is_file() or file.is_symlink():
        return "nothing"
    data = bytearray(file.read_bytes()[: 1 << 26])
    how = random.choice(("cut", "emptied", "doubled", "strewn", "random", "nested", "not UTF-8"))
    if how == "cut":
        data = data[: random.randrange(len(data) + 1)]
    elif how == "doubled":
        data = data * 2
    elif how == "strewn" and data:
        for _ in range(random.randrange(1, 50)):
            data[random.randrange(min(len(data), 5000))] = random.randrange(256)
    else:
        others = {"emptied": b"", "nested": b"[" * 200_000, "not UTF-8": b'{"\xff": 1}'}
        data = bytearray(others.get(how, random.randbytes(random.randrange(1, 3000))))
    file.write_bytes(data)
    return f"{file.name} {how}"


def _header(folder: Path, random: Random, mark: Path) -> str:
    """A safetensors header that lies."""
    file = _choose(folder, random, ".safetensors")
    read = _split(file)
    if read is None:
        return "nothing"
    header, body = read
    names = [name for name in header if name != "__metadata__"]
    name = random.choice(names)
    how = random.choice(("huge", "offsets", "overlap", "shape", "dtype", "length", "null"))
    if how == "offsets":
        header[name]["data_offsets"] = random.choice(([0, 2**60], [-8, 8], [8, 0], ["0", 4], []))
    elif how == "overlap":
        header[name]["data_offsets"] = header[random.choice(names)]["data_offsets"]
    elif how == "shape":
        header[name]["shape"] = random.choice(([2**40], [-1, -4], [], [0], [2**32, 2**32], ["1"]))
    elif how == "dtype":
        header[name]["dtype"] = random.choice(("F64", "I8", "BOOL", "F4", "", None, 7))
    elif how == "null":
        header[name] = random.choice((None, [], 3, "x"))
    text = json.dumps(header).encode()
    if how == "huge":
        text += b" " * random.choice((1 << 20, (100 << 20) + 1))
    length = random.choice((0, 1, 2**63, 2**64 - 1)) if how == "length" else len(text)
    file.write_bytes(length.to_bytes(8, "little") + text + body)
    return f"{file.name} {name} {how}"


def _tensors(folder: Path, random: Random, mark: Path) -> str:
    """Weights taken out, put in, renamed, of another shape or type, or that are no numbers."""
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load_file, save_file

    file = _choose(folder, random, ".safetensors")
    try:
        tensors = load_file(file)
    except (SafetensorError, OSError, ValueError, TypeError, KeyError):
        return "nothing"
    if not tensors:
        return "nothing"
    name = random.choice(sorted(tensors))
    how = random.choice(("out", "in", "renamed", "turned", "wider", "half", "integers", "NaN"))
    value = tensors.pop(name)
    if how == "in":
        tensors[name], tensors["transformer.secret.weight"] = value, torch.zeros(3)
    elif how == "renamed":
        tensors[f"x.{name}"] = value
    elif how == "turned":
        tensors[name] = value.T.contiguous() if value.ndim == 2 else value[None].contiguous()
    elif how == "wider":
        tensors[name] = torch.cat([value, value])
    elif how != "out":
        kinds = {"half": value.half(), "integers": value.int(), "NaN": value * float("nan")}
        tensors[name] = kinds[how]
    save_file(tensors, file, metadata={"format": "pt"})
    return f"{file.name} {name} {how}"


def _index(folder: Path, random: Random, mark: Path) -> str:
    """An index that names pickles, files outside, or files and weights that aren't there."""
    read = _parsed(folder / INDEX) or {"weight_map": {"x.weight": WEIGHTS}}
    places = read.get("weight_map")
    if not isinstance(places, dict) or not places:
        return "nothing"
    outside = ("pytorch_model.bin", "../families/bert/model.safetensors", "/etc/passwd", "none", "",
               7, None, "\0", "a/b.safetensors", ".", "x" * 300 + ".safetensors")  # fmt: skip
    place = random.choice(outside)
    names = list(places) if random.random() < 0.5 else [random.choice(list(places))]
    places.update(dict.fromkeys(names, place))
    _pickle(folder, random, mark)
    if random.random() < 0.5:
        _clear(folder / WEIGHTS)
    _clear(folder / INDEX)
    (folder / INDEX).write_text(json.dumps(read), encoding="utf-8")
    return f"{len(names)} weights in {str(place)[:40]!r}"


def _pickle(folder: Path, random: Random, mark: Path) -> str:
    """A pickle that leaves a mark when it is read, under a name that invites to."""
    # By the protocol's own letters: a global, its argument, the call, the end.
    code = f"cos\nmknod\n(V{mark}\ntR.".encode()
    names = ("pytorch_model.bin", "adapter_model.bin", WEIGHTS, "training_args.bin", "spiece.model")
    name = random.choice(names)
    if name == "adapter_model.bin":
        (folder / "adapter_config.json").write_text('{"peft_type": "LORA"}', encoding="utf-8")
    for path in (folder / "pytorch_model.bin", folder / name):
        _clear(path)
        path.write_bytes(code)
    return name


def _code(folder: Path, random: Random, mark: Path) -> str:
    """Code that the configuration, or the tokenizer's, asks to be run."""
    (folder / "evil.py").write_text(f"open({str(mark)!r}, 'w')", encoding="utf-8")
    file = folder / random.choice(("config.json", "tokenizer_config.json"))
    content = _parsed(file)
    if content is None:
        return "nothing"
    classes = ("AutoConfig", "AutoModelForMaskedLM", "AutoModelForCausalLM", "AutoTokenizer")
    content["auto_map"] = {name: random.choice(("evil.X", ["evil.X", None])) for name in classes}
    if random.random() < 0.5:
        content["model_type"] = content["tokenizer_class"] = "evil"
    file.write_text(json.dumps(content), encoding="utf-8")
    return file.name


def _special(folder: Path, random: Random, mark: Path) -> str:
    """Something that is no plain file, instead of one or beside the others."""
    names = ("chat_template.jinja", "generation_config.json", "added_tokens.json", "merges.txt",
             "additional_chat_templates/x.jinja", "spiece.model", "notes")  # fmt: skip
    beside = folder / random.choice(names)
    path = beside if random.random() < 0.5 else _choose(folder, random)
    path.parent.mkdir(exist_ok=True)
    _clear(path)
    how = random.choice(("pipe", "socket", "device", "zero", "link", "loop", "folder", "sparse"))
    if how == "pipe":
        os.mkfifo(path)
    elif how == "socket":
        here = os.getcwd()
        os.chdir(path.parent)  # a socket's path is 107 bytes at most
        try:
            with socket.socket(socket.AF_UNIX) as made:
                made.bind(path.name)
        finally:
            os.chdir(here)
    elif how == "folder":
        path.mkdir()
    elif how == "sparse":
        with path.open("wb") as file:
            file.truncate(random.choice((65 << 20, 1 << 40)))
    else:
        targets = {"device": "/dev/random", "zero": "/dev/zero", "link": "/etc/passwd"}
        path.symlink_to(targets.get(how, path.name))
    return f"{path.name} {how}"


def _many(folder: Path, random: Random, mark: Path) -> str:
    """More files than a model has."""
    for number in range(10_001):
        (folder / f"{number}.txt").touch()
    return "10,001 files"


def _tokens(folder: Path, random: Random, mark: Path) -> str:
    """A tokenizer that knows more than the model, or less, or gives two tokens one number."""
    file = folder / "tokenizer.json"
    content = _parsed(file)
    try:
        vocabulary = content["model"]["vocab"]
        token = random.choice(sorted(vocabulary))
        vocabulary[token] = random.choice((-1, 0, 10**6, 2**31, 2**32 - 1, 2**40, 1.5))
    except (TypeError, KeyError, IndexError):
        return "nothing"
    how = random.choice(("vocabulary", "added", "padding", "truncation"))
    added = {"id": 10**6, "content": "Tokyo", "special": False, "single_word": False,
             "lstrip": False, "rstrip": False, "normalized": False}  # fmt: skip
    if how == "added" and isinstance(content, dict):
        content["added_tokens"] = [*(content.get("added_tokens") or []), added]
    elif how == "padding" and isinstance(content, dict):
        content["padding"] = {
            "strategy": {"Fixed": 10**9}, "direction": "Right", "pad_to_multiple_of": None,
            "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]",
        }  # fmt: skip
    elif how == "truncation" and isinstance(content, dict):
        content["truncation"] = {
            "direction": "Right", "max_length": 0, "strategy": "LongestFirst", "stride": 10**9,
        }  # fmt: skip
    file.write_text(json.dumps(content), encoding="utf-8")
    return f"{token!r} {vocabulary[token]}, {how}"


def _gguf(folder: Path, random: Random, mark: Path) -> str:
    """A GGUF file of chance instead of the weights."""
    for file in folder.iterdir():
        _clear(file)
    head = b"GGUF" + random.choice((2, 3, 99)).to_bytes(4, "little")
    counts = random.choice(((0, 0), (1, 1), (2**60, 2**60), (3, 2**63 - 1)))
    body = b"".join(count.to_bytes(8, "little") for count in counts)
    (folder / "x.gguf").write_bytes(head + body + random.randbytes(random.randrange(2000)))
    return str(counts)


def _choose(folder: Path, random: Random, suffix: str = "") -> Path:
    """A file of the folder, of what it is about; the readme and the counts are no model's."""
    skipped = ("README.md", "corpus_counts.tsv.gz", "evaluation.json")
    files = [file for file in sorted(folder.iterdir()) if file.name not in skipped]
    fitting = [file for file in files if file.name.endswith(suffix) and len(files) < 1000]
    return random.choice(fitting) if fitting else folder / f"none{suffix}"


def _parsed(file: Path) -> Any:
    """A JSON file's content; None where it is spoilt already, or holds nothing."""
    try:
        if file.is_symlink() or not file.is_file() or file.stat().st_size > 1 << 26:
            return None
        return json.loads(file.read_text(encoding="utf-8")) or None
    except (ValueError, RecursionError):
        return None


def _split(file: Path) -> tuple[dict[str, Any], bytes] | None:
    """A safetensors file's header and what follows it; None where it is spoilt already."""
    if file.is_symlink() or not file.is_file() or file.stat().st_size > 1 << 28:
        return None
    data = file.read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    try:
        header = json.loads(data[8:end])
    except (ValueError, OverflowError, RecursionError):
        return None
    if not isinstance(header, dict):
        return None
    whole = all(isinstance(value, dict) for value in header.values())
    return (header, data[end:]) if whole and len(header) > 1 else None


def _clear(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


Spoiler = Callable[[Path, Random, Path], str]
# How often each is drawn.
SPOILERS: dict[Spoiler, int] = {
    _json_value: 20, _config_size: 15, _bytes: 10, _header: 10, _tensors: 12, _index: 8,
    _pickle: 5, _code: 4, _special: 12, _many: 1, _tokens: 8, _gguf: 1,
}  # fmt: skip


# Trying


def _try(folder: Path, home: Path) -> Ending:
    """What comes of adding, loading and asking a folder, in a forked process."""
    import torch  # noqa: F401 (once, for all that are forked)
    import transformers

    _ = transformers.AutoModelForMaskedLM, transformers.AutoModelForCausalLM
    home.mkdir()
    told = home / "told"
    started = time.monotonic()
    number = os.fork()
    if number == 0:
        _in_child(folder, home, told)
    while True:
        ended, status, usage = os.wait4(number, os.WNOHANG)
        seconds = time.monotonic() - started
        if ended:
            break
        if seconds > MAX_SECONDS:
            os.killpg(number, signal.SIGKILL)
            _, _, usage = os.wait4(number, 0)
            return Ending("hang", "", seconds, _peak(usage))
        time.sleep(POLL_SECONDS)
    said = told.read_text(encoding="utf-8") if told.exists() else ""
    how, _, text = said.partition("\n")
    if status or not how:
        return Ending("error", f"status {status}: {said[-300:]}", seconds, _peak(usage))
    if how == "refused" and ("\n" in text or len(text) > MAX_REFUSAL):
        return Ending("error", f"no one sentence: {text[:300]}", seconds, _peak(usage))
    return Ending(how, text[-700:], seconds, _peak(usage))


def _peak(usage: Any) -> int:
    return int(usage.ru_maxrss) * (1 if sys.platform == "darwin" else 1024)


def _in_child(folder: Path, home: Path, told: Path) -> None:
    """Try the folder, write how it ended, and end the process."""
    os.setsid()
    os.environ["LAMA_HOME"] = str(home)
    silence = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(silence, stream)
    try:
        text = ask_folder(str(folder))
        told.write_text(text, encoding="utf-8", errors="backslashreplace")
    except BaseException:  # noqa: BLE001 (whatever it is, it is what the campaign looks for)
        told.write_text(f"traceback\n{traceback.format_exc()}", "utf-8", "backslashreplace")
    os._exit(0)


def ask_folder(reference: str) -> str:
    """`answered`, or `refused` and the sentence on a line of its own."""
    from lama_core.asking.blanks import parse_query
    from lama_core.asking.settings import ClozeSettings, choose_candidates
    from lama_core.errors import UserError
    from lama_core.models.loader import add_checked, load_model
    from lama_core.probes.cloze.ask import ask

    try:
        add_checked(reference)
        model = load_model(reference)
        words = choose_candidates(ClozeSettings(models=(model.name,)), (model,))
        answer = ask(model, parse_query("Tokyo is in [MASK]."), words)
    except UserError as error:
        return f"refused\n{error}"
    return f"answered\n{answer.blanks[0].predictions[0].token}"
