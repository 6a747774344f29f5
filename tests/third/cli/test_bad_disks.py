"""On a disk that is read-only, full or has no file left, what reads works; what writes says why."""

from pathlib import Path

import pytest
from disks import mounted
from forked import check
from sandbox import Sandbox, bundled

from lama_core.paths import ASSETS

DISKS = {"read-only": "ro,size=16m", "full": "size=64k", "no files left": "nr_inodes=4,size=16m"}
READS = (
    "models list --json",
    "models info minilm-mlm",
    "models get minilm-mlm",
    "data list",
    "runs list --json",
    "results --by type --json",
    "cloze --model minilm-mlm 'Rome is in [MASK] .'",
    "relation P36 --subject France --model minilm-mlm --json",
    "prompts list --relation P36",
    "compare RUN OTHER",
    "prompts analyse STUDY",
    "analogy solve tokyo japan paris ___",
)
WRITES = (
    "probe --dataset starter --relation P36 --relation P19 --model minilm-mlm --limit 40",
    "prompts select --relation P36 --limit 9",
    "analogy probe --probe type --relation 'animal - young' --limit 9",
    f"data import {ASSETS / 'datasets' / 'starter'} --name own",
    "data get lama",
    "models add owner/name",
    "models get bert-base-cased",
)


@pytest.mark.parametrize("disk", DISKS)
def test_a_bad_disk_stops_only_what_writes(disk: str, sandbox: Sandbox, tmp_path: Path) -> None:
    runs = {
        "RUN": bundled("starter-minilm_mlm-manual"),
        "OTHER": bundled("starter-smollm2_135m-manual"),
        "STUDY": bundled("starter-minilm_mlm-study"),
    }
    with mounted(tmp_path / "disk", DISKS[disk]) as home:
        if home is None:
            pytest.skip("no file system can be mounted here")
        for words in (*READS, *WRITES):
            named = " ".join(runs.get(word, word) for word in words.split(" "))
            ended = sandbox.run(named, home=str(home))
            check(ended, (disk, words))
            assert ended.status == 0 or words in WRITES, (disk, words, ended.said)
