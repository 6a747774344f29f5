"""`python tests/golden/freeze.py`: measure everything anew and write `frozen.json`.

A number that moves needs a new scoring version of its kind of probe (and a line in CHANGELOG.md):
`test_golden` compares the numbers of the version that they were frozen with.
"""

import json
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[2]), str(Path(__file__).resolve().parent)]

import measured  # noqa: E402 - found beside this file


def main() -> None:
    """Write the goldens."""
    printed = measured.commands()
    content = {
        "versions": measured.VERSIONS,
        "runs": measured.bundled_runs(),
        "probes": measured.bundled_probes(),
        "studies": measured.bundled_studies(),
        "commands": {name: measured.kept(name, value) for name, value in printed.items()},
        "shapes": {name: measured.shape(value) for name, value in printed.items()},
    }
    text = json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False)
    measured.FROZEN.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
