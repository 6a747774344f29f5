"""`bench cloze`: the speed of cloze queries beside the bare forward passes and the usual pipeline.

A model of BERT base's size is built on the spot with random weights, which cost as much time as
trained ones; its tokenizer is the embedded model's. The ways are measured in turn, over and over,
and the median of each is taken: what else the machine does then hits all of them alike.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from lama_core.asking.blanks import fill
from lama_core.asking.ranking import best_candidates
from lama_core.candidates.columns import Candidates
from lama_core.candidates.lists import common_vocabulary
from lama_core.models.catalog import find_model
from lama_core.models.sources import Located, fetch, locate
from lama_core.types import Query
from tools.bench import BenchRow

if TYPE_CHECKING:
    from lama_core.models.masked import MaskedModel

MASKED, CAUSAL = "minilm-mlm", "smollm2-135m"
N_QUERIES = 512
REPETITIONS = 5
PIPELINE_BATCH = 32
LOAD_SECONDS = 3.0  # what a second load may take
ANSWER_SECONDS = 2.0  # what the embedded model's first answer may take
ANSWER_MEBIBYTES = 400.0
PAGE_SECONDS = 3.0  # what the first page may take
BOUND = "the bound this project sets itself"
BOTH_SECONDS = 2.0  # what an answer by both sides may take of the processor
BOTH_TEXT = "___ is the capital of France."
WARM_TEXT = "The capital of France is [MASK]."
ROOT = Path(__file__).resolve().parents[2]

# The templates of T-REx's relations (Petroni et al. 2019) and names as long as its subjects.
TEMPLATES = (
    "[X] was born in [Y] .", "[X] died in [Y] .", "[X] is a subclass of [Y] .",
    "The official language of [X] is [Y] .", "[X] plays in [Y] position .",
    "The headquarter of [X] is in [Y] .", "[X] was originally aired on [Y] .",
    "[X] is affiliated with the [Y] religion .", "[X] is produced by [Y] .",
    "The original language of [X] is [Y] .", "[X] was created in [Y] .", "[X] is owned by [Y] .",
    "[X] maintains diplomatic relations with [Y] .", "[X] is a legal term in [Y] .",
    "The capital of [X] is [Y] .", "[X] used to communicate in [Y] .",
)  # fmt: skip
SUBJECTS = (
    "Lu Xun", "iPod Touch", "Marie Curie", "Claude Arrieu", "Hamburg Airport", "Anne Redpath",
    "Bandai Namco Holdings", "Adolphe Adam", "Sunday Night Baseball",
    "Francesco Bartolomeo Conti", "Province of Benevento", "Mohammad Hossein Shahriar",
    "Nintendo", "Stockholm University", "Bailey Peninsula", "Red Bull Racing", "Fiat Multipla",
    "Kingdom of Italy", "Windows Update", "Eibenstock", "Allan Peiper", "Sverre Lunde Pedersen",
    "Yahoo! Japan", "Order of Saint Benedict", "James Hilton", "Thiruvananthapuram",
    "Gothenburg tram", "Wilhelm Fritz von Roettig", "BBC", "St. Mary Axe",
    "Nissan Skyline GT-R", "Dharmendra Pradhan",
)  # fmt: skip


def trex_like_queries(n_queries: int = N_QUERIES) -> list[Query]:
    """Short cloze queries of the form of T-REx's, every template with every subject."""
    pairs = list(product(SUBJECTS, TEMPLATES))
    return [
        fill(template, subject)
        for subject, template in (pairs * (1 + n_queries // len(pairs)))[:n_queries]
    ]


def medians(
    ways: Sequence[Callable[[], object]],
    repetitions: int,
    clock: Callable[[], float] = time.perf_counter,
) -> list[float]:
    """Seconds that each way takes, the median over the repetitions, the ways in turn.

    A first round warms up and isn't counted. clock: `time.process_time` counts the processors'.
    """
    seconds: list[list[float]] = [[] for _ in ways]
    for repetition in range(repetitions + 1):
        for taken, way in zip(seconds, ways, strict=True):
            start = clock()
            way()
            if repetition:
                taken.append(clock() - start)
    return [median(taken) for taken in seconds]


def plain_base_sized_model() -> tuple[Any, Any]:
    """A random model of BERT base's size and the embedded model's tokenizer, by transformers."""
    import torch
    from transformers import AutoTokenizer, BertConfig, BertForMaskedLM
    from transformers.utils import logging

    logging.disable_progress_bar()
    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(fetch(find_model(MASKED)).folder)
    return BertForMaskedLM(BertConfig(vocab_size=len(tokenizer))).eval(), tokenizer


def base_sized_model(precision: Literal["fp32", "bf16"] = "fp32") -> "MaskedModel":
    """The same model from a folder, as any model of a user's is opened."""
    from lama_core.models.backends import open_model

    with tempfile.TemporaryDirectory() as folder:
        for part in plain_base_sized_model():
            part.save_pretrained(folder)
        located = Located(Path(folder), "random")
        return cast("MaskedModel", open_model("random-bert-base", located, "masked", precision))


def first_answers(model: Any, queries: list[Query], candidates: Candidates) -> list[int]:
    """The column of each query's best candidate."""
    from lama_core.asking.scoring import score_cloze

    answers = [0] * len(queries)
    for block in score_cloze(model, queries, candidates.columns(model.vocabulary)):
        best = best_candidates(block.log_probs, 1, order=block.order)
        for index, column in zip(block.indices, best.columns[:, 0], strict=True):
            answers[index] = int(column)
    return answers


def encoder_only(model: Any, queries: list[Query], body: Any = None) -> Callable[[], None]:
    """A call that sends the queries through the encoder and does nothing else: the limit.

    body: the encoder, by default the model's own.

    The tokens are made and sorted by length before; the best batch size of a few is taken.
    """
    import torch

    from lama_core.asking.scoring import plan_batches

    encoded = model.encode_all(queries, "both")
    body = body or model.model.base_model

    def batches_of(size: int) -> list[dict[str, Any]]:
        made = []
        for batch in plan_batches(encoded, max_rows=size, max_tokens=1 << 20):
            rows = [encoded[number].token_ids for number in batch]
            width = max(map(len, rows))
            ids = torch.tensor([[*row, *[0] * (width - len(row))] for row in rows])
            mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows])
            made.append({"input_ids": ids, "attention_mask": mask})
        return made

    def run_all(batches: list[dict[str, Any]]) -> None:
        with torch.inference_mode():
            for batch in batches:
                body(**batch)

    plans = [batches_of(size) for size in (16, 32, 64)]
    taken = medians([lambda plan=plan: run_all(plan) for plan in plans], 1)  # type: ignore[misc]
    best = plans[taken.index(min(taken))]
    return lambda: run_all(best)


