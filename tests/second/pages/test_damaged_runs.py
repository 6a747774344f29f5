"""A damaged run is named on the pages, and the others are shown."""

import pytest
from chart_marks import charts
from opening import open_page

from lama_core.runs.find import runs_dir
from lama_core.runs.info import FACTS_FILE, RUN_FILE
from tools.bench.made_up import make_runs

pytestmark = pytest.mark.usefixtures("home")


@pytest.mark.parametrize("file", (FACTS_FILE, RUN_FILE))
@pytest.mark.parametrize(
    ("page", "params"),
    [
        ("results", {}),
        ("results", {"tab": "Compare"}),
        ("results", {"tab": "More", "chart": "P@k curves"}),
        ("facts", {}),
        ("data", {"tab": "Runs"}),
    ],
)
def test_a_page_names_a_damaged_run_and_shows_the_others(
    page: str, params: dict[str, str], file: str
) -> None:
    first, *_ = make_runs(runs_dir(), n_relations=2, n_facts=60)
    path = first.info.folder / file
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    app = open_page(page, data="made-up", **params)
    assert not app.exception
    said = " ".join(one.value for one in app.error).replace("\\", "")
    if page != "data":
        assert first.info.id in said and "Delete the run and make it again" in said
        assert "smollm2" in str(app.main).lower() or charts(app)
    else:
        assert app.get("arrow_data_frame") or app.dataframe
