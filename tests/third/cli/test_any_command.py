"""Whatever is typed, and wherever: an answer, or one line about the mistake, and nothing else.

Each command is right at first; then words are replaced, dropped, added or misspelt, and the
surroundings changed. What follows `|` keeps it small, or harmless, and stays as it is.
"""

import json
import shlex
from contextlib import suppress

import pytest
from cyclopts.exceptions import MissingArgumentError
from forked import check, look
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sandbox import Sandbox

from lama_core import cli, plugins
from lama_core.paths import ASSETS

RUN, OTHER = "starter-minilm_mlm-manual", "starter-smollm2_135m-manual"
STUDY = "starter-minilm_mlm-study"
COMMANDS = f"""
models --json
models list
models info minilm-mlm --json
models get bert-base-cased
models add owner/name
models convert toy --out out
models forget owner/name
cloze 'Paris is the capital of [MASK] .' --top-k 5 --candidates full --gold France --json
cloze 'A ___ barks.' --context left --precision fp32 --candidates file:words.txt
cloze 'Rome is in ___.' --open-book text.txt --device cpu
relation P36 --subject France --model minilm-mlm --json
grid 'Paris is in ___.' 'Rome is in ___.' --groups 2 --top-k 3 --json
inspect 'The capital of Norway is ___.' --lens tokens --method gradients --steps 2 --json
inspect 'The capital of Norway is ___.' --lens layers
rank 'The capital of Brazil is ___.' --answer 'Rio de Janeiro' --answer Brasilia --json
batch sentences.csv --model minilm-mlm
sentences 'The keys are here.' 'The keys is here.' --model minilm-mlm
data list --json
plugins list --json
plugins new mine
data get lama
data import facts.csv --name mine
data import toy --replace --name toy
data rename toy toys
data delete toy --yes
data find-cooccurring --out stated.tsv.gz --prompts manual --without text | --corpus text.txt
probe --dataset toy --ranking raw --candidates relation --json | --relation P36 --limit 2
probe --dataset starter --prompts paraphrases | --relation P36 --limit 2 --model minilm-mlm
statements --dataset toy --aggregate mean | --relation P36 --limit 1 --model minilm-mlm
trace --dataset toy --restore mlp --json | --relation P36 --limit 1 --draws 1 --model minilm-mlm
ask 'What is the capital of Norway?' --gold Oslo --max-tokens 3 --json
generate --dataset toy --shots 1 --json | --relation P36 --limit 2
trace --dataset toy --draws 2 --json | --relation P36 --limit 1 --model minilm-mlm
extract --corpus text.txt --json | --relation P36 --limit 2
read --corpus text.txt | --relation P36 --limit 2
crawl Norway --above 0.2 --json | --relation P36 --most 5 --model minilm-mlm
results --by relation --json
results slices {RUN}
compare {RUN} {OTHER} --json
runs list --json
runs export {RUN} --out exported --json
runs import results.csv --model toy --name mine --dry-run
runs rename {RUN} 'The first'
runs delete {RUN} --yes
reproduce petroni2019 | --dataset toy --limit 2
analogy solve tokyo japan paris ___ --json
analogy score Paris:France Rome:Italy --template to-what --normalise sum
analogy questions --dataset questions.jsonl --normalise mean --json | --model minilm-mlm
analogy probe --probe type --setting unsupervised | --relation 'male - female' --limit 2
prompts list --relation P36 --json
prompts mine P36 --out mined | --text text.txt
prompts paraphrase '[X] is in [Y] .' | --relation P36 --keep 2 --beams 2
prompts select --ranking filtered | --relation P36 --limit 2 --train-limit 2
prompts fit --json | --relation P36 --limit 2 --train-limit 2
prompts analyse {STUDY} --json
prompts both-ways {STUDY} | --relation P36 --facts 2 --objects 2
bench | no-such-benchmark
""".strip().splitlines()
ABSURD = st.sampled_from([
    "", " ", "\n", "a:", "a:b", "-", "--", "-1", "0", "1e9", "nan", "inf", "-inf", "10" + "0" * 29,
    "9" * 19, "0x10", "１", "é", "日本語", "😀", "\u202e\u200b", "\ud800", "\udcff", "caf\udce9",
    "x" * 300, "x" * 5000, "é" * 200, "/".join(["y" * 100] * 60), "../" * 40, "/", ".", "..",
    "/dev/null", "/dev/zero", "/dev/full", "/proc/self/mem", "/proc/kmsg", "/etc/passwd", "~",
    "~no-such-user/x", "$HOME", "%s%n", "[red]x[/red]", "\x1b[31m", "[MASK]", "[MASK]" * 40,
    "___ " * 200, "[X] [Y]", "[Y]", "file:", "file:/dev/zero", "pipe", "loop", "none", "empty",
    "file:pipe", "file:binary", "binary", "archive.zip!inner", "package:os/x", "owner/name",
    "http://127.0.0.1:9/x", "C:\\x", "CON", "null", "{}", "[]", "P36", "minilm-mlm", "starter",
    "--no-such", "--Json", "--modle", "--help", "--json", "--limit", "--model", "--relation",
])  # fmt: skip
HOMES = st.sampled_from([
    "", " ", "/dev/null", "/etc/passwd", "~no-such-user/x", "relative", "/proc/none", "z" * 300,
    "pipe", "loop", "caf\udcff", "new/deep/home", "/dev/full", "é" * 100,
])  # fmt: skip
NONE = st.just({})
AROUND = st.one_of(
    NONE,
    NONE,
    st.fixed_dictionaries({"home": HOMES}),
    st.fixed_dictionaries({"closed": st.sampled_from([[0], [1], [2], [0, 1], [1, 2], [0, 1, 2]])}),
    st.fixed_dictionaries({"full": st.just(True)}),
    st.fixed_dictionaries({"encoding": st.sampled_from(["ascii", "latin-1"])}),
    st.fixed_dictionaries({"file_bytes": st.sampled_from([0, 100, 4096, 100_000])}),
    st.fixed_dictionaries({"files": st.sampled_from([8, 16, 40])}),
)


