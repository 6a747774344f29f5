"""The commands of the documents work in the order of reading, and their numbers are printed."""

import subprocess
import sys
from pathlib import Path

import pytest
from project_files import ROOT

PAGE = """# Page

The command `lama-explorer models` lists models, and `lama-explorer cloze "A ___."
--model server:http://localhost#x` isn't closed on its line.

```sh
lama-explorer data import lakes.csv   # isn't there
lama-explorer app
```

<!-- numbers: results starter-minilm_mlm-manual --by source -->
It has 29.5 on the 9,365 facts of T-REx, P@1 of `P36` aside, and 17.25 on no facts.

```text
relation,subject,object,template
lake,Sweden,Vanern,The largest lake of [X] is [Y] .
```

    lama-explorer data import \\
      rivers.csv
"""


def checked(*paths: Path) -> subprocess.CompletedProcess[str]:
    """Run the tool on documents; without a path, on all."""
    command = [sys.executable, "-m", "tools.documents", *map(str, paths)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


@pytest.mark.usefixtures("users_models")
def test_the_documents_commands_run_and_print_the_documents_numbers() -> None:
    done = checked()
    wrong = [line for line in done.stdout.splitlines() if line.startswith("WRONG")]
    assert (done.returncode, wrong) == (0, []), done.stderr
    places = {line[8:].partition(":")[0].split(" ")[0] for line in done.stdout.splitlines()}
    assert {"README.md", "docs/adding.md", "assets/results/README.md", "assets/models/catalog.json",
            "assets/lessons/6-where-knowledge-comes-from.toml",
            "assets/models/minilm-mlm/README.md"} <= places  # fmt: skip


def test_what_fails_and_what_is_not_run_is_listed_with_its_reason(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    done = checked(page)
    assert done.returncode == 1
    *lines, counts = done.stdout.splitlines()
    assert counts == "2 right, 1 not run, 2 WRONG", done.stdout
    found = [(line[:7].strip(), line.partition(": ")[2].partition("  ")[::2]) for line in lines]
    assert found[1:3] == [
        ("WRONG", ("lama-explorer data import lakes.csv # isn't there",
                   "UserError: No such file or folder: lakes.csv.")),
        ("not run", ("lama-explorer app", "opens the app; .ci/run does it")),
    ]  # fmt: skip
    assert [(state, about[0]) for state, about in (found[0], found[3])] == [
        ("right", "lama-explorer models"), ("right", "lama-explorer data import rivers.csv"),
    ]  # fmt: skip
    assert found[4][1][1] == "doesn't print 17.25"
