"""A place to run whole commands in: a home with runs and data, and files to name."""

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from data_files import write_lama
from forked import Ended, forked

from lama_core import cli
from lama_core.downloads import transfer
from lama_core.paths import ASSETS

CLOSED = "http://127.0.0.1:9"
NOWHERE = {  # every address leads to a closed port: nothing is fetched
    "HF_ENDPOINT": CLOSED,
    **{f"{kind}_proxy": CLOSED for kind in ("http", "https", "all")},
    **{f"{kind}_PROXY": CLOSED for kind in ("HTTP", "HTTPS", "ALL")},
    "NO_PROXY": "",
    "no_proxy": "",
    "PIP_RETRIES": "0",
    "COLUMNS": "120",
}
MADE = (
    "probe --dataset starter --relation P36 --model minilm-mlm --limit 3",
    "prompts select --relation P36 --limit 3 --train-limit 3",
    "analogy probe --probe type --relation 'animal - young' --limit 3",
    "data import toy --name toy",
    "results --by type",
)


class Sandbox:
    """A place for commands.

    `work` is where they run, and holds files to name; `home` is theirs; in `user`
    and `tmp` nothing should be written. `first` is what a home begins with.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.work, self.home, self.first, self.user, self.tmp = (
            root / name for name in ("work", "home", "first", "user", "tmp")
        )
        for folder in (self.work, self.first, self.user, self.tmp):
            folder.mkdir()
        self.furnish()
        for words in MADE:
            ended = self.run(words, home=str(self.first))
            assert ended.status == 0, ended.said

    def run(self, words: str | Sequence[str], *, home: str | None = None, **around: Any) -> Ended:
        """How a command ends, and what it says. home: LAMA_HOME, if another. around: see forked."""
        environment = {"HOME": str(self.user), "TMPDIR": str(self.tmp), "LAMA_HOME": str(self.home)}
        if home is not None:
            environment["LAMA_HOME"] = home

        def act() -> None:
            os.chdir(self.work)
            os.environ.update(NOWHERE | environment)
            transfer.Patience = partial(transfer.Patience, pause=0)  # type: ignore[misc, assignment]
            sys.argv = ["lama_core", *(shlex.split(words) if isinstance(words, str) else words)]
            cli.main()

        return forked(act, **around)

    def start_anew(self) -> None:
        """The home as it was at first."""
        shutil.rmtree(self.home, ignore_errors=True)
        shutil.copytree(self.first, self.home)

    def furnish(self) -> None:
        """Small files that are right, and such as nobody should open."""
        toy = self.work / "toy"
        relation = {"relation": "P36", "label": "capital", "type": "1-1",
                    "template": "The capital of [X] is [Y] ."}  # fmt: skip
        pairs = [("France", "Paris"), ("Italy", "Rome"), ("Japan", "Tokyo"), ("Spain", "Madrid")]
        facts = [{"uuid": name, "sub_label": name, "obj_label": city, "sub_uri": name,
                  "obj_uri": city} for name, city in pairs]  # fmt: skip
        write_lama(toy, [relation], {"P36": facts})
        table = "".join(f"{name},capital,{city}\n" for name, city in pairs)
        (self.work / "facts.csv").write_text(f"subject,relation,object\n{table}")
        (self.work / "results.csv").write_text("subject,relation,object,rank\nFrance,P36,Paris,2\n")
        text = "".join(f"{city} is the capital of {name}.\n\n" for name, city in pairs)
        (self.work / "text.txt").write_text(text)
        (self.work / "words.txt").write_text("paris\nrome\nlondon\n")
        (self.work / "sentences.csv").write_text("text,gold\nRome is in ___.,Italy\n")
        (self.work / "questions.jsonl").write_text(
            '{"stem": ["cat", "cats"], "choice": [["dog", "dogs"], ["a", "b"]], "answer": 0}\n'
        )
        (self.work / "binary").write_bytes(bytes(range(256)) * 40)
        (self.work / "empty").touch()
        (self.work / "loop").symlink_to("loop")
        os.mkfifo(self.work / "pipe")


def bundled(name: str) -> str:
    """The bundled run whose name begins so, by its whole name."""
    (found,) = (ASSETS / "results").glob(f"{name}-*")
    return found.name
