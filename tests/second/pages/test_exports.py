"""What pages give away: its command or its lines of Python give the screen's own numbers.

Queries and the charts of More: tests/first/pages/test_every_query.py and test_views_on_pages.py.
"""

import ast
import json
import math
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from calling import invoke
from opening import open_page
from project_files import ROOT

import lama_core as lama
from lama_core.probes.prompts.spec import Study
from lama_core.requests import Request, command_line, python_call
from lama_core.runs.chosen_facts import text_of
from lama_core.runs.find import load_run
from lama_core.runs.tags import change_tags
from pages.ui.shared import export, screens
from pages.ui.shared.url_state import title_of
from tools.bench.made_up import make_runs

MODEL = "minilm-mlm"
SMALL = ("--dataset", "starter", "--model", MODEL, "--relation", "P36", "--relation", "P30",
         "--limit", "8", "--json")  # fmt: skip
STUDY = {"relation": "P36 capital"}  # of the study that the user made
ENSEMBLES = {**STUDY, **screens.PROMPTS, "relation_part": screens.ENSEMBLES}
OF_ONE, OF_ALL = screens.ONE_RELATION, screens.ALL_RELATIONS


@dataclass(frozen=True)
class Taken:
    """What a bar gives: the JSON file, and how to get the same."""

    content: dict[str, Any]
    how: tuple[Request, ...] | str

    @property
    def rows(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.content["rows"]
        return rows


@pytest.fixture(scope="module", autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A home with a small study, and runs that leave out facts of their own."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("home")
        patch.setenv("LAMA_HOME", str(folder))
        make_runs(folder / "data" / "runs", n_relations=6, n_facts=600)
        patch.chdir(ROOT)
        ask("prompts", "fit", *SMALL, "--prompts", "assets/prompts/starter", "--train-limit", "10",
            "--candidates", "common", "--set", "manual", "--set", "mine+man",
            "--set", "man+para")  # fmt: skip
        yield


def own_study(studies: Sequence[Study]) -> Study:
    """The study that isn't bundled."""
    return next(study for study in studies if not study.info.bundled)


def ask(*words: str) -> Any:
    """What a command prints as JSON."""
    said = invoke(words)
    assert said.exit_code == 0, said.output
    return json.loads(said.stdout)


def answers(taken: Taken, *more: str) -> list[Any]:
    """What the commands print, in their order. more: further words to each."""
    assert isinstance(taken.how, tuple)
    printed = [ask(*shlex.split(command_line(how, "--json", *more))[1:]) for how in taken.how]
    for how in () if more else taken.how:
        (found,) = values(replace(taken, how=python_call(how)), lama=lama)
        assert len(found if isinstance(found, pd.DataFrame) else found.frame)
    return printed


def values(taken: Taken, **names: Any) -> list[Any]:
    """What each expression of the Python lines is worth, in their order; statements are run."""
    assert isinstance(taken.how, str)
    found = []
    for node in ast.parse(taken.how).body:
        code = ast.unparse(node)
        if isinstance(node, ast.Expr):
            exec(f"value = {code}", names)
            found.append(names.pop("value"))
        else:
            exec(code, names)
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                found.append(names[node.targets[0].id])
    return found


@pytest.fixture
def take(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Taken]:
    """Open a page and take away what the bar `name` gives."""
    files: dict[str, Callable[[], str]] = {}
    ways: dict[str, tuple[Request, ...] | str] = {}
    draw = export.draw_command

    def button(_: str, data: Callable[[], str], *__: Any, key: str, **___: Any) -> None:
        files[key] = data

    def draw_command(how: Request | tuple[Request, ...] | str, *, key: str) -> None:
        ways[key.removesuffix(" command")] = how if isinstance(how, str | tuple) else (how,)
        draw(how, key=key)

    def opened(page: str, name: str, **params: str | list[str]) -> Taken:
        app = open_page(page, **params)
        assert not app.error
        how = ways[name]
        shown = how if isinstance(how, str) else "\n".join(map(command_line, how))
        assert shown in [code.value for code in app.code]
        return Taken(json.loads(files[f"{name} json"]()), how)

    monkeypatch.setattr("pages.ui.prompts.study_choice.default_study", own_study)
    monkeypatch.setattr("streamlit.download_button", button)
    monkeypatch.setattr(export, "draw_command", draw_command)
    return opened


def assert_same(ours: Any, theirs: Any) -> None:
    """Equal at every depth; None and NaN are the same."""
    if isinstance(ours, dict):
        assert ours.keys() == theirs.keys()
        for key, value in ours.items():
            assert_same(value, theirs[key])
    elif isinstance(ours, list | tuple):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            assert_same(one, other)
    elif isinstance(ours, float) or isinstance(theirs, float):
        known = ours is not None and not math.isnan(ours)
        assert known == (theirs is not None and not math.isnan(theirs))
        if known:
            assert ours == pytest.approx(theirs, rel=1e-5, abs=1e-9)
    else:
        assert ours == theirs


def assert_rows_agree(rows: list[dict[str, Any]], printed: list[dict[str, Any]]) -> None:
    """Row by row, in all columns that both have; there are some."""
    assert len(rows) == len(printed) > 0
    common = [key for key in rows[0] if key in printed[0]]
    assert len(common) >= 4
    for row, line in zip(rows, printed, strict=True):
        assert_same({key: row[key] for key in common}, {key: line[key] for key in common})


def in_page(table: pd.DataFrame) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(export.json_of(table, {}))["rows"]
    return rows


@pytest.mark.parametrize("name", ("totals", "relations"))
def test_scores_come_from_results(take: Callable[..., Taken], name: str) -> None:
    taken = take("results", name, data="starter", p_at="5", ranking="raw",
                 relations=["IsA", "P36 capital", "P30 continent"])  # fmt: skip
    printed = [line for lines in answers(taken) for line in lines]
    assert_rows_agree(taken.rows, printed)
    assert {"p_at_k", "mrr", "n_excluded"} <= printed[0].keys()
    if name == "totals":
        over = [(row["by"], row["source"], row["mean_over"]) for row in taken.rows]
        assert ("source", "ConceptNet", "facts") in over and ("source", "TREx", "facts") not in over


def test_a_comparison_comes_from_compare(take: Callable[..., Taken]) -> None:
    taken = take("results", "comparison", tab="Compare", data="starter", p_at="10")
    (printed,) = answers(taken)
    assert_rows_agree(taken.rows, printed["relations"])
    for unit in ("over_facts", "over_relations"):
        ours = taken.content["made_with"][unit]
        assert_same(ours, {name: printed[unit][name] for name in ours})


def test_facts_come_from_lines_of_python(take: Callable[..., Taken]) -> None:
    taken = take("facts", "facts", data="starter", relations=["P36 capital"], right=[MODEL])
    facts = next(one for one in values(taken) if isinstance(one, pd.DataFrame))
    shown = [(row["subject"], row["object"]) for row in taken.rows]
    assert shown == list(zip(facts["subject"], facts["object"], strict=True))
    assert 0 < len(shown) < 400
    first = taken.rows[0]
    assert (first[f"{MODEL} rank"], type(first[f"{MODEL} rank"])) == (1, int)
    assert "✓" not in first[f"{MODEL} answer"] and first["query"].count("[MASK]") == 1
    assert first[f"{MODEL} log_prob"] < 0 and first[f"{MODEL} left out"] is None


def test_wrong_answers_come_from_lines_of_python(take: Callable[..., Taken]) -> None:
    taken = take("facts", "wrong-answers", view="Frequent answers", relations=["P36 capital"])
    words = [one for one in values(taken) if isinstance(one, pd.DataFrame)][-1]
    assert_rows_agree(taken.rows, in_page(words))


def test_tags_go_with_the_facts(take: Callable[..., Taken]) -> None:
    info = load_run("made_up-gpt2").info
    change_tags(info, [("P101:100", 0)], add=["odd", "wrong gold"])
    taken = take("facts", "facts", data="made-up", models=["gpt2"], tag=["odd"])
    assert [row["gpt2 tags"] for row in taken.rows] == ["odd; wrong gold"]
    assert values(taken)[-2] == [("odd", "wrong gold")]


def test_chosen_facts_go_with_every_export(take: Callable[..., Taken]) -> None:
    facts = load_run("made_up-gpt2").facts["fact_id"][::9].tolist()
    there: dict[str, Any] = {"data": "made-up", "only": text_of([load_run("made_up-gpt2")], facts)}
    for page, name in (("results", "relations"), ("facts", "facts")):
        taken = take(page, name, **there)
        assert taken.content["made_with"]["chosen_facts"] == sorted(facts)
        if name == "facts":
            listed = next(one for one in values(taken) if isinstance(one, pd.DataFrame))
            assert {*listed["fact_id"]} == {row["fact_id"] for row in taken.rows} <= {*facts}
        else:
            (printed,) = answers(taken)
            assert_rows_agree(taken.rows, printed)


def test_analogy_probes_come_from_probe(take: Callable[..., Taken]) -> None:
    taken = take("results", "analogy-probes", tab="More", chart="Analogy probes",
                 probed=[title_of(MODEL)], setting="supervised")  # fmt: skip
    ours = [row for row in taken.rows if not row["published"]]
    assert {row["model"] for row in ours} == {MODEL} != {row["model"] for row in taken.rows}
    assert_rows_agree(ours, [line for lines in answers(taken) for line in lines])


def test_prompts_come_from_select(take: Callable[..., Taken], tmp_path: Path) -> None:
    taken = take("prompts", "prompts", **STUDY, set="man+para")
    (printed,) = answers(taken, "--out", str(tmp_path))
    found = {line["template"]: line for line in printed}
    for row in taken.rows:
        line = found[row["prompt"]]
        assert (row["training"], row["test"]) == pytest.approx(
            (100 * line["train"], 100 * line["test"])
        )
        assert row["only it"] == line["only_right"]


@pytest.mark.parametrize("view", (OF_ONE, OF_ALL))
def test_ensembles_come_from_fit(take: Callable[..., Taken], tmp_path: Path, view: str) -> None:
    taken = take("results", "ensembles", **ENSEMBLES, prompts_view=view)
    (printed,) = answers(taken, "--out", str(tmp_path))
    for row in taken.rows:
        lines = [
            line["micro"]
            for line in printed["relations"]
            if (line["combination"], line["method"]) == (row["set"], row["method"])
        ]
        assert row["value"] == pytest.approx(100 * sum(lines) / len(lines))
        assert row["relations"] == len(lines)
    assert (taken.rows[0]["relations"] > 1) == (view == OF_ALL)


def test_weights_come_from_lines_of_python(take: Callable[..., Taken]) -> None:
    taken = take("results", "weights", **ENSEMBLES, prompts_view=OF_ONE, start="top3")
    assert values(taken)[-1] == pytest.approx(taken.content["made_with"]["p_at_1"])
    assert len(taken.rows) == 3


def test_divergence_comes_from_analyse(take: Callable[..., Taken]) -> None:
    part = {"prompts_view": OF_ALL, "prompts_part": screens.ANALYSES}
    taken = take("results", "divergence", **STUDY, **screens.PROMPTS, **part)
    (printed,) = answers(taken)
    rows = pd.DataFrame(taken.rows)
    assert printed["divergence"]["n_pairs"] == len(rows)
    correlation = rows["distance"].corr(rows["divergence"])
    assert printed["divergence"]["correlation"] == pytest.approx(correlation)


def test_a_csv_begins_with_a_byte_order_mark_and_other_files_do_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taken: dict[str, Any] = {}
    monkeypatch.setattr(
        "streamlit.download_button", lambda _, data, name, *__, **___: taken.update({name: data})
    )
    for data in ("é,1\n", "é,1\n".encode(), "\ufeffé,1\n", lambda: "é,1\n"):
        export.draw_download("CSV", data, "x.csv")  # type: ignore[arg-type]
        assert taken["x.csv"]() == b"\xef\xbb\xbf" + "é,1\n".encode()
    export.draw_download("JSON", "[]", "x.json")
    assert taken["x.json"] == "[]"
