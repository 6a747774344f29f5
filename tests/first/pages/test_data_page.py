"""The Data page: sources and relations, the import of a table, running and unfinished runs."""

import os
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from opening import open_page, press, said
from streamlit.testing.v1 import AppTest

from lama_core.datasets.library import download
from lama_core.probes.cloze.request import ProbeRequest
from lama_core.probes.prompts.spec import list_studies
from lama_core.progress import Progress, Result
from lama_core.requests import Request, StoredRequest, record
from lama_core.runs.find import runs_dir
from lama_core.runs.manage import list_kept
from lama_core.runs.parts import PARTS, REQUEST_FILE, StartedRun
from lama_tool_results.importing import ImportRunRequest
from pages.ui.data.datasets import PATTERN
from pages.ui.results.new_run import PROBING, WHOLE_ANSWERS
from pages.ui.shared import jobs, screens, visitors
from pages.ui.shared.jobs import IMPORT_ROOT, Job

pytestmark = pytest.mark.usefixtures("home")
PROBE = ProbeRequest("starter", ("minilm-mlm",), limit=5)
TEMPLATE = "The capital of [X] is [Y]."


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Request, object]]:
    """The jobs that pages start: name, request, folder; none is."""
    asked: list[tuple[str, Request, object]] = []
    monkeypatch.setattr(
        jobs,
        "start",
        lambda name, request, folder=IMPORT_ROOT, **_: (
            asked.append((name, request, folder)) or Job(name, None)
        ),
    )
    monkeypatch.setattr(jobs, "_JOBS", {})
    return asked


def open_import(path: Path) -> AppTest:
    app = open_page("data", tab="Import")
    app.text_input(key="import path 0").set_value(str(path)).run()
    assert not app.exception
    return app


def field(fields: object, label: str) -> object:
    return next(one for one in fields if one.label == label)  # type: ignore[attr-defined]


def test_a_table_is_previewed_mapped_and_given_its_template(
    tmp_path: Path, started: list[tuple[str, Request, object]]
) -> None:
    path = tmp_path / "cities.csv"
    path.write_text("Country,Object\nPeru,Lima\nUSA,\n")
    app = open_import(path)
    assert app.dataframe[0].value["Country"].tolist() == ["Peru", "USA"]
    assert field(app.selectbox, "Right answers").value == "Object"
    assert field(app.selectbox, "Subjects").value == "Country"  # guessed
    assert any("guessed" in one.value for one in app.caption)
    assert "Type a template" in app.info[0].value and not app.error
    press(app, "Import")
    assert "Type a template" in app.error[0].value and not app.info
    assert app.dataframe[1].value["line"].tolist() == [3]
    field(app.text_input, "Template").set_value("The capital of [X]").run()
    assert field(app.button, "Import").disabled and "has no" in app.error[0].value
    assert not started
    field(app.text_input, "Template").set_value(TEMPLATE).run()
    press(app, "Import")
    request = download.ImportRequest(str(path), subject="Country", template=(TEMPLATE,))
    assert [one for _, one, _ in started] == [request]


def test_the_example_table_is_imported_without_a_choice(tmp_path: Path) -> None:
    path = tmp_path / "facts.csv"
    path.write_text(PATTERN)
    dataset = download.import_dataset(path).dataset
    assert [len(dataset.facts_of(name)) for name in ("capital", "currency")] == [2, 2]
    assert not dataset.report.dropped


def test_columns_and_templates_are_guessed_and_each_relation_without_one_has_a_field(
    tmp_path: Path, started: list[tuple[str, Request, object]]
) -> None:
    path = tmp_path / "cities.csv"
    path.write_text("no,country,capital\n1,Peru,Lima\n2,USA,Washington\n")
    app = open_import(path)
    assert field(app.text_input, "Template").value == TEMPLATE
    press(app, "Import")
    guessed = {"subject": "country", "object": "capital"}
    facts = tmp_path / "facts.tsv"
    facts.write_text("subject\tobject\tpred\nPeru\tLima\tcapital\nPeru\tSol\tmoney\n")
    app = open_import(facts)
    assert field(app.text_input, "Template of capital").value == TEMPLATE  # made of its name
    field(app.text_input, "Template of money").set_value("").run()
    press(app, "Import")
    assert [one for _, one, _ in started] == [
        download.ImportRequest(str(path), template=(TEMPLATE,), **guessed),
        download.ImportRequest(str(facts), template=(f"capital={TEMPLATE}",)),
    ]