def fill_mask_pipeline(model: Any, tokenizer: Any, queries: list[Query]) -> Callable[[], object]:
    """A call that has the usual pipeline fill the blanks."""
    from transformers import pipeline

    filler = pipeline("fill-mask", model=model, tokenizer=tokenizer, top_k=10)
    texts = [query.text(tokenizer.mask_token) for query in queries]
    return lambda: filler(texts, batch_size=PIPELINE_BATCH)


def throughput(n_queries: int, repetitions: int) -> list[BenchRow]:
    """Many queries through `score_cloze`, in 32 bits and in bf16."""
    queries = trex_like_queries(n_queries)
    exact, rough = base_sized_model(), base_sized_model("bf16")
    plain, tokenizer = plain_base_sized_model()
    candidates = common_vocabulary([exact.vocabulary])
    seconds = medians(
        [
            encoder_only(exact, queries),
            encoder_only(exact, queries, plain.base_model),
            lambda: first_answers(exact, queries, candidates),
            fill_mask_pipeline(plain, tokenizer, queries),
            encoder_only(rough, queries),
            lambda: first_answers(rough, queries, candidates),
        ],
        repetitions,
    )
    bare, plain_bare, ours, pipeline, rough_limit, rough_ours = (n_queries / t for t in seconds)
    limit = max(bare, plain_bare)  # the faster of our reading of BERT and transformers' own
    what = f"{n_queries} cloze queries, a BERT-base-sized model"
    return [
        BenchRow(f"{what}, fp32", "queries/s", ours, pipeline, "fill-mask pipeline, batch 32",
                 limit, "encoder only"),
        BenchRow(f"{what}, bf16", "queries/s", rough_ours, ours, "fp32", rough_limit,
                 "encoder only, bf16"),
    ]  # fmt: skip


