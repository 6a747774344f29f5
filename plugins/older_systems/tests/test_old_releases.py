"""ELMo, Transformer-XL, fconv and ERNIE: what the original code answers, and what it computes."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from calling import invoke
from old_releases import RELEASES, WORDS, make_transformer_xl

from lama_core.candidates.columns import Candidates
from lama_core.candidates.spelling import AFTER_SPACE
from lama_core.errors import UserError
from lama_core.models.cache import load_model
from lama_core.models.conversion.convert import convert
from lama_core.models.protocols import KINDS, Statement
from lama_core.models.sources.catalog import find_model
from lama_core.scoring.blanks import parse_query

SHARED = Path(__file__).resolve().parents[4] / "shared" / "data" / "classic"
needs_shared = pytest.mark.skipif(
    not SHARED.is_dir(), reason=f"the reference releases are not at {SHARED}"
)
h5py = pytest.importorskip("h5py")
NAMES = ("elmo", "transformer-xl", "fconv")
TEXTS = ("The capital of France is [MASK] .", "[MASK] was born in unheard-of Rome , Italy .")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A random release of each, converted."""
    place = tmp_path_factory.mktemp("releases")
    for name in NAMES:
        convert(RELEASES / name, place / name)
    return {name: place / name for name in NAMES}


def full_log_probs(model: Any, text: str) -> np.ndarray:
    """Log-probability of each token of the vocabulary at the blank; NaN of what stands for none."""
    columns = Candidates("full", None).columns(model.vocabulary)
    encoded = model.encode(parse_query(text), KINDS[model.kind].contexts[0])
    found = np.full(model.vocabulary.size, np.nan)
    scores = model.blank_log_probs([encoded], columns)
    found[columns.table(AFTER_SPACE).ids[:, 0]] = scores.log_probs[0]
    return found


# What the original code answers


@pytest.mark.parametrize("name", [*NAMES, pytest.param("ernie", marks=needs_shared)])
def test_answers_and_ranks_are_those_of_the_original_code(name: str, tmp_path: Path) -> None:
    """Those that the command line prints, and of the whole vocabulary."""
    out, release = tmp_path / name, (SHARED if name == "ernie" else RELEASES) / name
    converted = invoke(["models", "convert", str(release), "--out", str(out)])
    assert converted.exit_code == 0, converted.output
    for row in json.loads((release / "expected.json").read_text())["rows"]:
        passes = row.get("passes", 1)
        reference = f"{out}+passes={passes}" if passes > 1 else str(out)
        model = load_model(reference)
        words = ["cloze", row["text"], "--model", reference, "--candidates", "full", "--json"]
        asked = invoke([*words, "--top-k", "50", "--context", KINDS[model.kind].contexts[0]])
        assert asked.exit_code == 0, asked.output
        shown = json.loads(asked.stdout)["models"][0]["blanks"][0]["predictions"]
        wanted = np.array(row["log_probs"])
        by_token = {word: wanted[n] for n, word in model.vocabulary.tokens().items()}
        assert len(shown) == min(50, len(by_token))
        for one in shown:
            assert one["log_prob"] == pytest.approx(by_token[one["token"]], abs=1e-4)
        found = full_log_probs(model, row["text"])
        there = ~np.isnan(found)
        assert np.abs(found - wanted)[there].max() <= 1e-4
        # Where the original's differ by more than the digits that it gives, so do ours.
        order = np.argsort(-wanted[there], kind="stable")
        steps = -np.diff(wanted[there][order])
        assert (np.diff(found[there][order])[steps > 1e-4] < 0).all()


# What is computed, step by step


def log_softmax(values: np.ndarray) -> np.ndarray:
    return values - np.logaddexp.reduce(values)


def clusters(hidden: np.ndarray, heads: Any, tails: list[Any]) -> np.ndarray:
    """Log-probabilities of an adaptive softmax; heads, tails: logits of a hidden state."""
    head = log_softmax(heads(hidden))
    n_words = len(head) - len(tails)
    parts = [log_softmax(tail(hidden)) + head[n_words + n] for n, tail in enumerate(tails)]
    return np.concatenate([head[:n_words], *parts])