def test_an_import_says_what_was_excluded_and_leads_to_whole_answers(
    tmp_path: Path, started: list[tuple[str, Request, object]], gone: list[dict[str, Any]]
) -> None:
    path = tmp_path / "cities.csv"
    path.write_text("subject,object\nPeru,Lima\nUSA,New York\nChile\n")
    download.import_dataset(path, columns=download.user_table.ColumnRoles(templates={"": TEMPLATE}))
    job = Job("import data", None)
    job.results.append(Result("data", "cities"))
    job.over.set()
    jobs._JOBS["import data"] = job
    app = open_page("data", tab="Import")
    assert "Imported cities: 2 facts." in app.success[0].value
    assert app.dataframe[0].value[["line", "reason"]].values.tolist() == [
        [4, "1 cells, but the header has 2"]
    ]
    (note,) = [one.value for one in app.info]
    assert note.startswith("1 of 2 objects is more than one token in MiniLM") and "New York" in note
    press(app, "Rank whole answers")
    there = {**screens.NEW_RUN, "data": "cities", "run_rank": WHOLE_ANSWERS}
    assert gone[-1] == {"page": screens.DATA, **there}


def test_a_running_job_is_in_the_header_of_every_page_for_those_who_may_see_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(jobs, "_JOBS", {})
    assert "to running jobs" not in {one.key for one in open_page("help").button}
    job = Job("a run", None, owner="another")
    job.step = Progress("m", 40, 100, "queries")
    jobs._JOBS["a run"] = job
    for page in ("help", "models"):
        line = open_page(page).button(key="to running jobs")
        assert line.label.replace("\\", "") == "Run: 40 %"
    assert "cancel a run" in {one.key for one in open_page("data", tab="Runs").button}
    monkeypatch.setattr(visitors, "is_public", lambda: True)
    assert jobs.running() == []
    job.over.set()
    monkeypatch.setattr(visitors, "is_public", lambda: False)
    assert jobs.running() == []


def stored(request: Request) -> bytes:
    """A request's file, as of a run that was begun in this folder."""
    return msgspec.json.encode(StoredRequest(request.python, record(request), os.getcwd()))


def test_an_unfinished_run_is_resumed_by_the_request_that_began_it(
    tmp_path: Path, started: list[tuple[str, Request, object]]
) -> None:
    folder = runs_dir() / "x-0123456789.part" / PARTS
    folder.mkdir(parents=True)
    app = open_page("data", tab="Runs")
    assert any("An earlier version started this run" in one.value for one in app.caption)
    request = download.ImportRequest("x")
    (folder / REQUEST_FILE).write_bytes(stored(request))
    app = open_page("data", tab="Runs")
    assert any("can't make a run of" in one.value.replace("\\", "") for one in app.caption)
    (folder / REQUEST_FILE).write_bytes(stored(PROBE))
    app = open_page("data", tab="Runs")
    app.button(key="resume x-0123456789.part").click().run()
    assert started == [("resume x-0123456789.part", PROBE, Path.cwd())]


