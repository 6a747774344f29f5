"""A user's mistake, whatever the command: one sentence, nothing else, and exit status 2."""

import os
from pathlib import Path

import pytest
from analogy_fakes import CAPITALS
from calling import call

from lama_core.files import MAX_FOLDERS

TEXT = "The capital of Norway is ___."
DEEP = " inside each other; the maximum is"
PROBE = "probe --dataset starter --relation P36 --model minilm-mlm --limit 1 --out"
STATEMENTS = "statements --dataset starter --model minilm-mlm"
FIT = "prompts fit --dataset starter"
BATS = "analogy probe --dataset BATS --model minilm-mlm"
# Words, separated by |, and a part of what is said.
MISTAKES = (
    ("cloze|x ___|--mined", "Unknown option: --mined"),
    ("prob|--dataset|starter", "Unexpected command 'prob' (did you mean 'probe'?)"),
    (f"cloze|{TEXT}|--open-book|starter", "tools.training.corpus"),
    (f"cloze|{TEXT}|--open-book|EMPTY", "has no text"),
    ("relation", "RELATION is missing"),
    (f"rank|{TEXT}|--answer|Oslo|--part|whole", '"statement", "answer", "conditional"'),
    ("sentences|Only one.", "number of sentences is 1"),
    (f"batch|{TEXT}|x.csv", "Unexpected argument 'x.csv'"),
    ("cloze|-5 degrees is ___.", "write the options first, then -- and the text"),
    ("batch|nowhere.csv", "nowhere.csv can't be read: No such file"),
    (f"inspect|{TEXT}|--method|gradients", "--method needs --lens tokens"),
    (f"inspect|{TEXT}|--lens|trace|--subject|Peru", "doesn't contain the subject 'Peru'"),
    (f"inspect|{TEXT}|--lens|tokens|--method|gradients|--steps|7", "steps can't be 7"),
    ("analogy|solve|Paris|France|___", "three words and a blank"),
    ("analogy|solve|a is to b as c is to ___|--template|to-as", "can't be used with a sentence"),
    ("analogy|score|Paris|a:b|c:d", "Not a pair: 'Paris'"),
    (f"{BATS} --relation tiny", "This relation has 2."),
    ("analogy probe --dataset BATS --vectors /nowhere.txt", "can't be read"),
    (f"{STATEMENTS} --answers common", "Unknown answers 'common': choose relation, or file:PATH."),
    (f"{FIT} --set mine+mann", "did you mean 'mine+man'"),
    ("prompts|fit|--dataset|starter|--template|[X] a [Y]", "apply to a single relation"),
    ("prompts|paraphrase|[X] and [X] in [Y]", "has 2 [X]"),
    ("results no-such-run", "There is no run 'no-such-run'"),
    (f"{PROBE}=", "The path is empty: name a file or folder."),
    (f"{PROBE} /tmp{'/a' * 980}", f"982 folders{DEEP} {MAX_FOLDERS}."),
    (f"models info {os.devnull}", f"Not a model folder: {os.devnull}."),
    (f"cloze|{TEXT}|--model|~no-such-user/x", "Error: "),
    (
        "prompts|paraphrase|--relation|P36|--out|EMPTY|[X] is in [Y] .",
        "a part of the path isn't a folder",
    ),
    ("data get lpaka", "unknown published source 'lpaka' (did you mean 'lpaqa'?)"),
)


@pytest.fixture
def places(home: Path, tmp_path: Path) -> dict[str, str]:
    """Data to name: analogies in BATS's folders, of which one has two pairs; an empty file."""
    folder = tmp_path / "bats" / "3_Encyclopedic_semantics"
    folder.mkdir(parents=True)
    for name, pairs in (("E01 [country - capital]", CAPITALS), ("E02 [tiny]", CAPITALS[:2])):
        lines = "".join(f"{head}\t{tail}\n" for head, tail in pairs)
        (folder / f"{name}.txt").write_text(lines, encoding="utf-8")
    (tmp_path / "empty.txt").touch()
    return {"BATS": str(folder.parent), "EMPTY": str(tmp_path / "empty.txt")}


@pytest.mark.parametrize(("words", "said"), MISTAKES, ids=range(len(MISTAKES)))
def test_a_mistake_is_one_sentence(words: str, said: str, places: dict[str, str]) -> None:
    typed = words.split("|") if "|" in words else words.split(" ")
    status, out, errors = call(*(places.get(word, word) for word in typed))
    assert (status, out) == (2, ""), errors
    (line,) = (one for one in errors.splitlines() if one.strip())
    assert line.startswith("Error: ") and places.get(said, said) in line
