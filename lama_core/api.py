"""What notebooks ask for: the questions of Cloze and Analogy, and finished runs, as tables.

Each function takes the choices of a request of the same fields (`lama_core.requests`), so that the
pages can say each of theirs as a call. Numbers are those of the pages and the commands; log-
probabilities are natural logs. All raise UserError, with one sentence, for what can't be asked.
Models are named as everywhere (`python -m lama_core models`), and stay in memory. What has no
function of its own is asked as a command.
"""

import contextlib
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lama_core.asking.blanks import parse_query
from lama_core.asking.settings import DEFAULT_MODEL, choose_candidates, load_models
from lama_core.errors import UserError
from lama_core.models.base import RESCORED, Context, Hiding
from lama_core.models.loader import Precision
from lama_core.probes.cloze.inside import STEPS, Method

if TYPE_CHECKING:
    import pandas as pd

    from lama_core.probes.statements.scoring import Aggregate, Part


def fill(
    text: str,
    *,
    models: Sequence[str] = (DEFAULT_MODEL,),
    top_k: int = 5,
    gold: str | None = None,
    candidates: str = "common",
    context: Context | None = None,
    n_rescored: int = RESCORED,
    renormalise: bool = False,
    open_book: str | None = None,
    precision: Precision = "auto",
) -> "pd.DataFrame":
    """Each model's best words for the blanks of a text: a row a model, a blank and a word.

    The options are those of `cloze`: see `probes.cloze.ask.ask`. open_book: a text (see
    `datasets.corpus`) whose nearest passage stands before the query; its index is made where it
    isn't there.

    >>> import lama_core as lama
    >>> found = lama.fill("The capital of Norway is ___.", top_k=3, gold="Oslo")
    >>> found[["rank", "word", "prob", "gold_rank"]].round(2)
       rank       word  prob  gold_rank
    0     1       oslo  0.94          1
    1     2     norway  0.02          1
    2     3  norwegian  0.01          1
    """
    from lama_core.asking.retrieval import OpenBook
    from lama_core.datasets.corpus import load_corpus
    from lama_core.probes.cloze.ask import ClozeRequest, ask_all

    request = ClozeRequest(
        text=text, models=tuple(models), top_k=top_k, gold=gold, candidates=candidates,
        context=context, n_rescored=n_rescored, renormalise=renormalise, open_book=open_book,
        precision=precision,
    )  # fmt: skip
    query = parse_query(text)
    book = None if open_book is None else OpenBook(load_corpus(open_book))
    opened = load_models(request)
    answer = ask_all(
        opened, query, choose_candidates(request, opened),
        passage=book.look_up(query) if book else None,
        top_k=top_k, gold=gold, context=context, renormalise=renormalise, n_rescored=n_rescored,
    )  # fmt: skip
    return _table(answer.rows())


def rank(
    text: str,
    answers: Sequence[str],
    *,
    models: Sequence[str] = (DEFAULT_MODEL,),
    gold: str | None = None,
    part: "Part" = "statement",
    aggregate: "Aggregate" = "sum",
    hiding: Hiding = "within-word",
    precision: Precision = "auto",
) -> "pd.DataFrame":
    """Answers of any length at a text's blank, best first: a row a model and an answer.

    The options are those of `cloze --answer`: see `probes.statements.scoring`. prob sums to one
    over the answers.

    >>> import lama_core as lama
    >>> answers = ["Egypt", "the United States", "Japan"]
    >>> found = lama.rank("The Nile flows through ___.", answers)
    >>> found[["rank", "answer", "prob"]].round(2)
       rank             answer  prob
    0     1              Egypt  0.99
    1     2  the United States  0.01
    2     3              Japan  0.00
    """
    from lama_core.probes.statements.rank import RankAnswer, RankRequest, rank_answers

    request = RankRequest(
        text=text, answers=tuple(answers), models=tuple(models), gold=gold, part=part,
        aggregate=aggregate, hiding=hiding, precision=precision,
    )  # fmt: skip
    request.check()
    ranked = tuple(rank_answers(model, request) for model in load_models(request))
    return _table(RankAnswer(request, ranked).rows())


