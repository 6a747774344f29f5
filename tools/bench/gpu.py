"""`bench gpu`: what a GPU gives: the CPU's numbers or others, and how fast.

Models with random weights (as fast as trained ones; on a GPU as large as BERT large, with 10^9
weights, and as T5 base), MiniLM-MLM and, if it is installed, SmolLM2. For each:

- the largest difference of a candidate's log-probability, of a traced probability and the share of
  other generated texts, all from the CPU's in fp32; the limits are this project's bounds;
- queries per second in fp32 and bf16. Peer: transformers' fill-mask pipeline. Limit: the forward
  passes of the same batches alone, without the LM head (this project's goal: 0.9);
- bf16's mean difference of a log-probability from fp32's, and the share of same first answers;
- the peak memory of the device; the limit is that of the weights.

Then two processes on the device, and a run that is killed and resumed. Without a GPU, everything is
measured on the CPU, with small models.
"""

import gc
import importlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import torch

from lama_core.candidates.columns import Columns
from lama_core.candidates.lists import common_vocabulary
from lama_core.models.devices import VARIABLE, chosen_device, device_title, use_device
from lama_core.models.hf.generation import generate
from lama_core.models.registry import open_model
from lama_core.models.sources.catalog import find_model
from lama_core.models.sources.locations import LocatedModel, fetch, locate
from lama_core.paths import IMPORT_ROOT
from lama_core.scoring.batches import encode_queries, score_cloze
from lama_core.types import Query
from tools.bench.cloze import fill_mask_pipeline
from tools.bench.measuring import BenchRow, Way, medians
from tools.bench.passes import bare_passes, planned
from tools.bench.trace import encode
from tools.bench.workload import CAUSAL, MASKED, SUBJECTS, TEMPLATES, trex_like_queries