@pytest.mark.parametrize("same_length", (True, False))
@pytest.mark.parametrize("memory", ("zero", "none"))
@pytest.mark.parametrize("text", (*TEXTS, "The " * 9 + "capital of [MASK] ."))
def test_transformer_xl_attends_to_zero_vectors_by_their_distance(
    text: str, memory: str, same_length: bool, tmp_path: Path
) -> None:
    """The zero vectors are really there, and every word sees the last `mem_len` of all."""
    make_transformer_xl(tmp_path / "xl", same_length=same_length, mem_len=7, clamp_len=5)
    state = torch.load(tmp_path / "xl" / "pytorch_model.bin")
    weights = {name: value.numpy().astype(np.float64) for name, value in state.items()}
    convert(tmp_path / "xl", tmp_path / "out")
    words = ["<unk>", "<eos>", *WORDS]
    left = ["<eos>", *text.split("[MASK]")[0].split()]
    ids = [words.index(word) if word in words else 0 for word in left]
    ends = [0, 10, 20, 40, len(words)]
    vectors = []
    for number in ids:
        cluster = next(n for n in range(4) if number < ends[n + 1])
        place = "transformer.word_emb"
        vector = weights[f"{place}.emb_layers.{cluster}.weight"][number - ends[cluster]]
        vectors.append(weights[f"{place}.emb_projs.{cluster}"] @ vector * math.sqrt(16))
    states = np.array(vectors)
    n_memory = 7 if memory == "zero" else 0
    for layer in range(3):
        states = xl_layer(weights, f"transformer.layers.{layer}", states, n_memory, same_length)

    def narrowed(hidden: np.ndarray, cluster: int) -> np.ndarray:
        return hidden @ weights[f"crit.out_projs.{cluster}"]

    def output(cluster: int) -> Callable[[np.ndarray], np.ndarray]:
        place = f"crit.out_layers.{cluster}"
        weight, bias = weights[f"{place}.weight"], weights[f"{place}.bias"]
        return lambda hidden: weight @ narrowed(hidden, cluster) + bias

    def head(hidden: np.ndarray) -> np.ndarray:
        some = weights["crit.cluster_weight"] @ narrowed(hidden, 0) + weights["crit.cluster_bias"]
        return np.concatenate([output(0)(hidden), some])

    wanted = clusters(states[-1], head, [output(1), output(2), output(3)])
    found = full_log_probs(load_model(str(tmp_path / "out") + f"+memory={memory}"), text)
    assert found[2:] == pytest.approx(wanted[2:], abs=1e-4)


def xl_layer(
    weights: dict[str, np.ndarray], place: str, states: np.ndarray, n_memory: int, bounded: bool
) -> np.ndarray:
    """A layer of Transformer-XL, a word and a head at a time, with the zero vectors before it."""
    whole = np.concatenate([np.zeros((n_memory, 16)), states])
    split = (whole @ weights[f"{place}.dec_attn.qkv_net.weight"].T).reshape(len(whole), 3, 2, 8)
    mixed = np.zeros((len(states), 16))
    for at in range(len(states)):
        here = n_memory + at
        first = max(0, here - 6) if bounded else 0
        for head in range(2):
            query = split[here, 0, head]
            scores = []
            for other in range(first, here + 1):
                far = min(here - other, 5)  # clamp_len
                angles = far / 10000 ** (np.arange(0, 16, 2) / 16)
                wave = np.concatenate([np.sin(angles), np.cos(angles)])
                key = (weights[f"{place}.dec_attn.r_net.weight"] @ wave).reshape(2, 8)[head]
                score = (query + weights[f"{place}.dec_attn.r_w_bias"][head]) @ split[
                    other, 1, head
                ]
                score += (query + weights[f"{place}.dec_attn.r_r_bias"][head]) @ key
                scores.append(score / math.sqrt(8))
            shares = np.exp(log_softmax(np.array(scores)))
            mixed[at, head * 8 : head * 8 + 8] = shares @ split[first : here + 1, 2, head]
    after = normed(
        weights, f"{place}.dec_attn", states + mixed @ weights[f"{place}.dec_attn.o_net.weight"].T
    )
    net = f"{place}.pos_ff.CoreNet"
    inner = np.maximum(after @ weights[f"{net}.0.weight"].T + weights[f"{net}.0.bias"], 0)
    outer = inner @ weights[f"{net}.3.weight"].T + weights[f"{net}.3.bias"]
    return normed(weights, f"{place}.pos_ff", after + outer)


def normed(weights: dict[str, np.ndarray], place: str, states: np.ndarray) -> np.ndarray:
    centred = states - states.mean(1, keepdims=True)
    scaled = centred / np.sqrt(states.var(1, keepdims=True) + 1e-5)
    return scaled * weights[f"{place}.layer_norm.weight"] + weights[f"{place}.layer_norm.bias"]