def agreement_of_precisions(n_queries: int) -> list[BenchRow]:
    """The share of queries whose first answer stays the same in bf16, for real models here."""
    from lama_core.models.loader import CACHE, load_model

    rows = []
    queries = trex_like_queries(n_queries)
    for name in (MASKED, CAUSAL):
        if locate(find_model(name)) is None:
            continue
        answers = []
        for precision in ("fp32", "bf16"):
            model = load_model(name, precision=precision)
            candidates = common_vocabulary([model.vocabulary])
            answers.append(np.array(first_answers(model, queries, candidates)))
            CACHE.drop(name, precision)
        share = float((answers[0] == answers[1]).mean())
        rows.append(BenchRow(f"same first answer in bf16 as in fp32, {name}", "share", share))
    return rows


def warm_answers(repetitions: int) -> list[BenchRow]:
    """Five answers from a causal and a BERT-base-sized model, both loaded already."""
    import torch

    from lama_core.asking.blanks import parse_query
    from lama_core.models.loader import load_model
    from lama_core.probes.cloze.ask import ask_all

    masked, causal = base_sized_model(), load_model(CAUSAL)
    query = parse_query(WARM_TEXT)
    candidates = common_vocabulary([masked.vocabulary, causal.vocabulary])
    inputs = [
        torch.tensor([masked.encode(query, "both").token_ids]),
        torch.tensor([causal.encode(query, "left").token_ids]),
    ]

    def bare() -> None:
        with torch.inference_mode():
            masked.model.base_model(input_ids=inputs[0])
            causal.model.base_model(input_ids=inputs[1])

    limit, ours = medians([bare, lambda: ask_all([masked, causal], query, candidates)], repetitions)
    return [
        BenchRow(f"warm top 5, {CAUSAL} and a BERT-base-sized model", "s", ours, None, "", limit,
                 "bare forward passes"),
    ]  # fmt: skip


def both_sides(repetitions: int) -> list[BenchRow]:
    """Five answers from a causal model that sees both sides of the blank: processor time.

    Beside it the 201 sentences read whole; the limit is what no way can do without, the tokens
    behind the beginning through the model, and the words' own in its vocabulary.
    """
    import torch

    from lama_core.asking.blanks import parse_query
    from lama_core.models.loader import load_model
    from lama_core.probes.cloze.ask import ask

    if locate(find_model(CAUSAL)) is None:
        return []
    model = load_model(CAUSAL)
    query = parse_query(BOTH_TEXT)
    candidates = common_vocabulary([model.vocabulary])
    columns = candidates.columns(model.vocabulary)
    words = columns.words[:201]
    texts = [query.parts[0] + word + query.parts[1] for word in words]
    sentences = [model.encode(Query((text, "")), "left").token_ids for text in texts]
    n_suffix = model.encode(query, "both").n_suffix
    rows = torch.randint(100, 1000, (100, n_suffix))

    def whole() -> None:
        with torch.inference_mode():
            for first in range(0, len(sentences), 25):
                chunk = sentences[first : first + 25]
                width = max(map(len, chunk))
                ids = torch.tensor([[*row, *[0] * (width - len(row))] for row in chunk])
                torch.log_softmax(model.model(input_ids=ids).logits.float(), dim=-1)

    def bare() -> None:
        with torch.inference_mode():
            for _ in range(2):
                states = model.model.base_model(input_ids=rows)[0]
                torch.logsumexp(model.model.lm_head(states), dim=-1)

    def ours() -> None:
        ask(model, query, candidates, gold="Paris", context="both", columns=columns)

    limit, taken, peer = medians([bare, ours, whole], repetitions, time.process_time)
    what = f"top 5 of {CAUSAL} with both sides, loaded"
    return [
        BenchRow(what, "processor s", taken, peer, "whole sentences", limit, "bare endings"),
        BenchRow(what, "processor s", taken, None, "", BOTH_SECONDS, BOUND),
    ]