BOUND = 2e-3  # nats; of a log-probability in fp32, on another device
TRACE_BOUND = 1e-4  # of a traced probability
N_COMPARED = 32  # queries that the CPU scores, too
N_TEXTS, N_TOKENS = 16, 16  # that are generated
ROWS = (64, 256)  # other numbers of queries per batch
# Of each kind: transformers' names, sizes of a large model (an eighth on a CPU), other values.
SHAPES: dict[str, tuple[str, str, dict[str, int], dict[str, int]]] = {
    "masked": (
        "Bert", "ForMaskedLM",
        {"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24},
        {"num_attention_heads": 16},
    ),
    "causal": (
        "Llama", "ForCausalLM",
        {"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16},
        {"num_attention_heads": 16},
    ),
    "seq2seq": (
        "T5", "ForConditionalGeneration",
        {"d_model": 768, "d_ff": 3072, "num_layers": 12, "d_kv": 64},
        {"num_heads": 12, "decoder_start_token_id": 0},
    ),
}  # fmt: skip
RUN = ("probe", "--dataset", "starter", "--model", MASKED, "--limit", "40", "--out")
SCORE = """
import time
from lama_core.models.cache import load_model
from tools.bench.gpu import first_columns, score, trex_like_queries
model, queries = load_model({name!r}, precision="fp32"), trex_like_queries({n})
columns = first_columns(model)
score(model, queries, columns)
input("ready\\n")
start = time.perf_counter()
for _ in range({times}):
    score(model, queries, columns)
print(time.perf_counter() - start)
"""


def run(*, n_queries: int = 512, repetitions: int = 2) -> Iterator[BenchRow]:
    """Measure everything on the best device of this machine, or on that of `--device`.

    Raises:
        UserError: If a model can't be loaded.
    """
    use_device(chosen_device())
    small = not chosen_device().startswith("cuda")
    for kind in SHAPES:
        with tempfile.TemporaryDirectory() as folder:
            n = write_random(Path(folder), kind, small=small)
            size = f"{n / 1e6:.1f}M weights"
            load = partial(_open, Path(folder), kind)
            yield from of_model(load, f"random {SHAPES[kind][0]}, {size}", n_queries, repetitions)
    for name in (MASKED, CAUSAL):
        if locate(find_model(name)) is not None:
            load = partial(_load, name)
            yield from of_model(load, name, n_queries, repetitions)
    yield from two_processes(n_queries, repetitions)
    yield killed_run()


def write_random(folder: Path, kind: str, *, small: bool) -> int:
    """Write a model with random weights and its tokenizer; return its number of weights."""
    hf: Any = importlib.import_module("transformers")
    tokenizer = _tokenizer(kind)
    name, head, sizes, others = SHAPES[kind]
    scale = 8 if small else 1
    given = {size: value // scale for size, value in sizes.items()} | others
    torch.manual_seed(0)
    with torch.device("cpu" if small else "cuda"):
        config = getattr(hf, f"{name}Config")(vocab_size=len(tokenizer), **given)
        model = getattr(hf, name + head)(config)
    for part in (model, tokenizer):
        part.save_pretrained(folder)
    return sum(weight.numel() for weight in model.parameters())


def _tokenizer(kind: str) -> Any:
    """Return the embedded model's tokenizer, or one whose words are those of the queries."""
    import transformers as hf
    from tokenizers import Tokenizer, decoders, pre_tokenizers, trainers
    from tokenizers.models import BPE

    if kind == "masked":
        return hf.AutoTokenizer.from_pretrained(fetch(find_model(MASKED)).folder)
    words = sorted({word for text in (*SUBJECTS, *TEMPLATES) for word in text.split()})
    if kind == "seq2seq":
        letters = sorted({*"".join(words), "▁"})
        pieces = [(piece, -9.0) for piece in letters] + [(f"▁{word}", -5.0) for word in words]
        vocabulary = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), *pieces]
        sentinels = [(f"<extra_id_{number}>", 0.0) for number in range(99, -1, -1)]
        return hf.T5Tokenizer(vocab=[*vocabulary, *sentinels], extra_ids=100)
    made = Tokenizer(BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    special = ["<s>", "</s>"]
    trainer = trainers.BpeTrainer(
        vocab_size=4096, initial_alphabet=alphabet, special_tokens=special
    )
    made.train_from_iterator((f" {word}" for word in words), trainer)
    return hf.PreTrainedTokenizerFast(tokenizer_object=made, bos_token="<s>", eos_token="</s>")


def _open(folder: Path, kind: Any, precision: str) -> Any:
    return open_model(f"random-{kind}", LocatedModel(folder, "random"), kind, precision)


def _load(name: str, precision: Any) -> Any:
    entry = find_model(name)
    return open_model(name, fetch(entry), entry.kind or "masked", precision)


@contextmanager
def on_cpu() -> Iterator[None]:
    """Load models on the CPU in the block."""
    before = os.environ[VARIABLE]
    use_device("cpu")
    try:
        yield
    finally:
        use_device(before)


def first_columns(model: Any) -> Columns:
    """Return the candidates of a model alone."""
    return common_vocabulary([model.vocabulary]).columns(model.vocabulary)


def score(model: Any, queries: list[Query], columns: Columns, **bounds: int) -> Any:
    """Return the candidates' log-probabilities, float32 [query, candidate]."""
    found = np.empty((len(queries), len(columns.words)), np.float32)
    for block in score_cloze(model, queries, columns, context=_context(model), **bounds):
        found[block.indices] = block.log_probs
    return found


def _context(model: Any) -> Any:
    return "left" if model.kind == "causal" else "both"


def of_model(
    load: Callable[[str], Any], what: str, n_queries: int, repetitions: int
) -> Iterator[BenchRow]:
    """Compare a model with itself on the CPU, and measure its speed and memory."""
    some, queries = trex_like_queries(N_COMPARED), trex_like_queries(n_queries)
    with on_cpu():
        there = _measured(load("fp32"), some)
    on_gpu = os.environ[VARIABLE].startswith("cuda")
    if on_gpu:
        gc.collect()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    model = load("fp32")
    where = f"{what} on {device_title(model.device)}"
    here = _measured(model, some)
    difference = float(np.abs(here["scores"] - there["scores"]).max())
    yield BenchRow(
        f"{where}, fp32: largest difference from the CPU", "nats", difference, limit=BOUND,
        limit_name="bound",
    )  # fmt: skip
    if "texts" in here:
        other = sum(a != b for a, b in zip(here["texts"], there["texts"], strict=True))
        yield BenchRow(f"{where}, fp32: texts other than the CPU's", f"of {N_TEXTS} texts", other)
    if "trace" in here:
        difference = float(np.nanmax(np.abs(here["trace"] - there["trace"])))
        yield BenchRow(
            f"{where}, fp32: a trace's largest difference from the CPU", "probability", difference,
            limit=TRACE_BOUND, limit_name="bound",
        )  # fmt: skip
    yield from speed(model, queries, f"{where}, fp32", repetitions)
    if on_gpu:
        weights = sum(one.numel() * one.element_size() for one in model.model.parameters())
        peak = torch.cuda.max_memory_allocated()
        yield BenchRow(
            f"{where}, fp32: peak memory", "GB", peak / 1e9, limit=weights / 1e9,
            limit_name="weights",
        )  # fmt: skip
    del model
    low = load("bf16")
    scores = score(low, some, first_columns(low))
    difference = float(np.abs(scores - here["scores"]).mean())
    yield BenchRow(f"{where}: mean difference of bf16 from fp32", "nats", difference)
    same = float((scores.argmax(1) == here["scores"].argmax(1)).mean())
    yield BenchRow(f"{where}: same first answer in bf16 as in fp32", "share", same)
    yield from speed(low, queries, f"{where}, bf16", repetitions)


def _measured(model: Any, queries: list[Query]) -> dict[str, Any]:
    """Return what devices are compared by: scores, generated texts and a trace."""
    found: dict[str, Any] = {"scores": score(model, queries, first_columns(model))}
    if model.kind != "masked":
        prompts = [query.text("Paris") for query in queries[:N_TEXTS]]
        found["texts"] = [one.text for one in generate(model, prompts, N_TOKENS)]
    if model.kind != "seq2seq":
        found["trace"] = model.trace(encode(model), (5, 6), [7], draws=2).restored
    return found


def speed(model: Any, queries: list[Query], what: str, repetitions: int) -> Iterator[BenchRow]:
    """Measure queries per second, with the default number of queries per batch and others."""
    columns = first_columns(model)
    bounds: list[dict[str, int]] = [{}, *({"max_rows": n, "max_tokens": 1 << 20} for n in ROWS)]
    ways: list[Way] = [partial(score, model, queries, columns, **bound) for bound in bounds]
    if model.kind != "seq2seq":  # whose passes need a decoder's input, too
        batches = planned(encode_queries(model, queries, _context(model)))
        ways.append(bare_passes(model, batches))
    if model.kind == "masked" and hasattr(model.model, "device"):  # a network of transformers
        pipeline = fill_mask_pipeline(model.model, model.tokenizer, queries)
        ways.append(pipeline)
    found = [len(queries) / seconds for seconds in medians(ways, repetitions)]
    ours, *others = found[: len(bounds)]
    limit, peer = [*found[len(bounds) :], None, None][:2]
    yield BenchRow(
        f"{what}: cloze queries", "queries/s", ours, peer, "fill-mask pipeline" if peer else "",
        limit, "body alone" if limit else "",
    )  # fmt: skip
    for n, rate in zip(ROWS, others, strict=True):
        name = f"{what}: {n} queries per batch"
        yield BenchRow(name, "queries/s", rate, ours, "default")


def two_processes(n_queries: int, repetitions: int) -> Iterator[BenchRow]:
    """Measure the queries per second of two processes on one device, and of one."""
    rates = []
    code = SCORE.format(name=MASKED, n=n_queries, times=repetitions)
    for n in (1, 2):
        started = [
            subprocess.Popen(
                [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                text=True, cwd=IMPORT_ROOT,
            )
            for _ in range(n)
        ]  # fmt: skip
        for process in started:
            process.stdout.readline()  # type: ignore[union-attr]
        with ThreadPoolExecutor(n) as pool:
            seconds = [
                float(said.strip() or "nan")
                for said, _ in pool.map(lambda one: one.communicate("\n"), started)
            ]
        rates.append(sum(n_queries * repetitions / one for one in seconds))
    what = f"{MASKED}, two processes on one device"
    yield BenchRow(what, "queries/s", rates[1], rates[0], "one process")


def killed_run() -> BenchRow:
    """Kill a run, resume it, and count the facts with other scores than those of a whole run."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "lama_core", *RUN]
        whole, killed = (Path(folder) / name for name in ("whole", "killed"))
        quiet: dict[str, Any] = {
            "cwd": IMPORT_ROOT,
            "stdout": subprocess.DEVNULL,
            "stderr": subprocess.DEVNULL,
        }
        subprocess.run([*command, str(whole)], check=True, **quiet)
        process = subprocess.Popen([*command, str(killed)], **quiet)
        while process.poll() is None and not list(killed.glob("**/parts/*")):
            time.sleep(0.01)
        process.kill()
        process.wait()
        was_whole = bool(list(killed.glob("**/facts.parquet")))
        subprocess.run([*command, str(killed)], check=True, **quiet)
        tables = [pq.read_table(next(one.glob("**/facts.parquet"))) for one in (whole, killed)]
        n = sum(a != b for a, b in zip(*(one.to_pylist() for one in tables), strict=True))
    what = "a killed and resumed run" + (" (it had ended before)" if was_whole else "")
    return BenchRow(f"{what}: facts with other scores", f"of {tables[0].num_rows} facts", n)
