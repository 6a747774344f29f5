"""A request's command line, read by the command line, is the same request again."""

import json
import shlex
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar

import pytest
from calling import invoke
from hypothesis import given
from hypothesis import strategies as st

from lama_core.asking import settings
from lama_core.datasets.library import download
from lama_core.datasets.library.download import GetRequest, ImportRequest
from lama_core.datasets.library.installed import starter_dir
from lama_core.errors import UserError
from lama_core.metrics.comparison import CompareRequest
from lama_core.metrics.tables import ResultsRequest
from lama_core.models.catalog import ModelRequest
from lama_core.papers.framework import ReproduceOptions
from lama_core.probes import probing
from lama_core.probes.analogy import probing as analogy_probing
from lama_core.probes.analogy.probing import AnalogyRequest
from lama_core.probes.analogy.score import ScoreRequest
from lama_core.probes.analogy.solve import SolveRequest
from lama_core.probes.cloze.ask import ClozeRequest
from lama_core.probes.cloze.by_relation import RelationRequest
from lama_core.probes.cloze.many import ManyRequest
from lama_core.probes.extraction import probing as extraction_probing
from lama_core.probes.extraction.probing import ExtractRequest, ReadRequest
from lama_core.probes.probing import ProbeRequest
from lama_core.probes.prompts import probing as study_probing
from lama_core.probes.prompts.analyses import AnalyseRequest
from lama_core.probes.prompts.probing import SelectRequest, StudyRequest
from lama_core.probes.statements.rank import RankRequest
from lama_core.probes.statements.sentences import SentencesRequest
from lama_core.requests import (
    Request,
    argument,
    arguments,
    command_line,
    from_record,
    record,
)
from lama_core.runs.keeping import RunsRequest

ASKED: dict[str, Any] = {"candidates": "full", "context": "both", "n_rescored": 9, "top_k": 7,
                         "gold": "-Rome", "renormalise": True, "precision": "bf16"}  # fmt: skip
STUDIED: dict[str, Any] = {
    "dataset": "a b", "model": "m", "relations": ("P1",), "prompts": Path("my prompts"),
    "own": ("[X] is [Y] .",), "training": Path("pairs"), "candidates": "lama", "context": "left",
    "ranking": "filtered", "precision": "bf16", "limit": 3, "train_limit": 4, "seed": 5,
    "drop_overlap": True, "blind": True,
}  # fmt: skip

FOUND: dict[str, Any] = {
    "dataset": "a b", "relations": ("P1",), "corpus": "-texts", "candidates": "common",
    "models": ("m", "n"), "ranking": "raw", "limit": 3,
}  # fmt: skip

# Every field of each stands at another value than its default.
REQUESTS: tuple[tuple[Request, Any, str], ...] = (
    (ClozeRequest(text="--top-k ___ 'n \"x\"", models=("a", "b/c"), open_book="a b", **ASKED),
     settings, "load_models"),
    (RelationRequest(relation="P36", subject="-a 'b", dataset=str(starter_dir()), mined=True,
                     models=("a", "b/c"), **{k: v for k, v in ASKED.items() if k != "top_k"}),
     settings, "load_models"),
    (ManyRequest(file=str(Path(__file__).with_name("a few sentences.csv")), models=("a", "b/c"),
                 **{k: v for k, v in ASKED.items() if k not in ("top_k", "gold")}),
     settings, "load_models"),
    (SolveRequest(text=("Paris", "France", "-Rome", "___"), models=("a",), template="to-as",
                  keep_query_words=True, **ASKED), settings, "load_models"),
    (ScoreRequest(query="a:b", pairs=("c:d", "-e:f"), models=("m", "n"), template="to-as",
                  normalise="mean", precision="bf16"), settings, "load_models"),
    (RankRequest(text="--top-k ___ 'n \"x\"", answers=("Rio de Janeiro", "-Oslo"), gold="-Oslo",
                 part="conditional", aggregate="mean", hiding="original", models=("a", "b/c"),
                 precision="bf16"), settings, "load_models"),
    (SentencesRequest(texts=("--hiding it's.", "It is."), hiding="original", models=("a",),
                      precision="bf16"), settings, "load_models"),
    (ProbeRequest("some folder/lama", ("a", "b"), ("P19", "P20"), "paraphrases", "full", "raw",
                  "both", "bf16", 5, "texts"), probing, "plan"),
    (ExtractRequest(linking=("oracle",), **FOUND), extraction_probing, "plan_extract"),
    (ReadRequest(readers=("r", "s/t"), **FOUND), extraction_probing, "plan_read"),
    (AnalogyRequest("bats", ("a",), ("v.txt",), ("r",), ("E 1",), ("type", "reverse"), "both",
                    "to-as", "mean", 3, 40, True, "first", "all", "positive", 2, "last", 50, 2,
                    "bf16"),
     analogy_probing, "plan"),
    (SelectRequest(**STUDIED), study_probing, "plan_study"),
    (StudyRequest(**STUDIED, combinations=("mine", "all"), recipes=("exact", "paper"),
                  curves=False, keep=True), study_probing, "plan_study"),
)  # fmt: skip
# Those whose commands take the values as they are.
PLAIN: tuple[tuple[Request, str], ...] = (
    (ResultsRequest(("a", "b"), "source", "raw", 5, ("P1", "P2"), True, True, True),
     "results --by source --ranking raw --k 5 --relation P1 --relation P2 --wording --slices --own "
     "a b"),
    (CompareRequest("a", "-b", "raw", 3, ("P1",)),
     "compare --ranking raw --k 3 --relation P1 -- a -b"),
    (AnalyseRequest("a study", "all"), "prompts analyse --set all 'a study'"),
    (ModelRequest("owner/name"), "models get owner/name"),
    (GetRequest("lama-uhn", True), "data get --compute lama-uhn"),
    (ImportRequest("/a b/x.csv", "mine", True),
     "data import --name mine --replace '/a b/x.csv'"),
    (RunsRequest(), "runs list"),
    (ReproduceOptions("a b", ("m", "n"), 3, ("table2",)),
     "reproduce --dataset 'a b' --model m --model n --limit 3 --table table2"),
)  # fmt: skip