def seconds_in_a_fresh_process(code: str) -> float:
    """Seconds that a Python process takes from start to end for a piece of code."""
    start = time.perf_counter()
    in_a_fresh_process(code)
    return time.perf_counter() - start


def in_a_fresh_process(code: str) -> str:
    """What a piece of code prints in a Python process of its own."""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, check=True, cwd=ROOT, capture_output=True, encoding="utf-8")
    return done.stdout


def peak_mebibytes(code: str) -> float:
    """The most memory that a fresh process held while it ran the code, in units of 2^20 bytes."""
    # Not ru_maxrss: a child begins with its parent's, and this process holds large models.
    tell = "; print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])"
    return int(in_a_fresh_process(code + tell).split()[-1]) / 1024  # Linux counts KiB


def loading(repetitions: int) -> list[BenchRow]:
    """Loading a model that is on the disk already, in a fresh process, imports included."""
    if locate(find_model(CAUSAL)) is None:
        return []
    load = f"from lama_core.models.loader import load_model; load_model({CAUSAL!r})"
    imports = "import torch, transformers"
    ours, bare = medians(
        [lambda: seconds_in_a_fresh_process(load), lambda: seconds_in_a_fresh_process(imports)],
        repetitions,
    )
    return [BenchRow(f"load {CAUSAL} in a fresh process", "s", ours, bare, imports, LOAD_SECONDS,
                     BOUND)]  # fmt: skip


def first_answer(repetitions: int) -> list[BenchRow]:
    """The embedded model's first answer: the whole command, from start to end."""
    ours = (
        f"import sys; sys.argv[1:] = ['cloze', {WARM_TEXT!r}, '--model', {MASKED!r}]; "
        "from lama_core.cli import make_app; make_app()(standalone_mode=False)"
    )
    usual = (
        "from transformers import pipeline; "
        f"print(pipeline('fill-mask', model={str(fetch(find_model(MASKED)).folder)!r})"
        f"({WARM_TEXT!r}))"
    )
    ways = [lambda code=code: seconds_in_a_fresh_process(code) for code in (ours, usual)]
    seconds = medians(ways, repetitions)
    memory = [peak_mebibytes(code) for code in (ours, usual)]
    what, peer = f"{MASKED} in a fresh process", "fill-mask pipeline"
    return [
        BenchRow(f"first answer of {what}", "s", seconds[0], seconds[1], peer, ANSWER_SECONDS,
                 BOUND),
        BenchRow(f"peak memory of {what}", "MiB", memory[0], memory[1], peer, ANSWER_MEBIBYTES,
                 BOUND),
    ]  # fmt: skip


def first_page(repetitions: int) -> list[BenchRow]:
    """The app's first page in a fresh process, drawn up to the moment when models are asked.

    A text without a blank stops the page there, so the models' own loading isn't counted.
    """
    code = (
        "import sys; from streamlit.testing.v1 import AppTest; "
        "app = AppTest.from_file('app.py', default_timeout=60); "
        "app.query_params['text'] = 'no blank'; app.run(); "
        "raise SystemExit(bool(app.exception) or not app.header or 'torch' in sys.modules)"
    )
    taken = medians([lambda: seconds_in_a_fresh_process(code)], repetitions)[0]
    return [BenchRow("first page, torch not imported", "s", taken, None, "", PAGE_SECONDS, BOUND)]


def run(*, n_queries: int = N_QUERIES, repetitions: int = REPETITIONS) -> list[BenchRow]:
    """All rows.

    Raises UserError if a model that is measured can't be had.
    """
    return [
        *throughput(n_queries, repetitions),
        *agreement_of_precisions(n_queries),
        *warm_answers(4 * repetitions),
        *both_sides(repetitions),
        *loading(repetitions),
        *first_answer(repetitions),
        *first_page(repetitions),
    ]
