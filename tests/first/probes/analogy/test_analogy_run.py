"""Probe runs: right decisions, saved and found again, taken up where they stopped."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from analogy_fakes import (
    CAPITALS,
    PLURALS,
    Knowing,
    Work,
    dataset,
    embed,
    knowing,
    relation,
    run_probes,
    write_vectors,
)
from numpy.typing import NDArray
from scipy.stats import ks_2samp

from lama_core.errors import UserError
from lama_core.models.auxiliary.word_embeddings import hidden_states
from lama_core.models.protocols import TokenScores
from lama_core.probes.analogy.accuracy_tables import (
    UNMARKED,
    frequency_summary,
    probe_accuracies,
    unmarked_accuracies,
)
from lama_core.probes.analogy.decisions import make_plan, make_table, pair_from_text, pair_text
from lama_core.probes.analogy.frequency import compare_frequency, pair_frequency
from lama_core.probes.analogy.instances import PROBES, Instance, ProbeOptions, Setting, words_of
from lama_core.probes.analogy.scorers import PAIR_SCORERS, ModelPairScorer, VectorPairScorer
from lama_core.probes.analogy.spec import frequency_test, list_probe_runs
from lama_core.queries.analogy_templates import TEMPLATES
from lama_core.runs.info import write_info

Models = Callable[..., Any]
UNSUPERVISED: tuple[Setting, ...] = ("unsupervised",)


def instances(probe: str) -> list[Instance]:
    plans = [
        make_plan(each, "unsupervised", probe, ProbeOptions(), reads_sentences=True)
        for each in dataset().relations
    ]
    return [one for made in plans for one in made.test]


def test_a_tie_counts_as_wrong(tmp_path: Path) -> None:
    class Indifferent(Knowing):
        def token_log_probs(
            self, texts: Sequence[str], *, begins: bool = False
        ) -> list[TokenScores]:
            return [TokenScores((text,), np.array([-1.0], np.float32)) for text in texts]

    judge = ModelPairScorer(Indifferent(), embed, template=TEMPLATES["what-to"], normalise="sum")
    (run,) = run_probes(
        judge, Work(dataset(), probes=("reverse",), settings=UNSUPERVISED), folder=tmp_path
    )
    assert [one.accuracy for one in run.details.relations] == [0.0, 0.0]


def test_the_rows_say_what_was_decided(tmp_path: Path) -> None:
    _, judge = knowing()
    (run,) = run_probes(
        judge, Work(dataset(), probes=("random-tail",), settings=UNSUPERVISED), folder=tmp_path
    )
    rows = run.rows().to_pylist()
    made = instances("random-tail")
    assert len(rows) == len(made)
    for row, one in zip(rows, made, strict=True):
        assert row["fact_id"] == one.id
        assert (pair_from_text(row["subject"]), pair_from_text(row["object"])) == (
            one.query,
            one.positive,
        )
        assert pair_from_text(row["negative"]) == one.negative
        assert (row["score"], row["negative_score"]) == (-7.0 * -1 * -1, -8.0)
        assert row["rank_raw"] == 1
        assert row["first"] == row["object"]
        head, tail = one.query
        assert row["query"] == f"What {head} is to {tail}, {one.positive[0]} is to " + (
            f"{one.positive[1]}."
        )


def test_other_options_are_other_runs(tmp_path: Path) -> None:
    base = ProbeOptions()
    others = [
        base,
        ProbeOptions(seed=1),
        ProbeOptions(limit=5),
        ProbeOptions(normalise="mean"),
        ProbeOptions(strict=True),
    ]
    ids = set()
    for options in others:
        work = Work(dataset(), probes=("type",), settings=UNSUPERVISED, options=options)
        ids |= {run.info.id for run in run_probes(knowing()[1], work, folder=tmp_path)}
    assert len(ids) == len(others)


def test_a_run_with_an_option_of_an_earlier_version_is_not_shown(tmp_path: Path) -> None:
    work = Work(dataset(), probes=("reverse",), settings=UNSUPERVISED)
    (run,) = run_probes(knowing()[1], work, folder=tmp_path)
    path = run.info.folder / "details.json"
    raw = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(raw | {"options": raw["options"] | {"tails": "first"}}), "utf-8")
    write_info(run.info, run.info.folder)
    problems: list[str] = []
    assert not list_probe_runs([tmp_path], on_problem=problems.append)
    assert "made with an option that this version lacks" in problems[0]


@pytest.mark.parametrize("probe", PROBES)
def test_the_supervised_probe_learns_what_the_features_tell(tmp_path: Path, probe: Any) -> None:
    options = ProbeOptions(n_seeds=3, hidden=20)
    work = Work(dataset(), probes=(probe,), settings=("supervised",), options=options)
    (run,) = run_probes(knowing()[1], work, folder=tmp_path)
    for one in run.details.relations:
        n_half = one.n_pairs // 2
        assert one.n == 3 * 2 * n_half * (n_half - 1)  # seeds x (positives and negatives)
        assert len(one.seeds) == 3
        assert one.accuracy == pytest.approx(np.mean(one.seeds))
        if probe in ("reverse", "type"):  # heads and tails look different
            assert one.accuracy > 0.9
    rows = run.rows().to_pandas()
    assert rows.groupby("seed")["label"].mean().tolist() == [0.5] * 3


def test_relations_with_too_few_pairs_are_left_out_with_the_reason(tmp_path: Path) -> None:
    small = dataset(relation(), relation("tiny", CAPITALS[:2]))
    (run,) = run_probes(
        knowing()[1], Work(small, probes=("type",), settings=UNSUPERVISED), folder=tmp_path
    )
    assert [one.name for one in run.details.relations] == ["capital"]
    (left_out,) = run.details.left_out
    assert left_out.relation == "tiny"
    assert "This relation has 2." in left_out.reason
    with pytest.raises(UserError, match=r"No relation can be probed\. tiny"):
        run_probes(knowing()[1], Work(small, relations=("tiny",)), folder=tmp_path)
    five = dataset(relation("five", CAPITALS[:5]))
    with pytest.raises(UserError, match="three in each half"):
        run_probes(knowing()[1], Work(five, settings=("supervised",)), folder=tmp_path)


def vector_judge(path: Path, words: tuple[str, ...]) -> VectorPairScorer:
    judge = PAIR_SCORERS["vectors"](str(path), words, ProbeOptions(), lambda _: None)
    assert isinstance(judge, VectorPairScorer)
    return judge


def test_vectors_are_compared_by_the_cosine_of_differences(tmp_path: Path) -> None:
    words = tuple(word for pair in CAPITALS for word in pair)
    path = write_vectors(tmp_path / "v.txt", words)
    judge = vector_judge(path, words)
    runs = run_probes(judge, Work(dataset(relation()), settings=UNSUPERVISED), folder=tmp_path)
    for run in runs:
        (one,) = run.details.relations
        if run.details.probe in ("reverse", "type"):
            assert one.accuracy == 1.0  # every capital differs from its country by one step


def test_words_without_a_vector_are_named_and_left_out_of_that_run_only(tmp_path: Path) -> None:
    words = tuple(word for pair in CAPITALS for word in pair if word != "Cairo")
    path = write_vectors(tmp_path / "v.txt", words)
    work = Work(
        dataset(relation()),
        probes=("reverse",),
        settings=UNSUPERVISED,
    )
    (run,) = run_probes(vector_judge(path, words_of(work.dataset.relations)), work, folder=tmp_path)
    assert run.details.missing == ("Cairo",)
    (one,) = run.details.relations
    excluded = [row for row in run.rows().to_pylist() if row["excluded"]]
    assert {row["excluded"] for row in excluded} == {"a word has no vector"}
    # Cairo's pair as the query and as the positive, in its half of four pairs; or as the negative.
    named = [row for row in excluded if "Cairo" in row["subject"] + row["object"]]
    assert len(named) == 2 * 3
    assert all("Cairo" in row["negative"] for row in excluded if row not in named)
    assert one.n_excluded == len(excluded) == 2 * 4 * 3 - one.n


def test_accuracies_by_kind_are_unweighted_means_and_random_is_the_mean_of_both(
    tmp_path: Path,
) -> None:
    runs = run_probes(knowing()[1], Work(dataset(), settings=UNSUPERVISED), folder=tmp_path)
    lines = {(line.probe, line.name): line for line in probe_accuracies(runs, by="kind")}
    assert lines["random", "all"].accuracy == 1.0
    assert lines["random", "all"].n == 2 * (2 * 4 * 3 + 2 * 3 * 2)
    assert lines["type", "encyclopedic"].n == 2 * 4 * 3
    marked = {line.name: line.mark for line in probe_accuracies(runs, by="relation")
              if line.probe == "reverse"}  # fmt: skip
    assert marked == {"capital": "", "plural": "†"}


def test_averages_without_marked_relations_are_over_unmarked_semantic_ones(tmp_path: Path) -> None:
    work = Work(
        dataset(
            relation(),
            relation("sounds", one_to_many=True),
            relation("opposites", kind="lexicographic", bidirectional=True),
            relation("parts", PLURALS, kind="lexicographic"),
            relation("plural", PLURALS, kind="inflectional"),
        ),
        settings=UNSUPERVISED,
    )
    lines = unmarked_accuracies(run_probes(knowing()[1], work, folder=tmp_path))
    assert {line.name for line in lines} == {UNMARKED}
    assert {line.probe: line.n for line in lines} == {
        # The capitals' and the parts' alone: two halves of four pairs, two of three.
        **dict.fromkeys(PROBES, 2 * 4 * 3 + 2 * 3 * 2),
        "random": 2 * (2 * 4 * 3 + 2 * 3 * 2),
    }


def test_the_frequency_test_of_random_is_of_both_halves_decisions_together(tmp_path: Path) -> None:
    class Alphabetical(Knowing):
        def token_log_probs(
            self, texts: Sequence[str], *, begins: bool = False
        ) -> list[TokenScores]:
            found = []
            for text in texts:
                word = text.removesuffix(".").replace(",", "").split()[5]
                value = -float(word[0] > "M")  # likes heads from the first half of the alphabet
                found.append(TokenScores((text,), np.array([value], np.float32)))
            return found

    judge = ModelPairScorer(Alphabetical(), embed, template=TEMPLATES["what-to"], normalise="sum")
    work = Work(dataset(relation()), settings=UNSUPERVISED)
    runs = run_probes(judge, work, folder=tmp_path)
    tested = {line.probe: line.p_value for line in probe_accuracies(runs, by="relation")}
    halves = {run.details.probe: run.rows().to_pylist() for run in runs}
    both = [*halves["random-head"], *halves["random-tail"]]
    for probe, rows in (("random", both), ("random-head", halves["random-head"])):
        values = [
            [
                pair_frequency(pair_from_text(row["object"]))
                for row in rows
                if row["rank_raw"] == rank
            ]
            for rank in (1, 2)
        ]
        assert len(values[0]) + len(values[1]) == len(rows)
        assert tested[probe] == pytest.approx(ks_2samp(*values).pvalue)
    assert tested["random-tail"] is None  # the heads are the same: all ties, none is right
    by_kind = probe_accuracies(runs, by="kind")
    assert all(line.p_value is None for line in by_kind)
    assert frequency_summary(probe_accuracies(runs, by="relation"))[0] == sum(
        value is not None for value in tested.values()
    )


def test_the_frequency_test_counts_an_instance_once_and_takes_the_seeds_majority() -> None:
    words = ["the", "house", "zebra", "gizmo"]  # from frequent to rare
    right = [[1, 1, 1], [1, 0, 1], [0, 1, 0], [0, 0, 0]]  # by instance and seed
    rows = [
        {"object": pair_text((word, word)), "rank_raw": 2 - answers[seed], "seed": seed}
        for seed in range(3)
        for word, answers in zip(words, right, strict=True)
    ]
    found = frequency_test(make_table([*rows, {"object": "of : of", "excluded": "no vector"}]))
    pairs = [(word, word) for word in words]
    assert found == compare_frequency(pairs, [True, True, False, False])
    assert (found.n_right, found.n_wrong) == (2, 2)
    # Where two seeds disagree the first one decides.
    halved = frequency_test(make_table([row for row in rows if row["seed"] < 2]))
    assert halved == compare_frequency(pairs, [True, True, False, False])


@pytest.mark.parametrize("family", ["bert-cased", "roberta", "deberta-v3", "llama", "gpt2"])
@pytest.mark.parametrize("layer", [0, 1, -1])
def test_hidden_states_are_those_of_a_plain_pass(
    family: str, layer: int, tiny_model: Models, plain_model: Models
) -> None:
    import torch

    model, (plain, tokenizer) = tiny_model(family), plain_model(family)
    texts = ["What Paris is to France, Rome is to Italy.", "tokenization of Kraków"]
    spans = [((5, 10), (17, 23)), ((0, 12), (16, 22))]
    found = hidden_states(model, texts, spans, layer=layer)
    for text, places, rows in zip(texts, spans, found, strict=True):
        encoded = tokenizer(text, return_offsets_mapping=True)
        with torch.no_grad():
            states = plain(
                torch.tensor([encoded["input_ids"]]), output_hidden_states=True
            ).hidden_states[layer][0]
        for (start, end), row in zip(places, rows, strict=True):
            at = [
                number
                for number, (left, right) in enumerate(encoded["offset_mapping"])
                if left < end and right > start and right > left
            ]
            np.testing.assert_allclose(row, states[at].mean(0), atol=1e-4)


def test_pooling_takes_the_first_or_last_piece(tiny_model: Models) -> None:
    model = tiny_model("bert-cased")
    spans = [((0, 9),)]
    assert len(model.vocabulary.pieces("unhappily")) > 1
    mean, first, last = (
        hidden_states(model, ["unhappily hard"], spans, pooling=pooling)[0, 0]
        for pooling in ("mean", "first", "last")
    )
    assert not np.allclose(first, last)
    assert not np.allclose(mean, first)


def test_a_layer_that_is_not_there_is_refused(tiny_model: Models) -> None:
    with pytest.raises(UserError, match="no layer 9: choose 0"):
        hidden_states(tiny_model("bert-cased"), ["Paris"], [((0, 5),)], layer=9)


@pytest.mark.parametrize("family", ["bert-uncased", "smollm2"])
def test_a_real_models_scores_are_its_log_perplexities(
    family: str, tiny_model: Models, tmp_path: Path
) -> None:
    model = tiny_model(family)

    def states(
        texts: Sequence[str], spans: Sequence[Sequence[tuple[int, int]]]
    ) -> NDArray[np.float32]:
        return hidden_states(model, texts, spans)

    judge = ModelPairScorer(model, states, template=TEMPLATES["what-to"], normalise="mean")
    work = Work(dataset(relation()), options=ProbeOptions(n_seeds=1, limit=6, hidden=4))
    runs = run_probes(judge, work, folder=tmp_path)
    assert len(runs) == 8
    rows = runs[0].rows().to_pylist()
    (scores,) = model.token_log_probs([rows[0]["query"]])
    assert rows[0]["score"] == pytest.approx(float(np.nanmean(scores.log_probs)), abs=1e-4)


def test_features_of_pairs_with_vectors_are_those_of_query_and_candidate() -> None:
    vectors = {("oslo", "norway"): [1.0, 2.0], ("rome", "italy"): [3.0, 4.0]}
    embedder: Any = SimpleNamespace(
        name="vectors",
        identity="",
        device="cpu",
        pair_vectors=lambda pairs: np.array([vectors[pair] for pair in pairs]),
    )
    oslo, rome = vectors
    rows = [(oslo, rome), (rome, oslo), (oslo, oslo)]
    found = VectorPairScorer(embedder, "relbert").features(rows)
    assert found.tolist() == [[1, 2, 3, 4], [3, 4, 1, 2], [1, 2, 1, 2]]