class Seen(Exception):
    """What a command was about to work on."""


@pytest.mark.parametrize(("request_", "module", "name"), REQUESTS, ids=lambda one: str(type(one)))
def test_a_request_reads_itself_back(
    request_: Request, module: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_default = [
        one.name
        for one in fields(request_)
        if one.default is not MISSING and getattr(request_, one.name) == one.default
    ]
    assert at_default == [], "a field at its default shows nothing"

    def see(read: Request, *_: object, **__: object) -> None:
        raise Seen(read)

    monkeypatch.setattr(module, name, see)
    monkeypatch.setattr("lama_core.cli.running.index_corpus", lambda _: None)
    said = invoke(shlex.split(command_line(request_, "--json"))[1:])
    assert isinstance(said.exception, Seen), said.output
    assert said.exception.args[0] == request_


KEPT = tuple(one for one, *_ in REQUESTS if isinstance(one, settings.ModelSettings))


@pytest.mark.parametrize("request_", KEPT, ids=lambda one: str(type(one)))
def test_a_record_is_the_same_request_again(request_: Request) -> None:
    kept = json.loads(json.dumps(record(request_)))
    assert from_record(type(request_), kept) == request_
    needed = {"models", "text", "texts", "answers", "query", "pairs", "file", "relation", "subject"}
    short = {name: value for name, value in kept.items() if name in needed}
    again = from_record(type(request_), short)
    assert record(again) == short, "what stands at its default is left out"
    for name in kept:
        with pytest.raises(UserError, match=name):
            from_record(type(request_), {**kept, name: 1.5})


@pytest.mark.parametrize(("request_", "line"), PLAIN, ids=lambda one: str(type(one)))
def test_other_requests_are_the_commands_own_words(request_: Request, line: str) -> None:
    assert command_line(request_) == f"python -m lama_core {line}"


def test_the_words_of_data_reach_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    def see(*words: object, **options: object) -> None:
        raise Seen(*words, options.get("compute"), options.get("name"), options.get("replace"))

    monkeypatch.setattr(download, "get_dataset", see)
    monkeypatch.setattr(download, "import_dataset", see)
    for asked, expected in (
        (GetRequest("lama-uhn", True), ("lama-uhn", True, None, None)),
        (ImportRequest("-x.csv", "-n", True), (Path("-x.csv"), None, "-n", True)),
    ):
        said = invoke(arguments(asked))
        assert isinstance(said.exception, Seen), said.output
        assert said.exception.args == expected


@dataclass(frozen=True)
class Words:
    """A request of words alone."""

    command: ClassVar[tuple[str, ...]] = ("cloze",)

    text: str = argument()
    gold: str | None = None
    models: tuple[str, ...] = field(metadata={"option": "--model"}, default=())


@given(st.text(max_size=9), st.none() | st.text(max_size=9), st.lists(st.text(max_size=9)))
def test_any_text_stays_one_word_of_the_shell(
    text: str, gold: str | None, models: list[str]
) -> None:
    words = shlex.split(command_line(Words(text, gold, tuple(models)), "--json"))
    named = [word for name in models for word in ("--model", name)]
    at = ["--", text] if text.startswith("-") else [text]
    expected = ["cloze", *([] if gold is None else ["--gold", gold]), *named, "--json", *at]
    assert words[3:] == expected