@pytest.mark.parametrize("n_parts", (0, 3))
def test_a_cancelled_run_is_resumed_in_its_row_by_its_own_job(
    started: list[tuple[str, Request, object]], n_parts: int
) -> None:
    job = Job("a probing run", SimpleNamespace(returncode=-15), request=PROBE, ending=True)
    job.over.set()
    jobs._JOBS[job.name] = job
    if n_parts:
        folder = runs_dir() / "x-0123456789.part" / PARTS
        folder.mkdir(parents=True)
        one = StartedRun(PROBE.python, record(PROBE), "", "", "cloze", "minilm-mlm", "starter",
                         "manual", 12)  # fmt: skip
        (folder / REQUEST_FILE).write_bytes(msgspec.json.encode(one))
        for number in range(n_parts):
            (folder / f"{number}.parquet").touch()
    app = open_page("data", tab="Runs")
    (row,) = [one.proto.text.replace("\\", "") for one in app.get("progress")]
    kept = "3 of 12 parts kept." if n_parts else "0 finished parts kept."
    assert row.endswith(f": cancelled, {kept}") and ("5 facts a relation" in row) == bool(n_parts)
    assert sum(one.label == "Resume" for one in app.button) == 1
    app.button(key="resume a probing run").click().run()
    assert [one[:2] for one in started] == [("a probing run", PROBE)]
    # The form of a new run says the same.
    jobs._JOBS[PROBING] = replace(job, name=PROBING)
    (said,) = [one.value.replace("\\", "") for one in open_page("data", **screens.NEW_RUN).info]
    assert said == f"Run: cancelled, {kept}"


def test_analogy_questions_are_shown_with_their_right_choice(tmp_path: Path) -> None:
    path = tmp_path / "sat.txt"
    path.write_text("FROM TESTS\nup down n:n\nin out n:n\ncat dog n:n\na\n")
    download.import_dataset(path)
    app = open_page("data", source="sat")
    assert not app.exception
    (found,) = [table for one in app.dataframe if "stem" in (table := one.value)]
    assert found.iloc[0].tolist() == ["up : down", "in : out", "in : out, cat : dog", "FROM TESTS"]
    assert any(
        "`lama-explorer analogy questions --dataset sat`" in one.value for one in app.caption
    )


def test_runs_have_titles_and_ids_in_urls_choose_them() -> None:
    run_id = next(run.name for run in list_kept() if "step0-" in run.name)
    app = open_page("data", tab="Runs", run=run_id)
    (title,) = [one.value.replace("\\", "") for one in app.subheader]
    name = r"MiniLM-MLM, step 0 on starter, manual, 20 facts a relation, \d+ [A-Z][a-z]{2}"
    assert re.fullmatch(rf"{name}( \d{{4}})?", title)
    assert any(f"**run**: {run_id}" in one.value.replace("\\", "") for one in app.markdown)
    assert any("**P@1 " in one.value for one in app.markdown)
    study = max(list_studies(), key=lambda study: study.info.n)
    app = open_page("data", tab="Runs", run=study.info.id)
    parts = [study.relation(name) for name in study.relations]
    n = sum((len(one.train) + len(one.test)) * len(one.rows) for one in parts)
    assert f"**{study.info.n} test facts** of 8 relations, 151 prompts, {n:,} queries" in said(app)
    table = app.dataframe[0].value
    assert len(table) == len(list_kept()) and set(table) == {"run", "data", "scored", "P@1"}


@pytest.mark.parametrize("names", ("subject,object,rank", "Entity,Answer,predicted"))
def test_results_are_recognised_or_asked_for_then_checked_and_saved(
    tmp_path: Path, started: list[tuple[str, Request, object]], names: str
) -> None:
    path = tmp_path / "results.csv"
    path.write_text(f"{names}\nPeru,Lima,2\n")
    app = open_import(path)
    role = "rank"
    if "rank" not in names:
        role = "predictions"
        assert "Choose what the table has" in app.info[0].value
        app.segmented_control[0].set_value("results of models").run()
    field(app.text_input, "Model").set_value("toy").run()
    press(app, "Check")
    roles = zip(("subject", "object", role), names.split(","), strict=True)
    columns = [f"{role}={name}" for role, name in roles]
    request = ImportRunRequest(str(path), model="toy", column=columns)
    assert [one for _, one, _ in started] == [replace(request, dry_run=True)]
    job = Job("import results", None, notes=["1 row of 1 relation."])
    job.over.set()
    jobs._JOBS[job.name] = job
    app.run()
    assert "1 row of 1 relation." in said(app)
    press(app, "Save as a run")
    assert started[-1][1] == request
