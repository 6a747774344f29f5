"""`prompts ...` on the command line, with a fake model."""

import json
import re
from pathlib import Path

import pytest
import typer
from probe_fakes import hash_model, write_dataset

from lama_core.cli import prompts as command
from lama_core.errors import UserError
from tools.training import command as train
from tools.training.corpus import corpus_from_files

RUNNER = CliRunner()


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> typer.Typer:
    monkeypatch.setenv("LAMA_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("lama_core.models.loader.load_model", lambda name, **_: hash_model(name))
    app = typer.Typer()
    command.register(app)

    @app.command()
    def other() -> None:
        """A second command, so that `prompts` keeps its name."""

    return app


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_dataset(tmp_path / "lama", n_facts=60)


def _json(app: typer.Typer, *words: str) -> object:
    result = RUNNER.invoke(app, ["prompts", *words, "--json"])
    assert result.exit_code == 0, result.exception
    return json.loads(result.stdout)


def test_list_shows_the_datasets_own_prompts_with_their_sets(app: typer.Typer, data: Path) -> None:
    rows = _json(app, "list", "--dataset", str(data), "--relation", "P19")
    assert rows[0] == {  # type: ignore[index]
        "relation": "P19",
        "template": "[X] was born in [Y] .",
        "origins": ["manual"],
        "weight": None,
    }
    assert len(rows) == 3  # type: ignore[arg-type]


def test_select_lists_prompts_by_training_accuracy(app: typer.Typer, data: Path) -> None:
    rows = _json(app, "select", "--dataset", str(data), "--model", "hash", "--relation", "P19")
    train = [row["train"] for row in rows]  # type: ignore[attr-defined, union-attr]
    assert train == sorted(train, reverse=True)


def test_fit_prints_the_table_and_the_weights(app: typer.Typer, data: Path) -> None:
    found = _json(
        app, "fit", "--dataset", str(data), "--model", "hash", "--relation", "P19",
        "--set", "man+para", "--recipe", "released", "--recipe", "exact",
    )  # fmt: skip
    assert isinstance(found, dict)
    methods = [row["method"] for row in found["table"]]
    assert methods == ["top1", "top3", "top5", "optimised", "optimised (exact)", "oracle"]
    optimised = next(one for one in found["ensembles"] if one["method"] == "optimised")
    assert sum(optimised["weights"].values()) == pytest.approx(1, abs=1e-3)
    assert found["runs"]


def test_mine_writes_an_lpaqa_file_that_is_read_again(
    app: typer.Typer, data: Path, tmp_path: Path
) -> None:
    text = tmp_path / "text.txt"
    text.write_text("".join(f"Person {n} grew up in City{n * 7 % 40}.\n" for n in range(60)))
    out = tmp_path / "mined" / "mine"
    rows = _json(app, "mine", "P19", "--dataset", str(data), "--text", str(text), "--out", str(out))
    assert rows[0]["template"] == "[X] grew up in [Y] ."  # type: ignore[index]
    listed = _json(
        app, "list", "--dataset", str(data), "--relation", "P19", "--prompts", str(out.parent)
    )
    assert "[X] grew up in [Y] ." in [row["template"] for row in listed]  # type: ignore[attr-defined, union-attr]


def test_mine_without_a_text_reads_the_corpus_of_the_embedded_model(
    app: typer.Typer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text('{"sub_label": "Dante", "obj_label": "Florence"}\n', encoding="utf-8")
    asked = ["prompts", "mine", "P19", "--pairs", str(pairs), "--json"]
    with pytest.raises(UserError, match="corpus is not built here"):
        RUNNER.invoke(app, asked)
    found: list[Path] = []  # where `train-mlm` puts its run, and with it the corpus
    monkeypatch.setattr(
        "tools.training.outcome.run_recipe",
        lambda *_, run_folder, **__: found.append(run_folder) or _stop(),
    )
    train.register(app)
    with pytest.raises(UserError, match="stopped"):
        RUNNER.invoke(app, ["train-mlm", "--out", str(tmp_path / "o")])
    text = tmp_path / "text.txt"
    text.write_text("Dante was born in Florence.\n", encoding="utf-8")
    corpus_from_files([text], found[0] / "corpus")
    (row,) = json.loads(RUNNER.invoke(app, asked).stdout)
    assert row["template"] == "[X] was born in [Y] ."


def _stop() -> None:
    raise UserError("stopped")


def test_analyse_reads_what_fit_saved(app: typer.Typer, data: Path) -> None:
    _json(app, "fit", "--dataset", str(data), "--model", "hash", "--relation", "P19",
          "--set", "man+para")  # fmt: skip
    found = _json(app, "analyse", "lama-hash", "--set", "man+para")
    assert found["divergence"]["n_pairs"] == 3  # type: ignore[call-overload, index]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["fit", "--set", "mine+mann"], "did you mean 'mine\\+man'"),
        (["fit", "--recipe", "releasd"], "did you mean 'released'"),
        (["fit", "--ranking", "rawest"], "Unknown ranking"),
        (["fit", "--template", "[X] a [Y]"], "belong to one relation"),
        (["paraphrase", "[X] and [X] in [Y]"], "has 2 \\[X\\]"),
        (["analyse", "none"], "There is no study 'none'"),
    ],
)
def test_a_mistake_is_one_sentence(
    app: typer.Typer, data: Path, words: list[str], said: str
) -> None:
    more = ["--dataset", str(data), "--model", "hash"] if words[0] == "fit" else []
    result = RUNNER.invoke(app, ["prompts", *words, *more])
    assert isinstance(result.exception, UserError)
    assert result.exception.args[0]
    assert re.search(said, str(result.exception))


def test_asking_back_no_object_is_refused(app: typer.Typer) -> None:
    said = RUNNER.invoke(app, ["prompts", "both-ways", "any-study", "--objects", "0"])
    assert said.exit_code == 2
    assert "--objects" in said.output