@st.composite
def typed(draw: st.DrawFn) -> list[str]:
    """The words of a command, with up to three things wrong in them."""
    head, _, kept = draw(st.sampled_from(COMMANDS)).partition("|")
    words = shlex.split(head)
    for _ in range(draw(st.sampled_from([0, 0, 1, 1, 2, 3]))):
        at = draw(st.integers(1, len(words)))
        how = draw(st.sampled_from(["replaced", "added", "dropped", "twice", "misspelt"]))
        if how == "added":
            words.insert(at, draw(ABSURD))
        elif at < len(words):
            word = words[at]
            place = draw(st.integers(0, len(word)))
            wrong = word[:place] + draw(st.sampled_from("xé -_'\"/")) + word[place + 1 :]
            new = {"dropped": [], "twice": [word, word], "misspelt": [wrong]}
            words[at : at + 1] = new[how] if how in new else [draw(ABSURD)]
    return [word.replace("\0", "") for word in [*words, *shlex.split(kept)]]


def strict(text: str) -> object:
    """What JSON holds. Raises ValueError for what is no number in JSON."""

    def refuse(sign: str) -> None:
        raise ValueError(sign)

    return json.loads(text, parse_constant=refuse)


def test_any_command_ends_with_an_answer_or_one_line(sandbox: Sandbox) -> None:
    @settings(max_examples=100, suppress_health_check=list(HealthCheck))
    @given(words=typed(), around=AROUND)
    def holds(words: list[str], around: dict[str, object]) -> None:
        sandbox.start_anew()
        kept = (sandbox.user, sandbox.tmp, ASSETS)
        before = look(*kept)
        ended = sandbox.run(words, **around)  # type: ignore[arg-type]
        heard = not around.keys() & {"closed", "full", "file_bytes"}
        check(ended, (words, around), heard=heard)
        if ended.status == 0 and heard and "--json" in words and "--help" not in words:
            strict(ended.out)
        wrote = {path for path, now in look(*kept).items() if before.get(path) != now}
        # torch makes a folder; pip asks rustc for its version, and rustup then writes its settings.
        others = ("torchinductor", "/.rustup")
        assert not {path for path in wrote if not any(one in path for one in others)}, words

    holds()


@pytest.mark.parametrize("words", [one.replace("|", "") for one in COMMANDS])
def test_every_command_of_the_list_is_one(words: str) -> None:
    """An option or an argument that there isn't is an error; some lack one on purpose."""
    with suppress(MissingArgumentError):
        cli.make_app().parse_args(shlex.split(words), exit_on_error=False, print_error=False)


def test_the_list_holds_every_command_that_can_be_tried() -> None:
    known = {*cli.COMMANDS, *plugins.names("probes"), "reproduce"} - {"app"}  # which never returns
    assert {one.split()[0] for one in COMMANDS} == known