# What every one of them can do


@pytest.mark.parametrize("name", NAMES)
def test_batches_and_padding_change_no_score(name: str, folders: dict[str, Path]) -> None:
    model = load_model(str(folders[name]))
    columns = Candidates("full", None).columns(model.vocabulary)
    context = KINDS[model.kind].contexts[0]
    encoded = model.encode_all([parse_query(text) for text in TEXTS], context)
    together = model.blank_log_probs(encoded, columns).log_probs
    alone = [model.blank_log_probs([one], columns).log_probs[0] for one in encoded]
    assert together == pytest.approx(np.array(alone), abs=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_a_words_score_is_that_of_its_place_in_the_vocabulary(
    name: str, folders: dict[str, Path]
) -> None:
    model = load_model(str(folders[name]))
    context = KINDS[model.kind].contexts[0]
    found = full_log_probs(model, TEXTS[0])
    score = model.word_log_prob(parse_query(TEXTS[0]), 0, "Paris", context)
    assert score.pieces == ("Paris",)
    assert score.log_prob == pytest.approx(found[model.vocabulary.index["Paris"]], abs=1e-5)
    unknown = model.word_log_prob(parse_query(TEXTS[0]), 0, "Atlantis", context)
    assert unknown.log_prob == -np.inf


@pytest.mark.parametrize("name", NAMES)
def test_a_statements_tokens_are_scored_as_blanks_are(name: str, folders: dict[str, Path]) -> None:
    """Of a left-to-right model behind what stands left; ELMo has not read it anywhere."""
    model = load_model(str(folders[name]))
    text = "Rome is the capital of Italy ."
    (found,) = model.statement_log_probs([Statement(text, text.index("Italy"), len(text) - 2)])
    words = text.split()
    assert found.tokens == tuple(words) and found.in_answer.tolist() == [False] * 5 + [True, False]
    for number, word in enumerate(words):
        left, right = " ".join(words[:number]), " ".join(words[number + 1 :])
        if name != "elmo" or word != "<UNK>":
            at = full_log_probs(model, f"{left} [MASK] {right}")[model.vocabulary.index[word]]
            assert found.log_probs[number] == pytest.approx(at, abs=1e-5)
    (plain,) = model.token_log_probs([text])
    assert plain.log_probs == pytest.approx(found.log_probs, abs=1e-6)


def test_two_blanks_of_elmo_are_unknown_words_to_each_other(folders: dict[str, Path]) -> None:
    model = load_model(str(folders["elmo"]))
    columns = Candidates("full", None).columns(model.vocabulary)
    both = model.encode(parse_query("[MASK] was born in [MASK] ."), "both")
    scores = model.blank_log_probs([both], columns).log_probs
    one = full_log_probs(model, "<UNK> was born in [MASK] .")
    ids = columns.table(AFTER_SPACE).ids[:, 0]
    assert scores.shape == (2, len(WORDS))
    assert scores[1] == pytest.approx(one[ids], abs=1e-5)


def test_context_both_rescores_by_what_stands_on_the_right(folders: dict[str, Path]) -> None:
    """log P(word) + log P(rest | word), normalised over the words."""
    text = "The river [MASK] is in Italy ."
    for name in ("transformer-xl", "fconv"):
        model = load_model(str(folders[name]))
        columns = Candidates("full", None).columns(model.vocabulary)
        query = parse_query(text)
        found = model.blank_log_probs([model.encode(query, "both")], columns).log_probs[0]
        whole = [text.replace("[MASK]", word) for word in columns.words]
        joint = np.array([one.log_probs[2:].sum() for one in model.token_log_probs(whole)])
        assert found == pytest.approx(joint - np.logaddexp.reduce(joint), abs=1e-4)


def test_brackets_and_commas_are_set_apart_where_lama_did_so(folders: dict[str, Path]) -> None:
    text = "Dante (born in Italy, London)--Rome."
    split = {
        name: [one.text for one in load_model(str(folders[name])).vocabulary.split(text)]
        for name in NAMES
    }
    assert " ".join(split["fconv"]) == "Dante ( born in Italy , London ) -- Rome ."
    assert split["elmo"] == split["fconv"]
    assert split["transformer-xl"] == ["Dante", "(born", "in", "Italy", ",", "London)--Rome."]


def test_signs_that_a_user_types_are_unknown_words(folders: dict[str, Path]) -> None:
    for name, sign in (("transformer-xl", "<eos>"), ("fconv", "</s>"), ("fconv", "<pad>")):
        vocabulary = load_model(str(folders[name])).vocabulary
        assert vocabulary.encode(f"The {sign}")[1] == vocabulary.unk_token_id
        assert sign not in vocabulary.single_words()


def test_another_reading_is_another_model(folders: dict[str, Path]) -> None:
    elmo, xl = str(folders["elmo"]), str(folders["transformer-xl"])
    plain, ten = load_model(elmo), load_model(f"{elmo}+passes=10")
    assert load_model(f"{elmo}+passes=1") is plain
    assert ten.identity == f"{plain.identity}/passes=10" and ten.name == f"{elmo}+passes=10"
    assert "LAMA read each batch ten times" in plain.notes[0]
    assert np.nanmax(np.abs(full_log_probs(ten, TEXTS[0]) - full_log_probs(plain, TEXTS[0]))) > 1e-3
    none = load_model(f"{xl}+memory=none")
    assert none.identity == f"{load_model(xl).identity}/memory=none"
    gap = np.abs(full_log_probs(none, TEXTS[0]) - full_log_probs(load_model(xl), TEXTS[0]))
    assert np.nanmax(gap) > 1e-3


@pytest.mark.parametrize("reading", ("passes=0", "passes=21", "memory=some"))
def test_a_reading_that_isnt_known_is_refused(reading: str, folders: dict[str, Path]) -> None:
    with pytest.raises(UserError, match="Choose passes=1 to passes=20, memory=zero"):
        find_model(f"{folders['elmo']}+{reading}")
    with pytest.raises(UserError, match="Choose passes=1 to passes=20, memory=zero"):
        find_model(f"{folders['elmo']}+passes=2+passes=3")


def test_a_reading_of_another_model_is_refused(folders: dict[str, Path]) -> None:
    for name, reading in (("fconv", "passes=2"), ("elmo", "memory=none")):
        with pytest.raises(UserError, match="this model has no option"):
            load_model(f"{folders[name]}+{reading}")
    with pytest.raises(UserError, match="this model has no option"):
        load_model("minilm-mlm+passes=2")


@pytest.mark.parametrize("name", NAMES)
def test_input_embeddings_of_a_name_are_the_mean_over_its_words(
    name: str, folders: dict[str, Path]
) -> None:
    model = load_model(str(folders[name]))
    one, other, both = model.word_vectors(["Paris", "Rome", "Paris Rome"])
    # Values up to 1, and some ten products (ELMo's of characters) that another CPU moves by 1e-6.
    assert both == pytest.approx((one + other) / 2, abs=1e-5)
    columns = Candidates("some", ("Rome", "Paris")).columns(model.vocabulary)
    assert model.word_matrix(columns) == pytest.approx(np.array([other, one]), abs=1e-5)
    assert np.abs(one - other).max() > 1e-3


def test_transformer_xl_is_looked_into_layer_by_layer_and_token_by_token(
    folders: dict[str, Path],
) -> None:
    model = load_model(str(folders["transformer-xl"]))
    columns = Candidates("full", None).columns(model.vocabulary)
    encoded = model.encode(parse_query(TEXTS[0]), "left")
    word = [model.vocabulary.index["Paris"]]
    layers = model.layer_log_probs(encoded, columns, [word])
    assert layers.log_probs.shape == (3 + 1, len(WORDS))
    own = full_log_probs(model, TEXTS[0])
    assert layers.log_probs[-1] == pytest.approx(own[2:], abs=1e-4)
    found = model.integrated_gradients(encoded, word)
    assert found.log_prob == pytest.approx(own[word[0]], abs=1e-4)
    assert np.isnan(found.values).tolist() == [False] * 5 + [True], "the blank's"
    difference = found.log_prob - (found.baseline or 0.0)
    assert np.nansum(found.values) == pytest.approx(difference, rel=0.01)


def test_fconv_is_attributed_and_its_layers_are_refused(folders: dict[str, Path]) -> None:
    model = load_model(str(folders["fconv"]))
    columns = Candidates("full", None).columns(model.vocabulary)
    encoded = model.encode(parse_query(TEXTS[0]), "left")
    word = [model.vocabulary.index["Paris"]]
    with pytest.raises(UserError, match=r"read the layers of .*: fconv models don't pass"):
        model.layer_log_probs(encoded, columns, [word])
    found = model.erased(encoded, word)
    shorter = full_log_probs(model, "capital of France is [MASK] .")[word[0]]
    assert found.values[0] == pytest.approx(found.log_prob - shorter, abs=1e-4)