def analogy(
    *text: str,
    models: Sequence[str] = (DEFAULT_MODEL,),
    template: str | None = None,
    keep_query_words: bool = False,
    top_k: int = 5,
    gold: str | None = None,
    candidates: str = "common",
    context: Context | None = None,
    n_rescored: int = RESCORED,
    renormalise: bool = False,
    precision: Precision = "auto",
) -> "pd.DataFrame":
    """Each model's words for an analogy's blank, and those of vector arithmetic on its embeddings.

    text: a sentence with a blank, or four words of which one is `___`. A row a model, a method
    (`model`, `3CosAdd`, `3CosMul`) and a word. The options are those of `analogy solve`.

    >>> import lama_core as lama
    >>> found = lama.analogy("Oslo", "Norway", "Paris", "___", top_k=1)
    >>> found[["method", "rank", "word"]]
        method  rank    word
    0    model     1  europe
    1  3CosAdd     1  france
    2  3CosMul     1  france
    """
    from lama_core.probes.analogy.solve import SolveRequest, solve

    request = SolveRequest(
        text=text, models=tuple(models), template=template, keep_query_words=keep_query_words,
        top_k=top_k, gold=gold, candidates=candidates, context=context, n_rescored=n_rescored,
        renormalise=renormalise, precision=precision,
    )  # fmt: skip
    question = request.question()
    opened = load_models(request)
    solution = solve(
        opened, question, choose_candidates(request, opened),
        keep_query_words=keep_query_words, top_k=top_k, gold=gold, context=context,
        n_rescored=n_rescored, renormalise=renormalise,
    )  # fmt: skip
    return _table(solution.rows())


def look(
    text: str,
    *,
    models: Sequence[str] = (DEFAULT_MODEL,),
    layers: bool = False,
    attribution: Method | None = None,
    top_k: int = 5,
    gold: str | None = None,
    explain: str | None = None,
    steps: int = STEPS,
    candidates: str = "common",
    precision: Precision = "auto",
) -> "pd.DataFrame":
    """How models come to their answers: by `layers`, or by the `attribution` to the text's tokens.

    layers: a row a model, a layer (0: the embeddings) and a word, one of the last `top_k` or the
    gold. attribution: `erasure` or `gradients`; a row a model and a token, of the word `explain` or
    each model's first answer. The options are those of `cloze --layers` and `--attribution`.

    >>> import lama_core as lama
    >>> found = lama.look("The capital of Norway is ___.", attribution="erasure")
    >>> found[["word", "token", "value"]].round(1)
       word    token  value
    0  oslo      the    0.0
    1  oslo  capital    7.5
    2  oslo       of    0.0
    3  oslo   norway    4.9
    4  oslo       is    0.0
    5  oslo      ___    NaN
    6  oslo        .    0.0
    """
    from lama_core.probes.cloze.inside import InsideAnswer, InsideRequest, look_inside

    if layers is (attribution is not None):
        raise UserError("Look at one thing at a time: give either layers=True or an attribution.")
    request = InsideRequest(
        text=text, models=tuple(models), layers=layers, attribution=attribution, top_k=top_k,
        gold=gold, explain=explain, steps=steps, candidates=candidates, precision=precision,
    )  # fmt: skip
    query = parse_query(text)
    opened = load_models(request)
    words = choose_candidates(request, opened)
    looked = [
        look_inside(model, query, words.columns(model.vocabulary), request) for model in opened
    ]
    return _table(InsideAnswer(request, query.text(), tuple(looked)).rows())


def load_run(name: str | Path) -> "pd.DataFrame":
    """A finished run's rows: one a fact (or pair), the excluded ones with their reason.

    name: of a run, as `results` lists them, or the beginning of its name; or its folder. The
    columns are those of `facts.parquet`.

    >>> import lama_core as lama
    >>> run = lama.load_run("starter-minilm_mlm-manual")
    >>> bool((run["rank_filtered"] <= run["rank_raw"])[run["excluded"].isna()].all())
    True
    """
    from lama_core.runs.find import load_run as find_run

    return find_run(name).facts


def command(*words: str) -> Any:
    """What a command prints with `--json`: a DataFrame where that is a list of rows, else as it is.

    words: as on the command line, behind `python -m lama_core`. What it says beside its result goes
    to standard error.

    >>> import lama_core as lama
    >>> scores = lama.command("results", "starter-minilm_mlm-manual", "--by", "source")
    >>> scores[["source", "n"]]
           source     n
    0   Google_RE   387
    1        TREx  9365
    2  ConceptNet  2016
    3       Squad   124
    """
    import pandas as pd

    from lama_core.cli import make_app

    at = words.index("--") if "--" in words else len(words)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        make_app()([*words[:at], "--json", *words[at:]], standalone_mode=False)
    found = json.loads(printed.getvalue())
    return pd.DataFrame(found) if isinstance(found, list) else found


def _table(rows: list[dict[str, object]]) -> "pd.DataFrame":
    import pandas as pd

    return pd.DataFrame(rows)
