"""`analogy solve|score|probe` on the command line: their JSON, and one line for a mistake."""

from pathlib import Path

import pytest
from analogy_fakes import CAPITALS, PLURALS, write_vectors
from calling import printed, told

from lama_core.cli.output import print_parts
from lama_core.errors import UserError
from lama_core.probes.analogy.accuracy_tables import ProbeAccuracy
from lama_core.views.analogies import AnalogiesRequest, analogies
from lama_core.views.view import Shown

pytestmark = pytest.mark.usefixtures("home")
SENTENCE = "Tokyo is to Japan as Paris is to [MASK]"


@pytest.fixture
def data(tmp_path: Path) -> str:
    """A small analogy set in BATS's folders."""
    for folder, name, pairs in (
        ("1_Inflectional_morphology", "I01 [noun - plural_reg]", PLURALS),
        ("3_Encyclopedic_semantics", "E01 [country - capital]", CAPITALS),
        ("3_Encyclopedic_semantics", "E02 [tiny]", CAPITALS[:2]),
    ):
        place = tmp_path / "bats" / folder
        place.mkdir(parents=True, exist_ok=True)
        lines = "".join(f"{head}\t{tail}\n" for head, tail in pairs)
        (place / f"{name}.txt").write_text(lines, encoding="utf-8")
    return str(tmp_path / "bats")


def test_solve_prints_the_cloze_json_for_two_models(models: tuple[str, ...]) -> None:
    found = told("analogy", "solve", SENTENCE, *models, "--gold", "France")
    assert found["text"] == "Tokyo is to Japan as Paris is to [MASK]."
    assert found["candidates"].keys() == {"name", "size"}
    assert [model["kind"] for model in found["models"]] == ["masked", "causal"]
    for model in found["models"]:
        (blank,) = model["blanks"]
        assert [item["rank"] for item in blank["predictions"]] == [1, 2, 3, 4, 5]
        assert not {"tokyo", "japan", "paris"} & {item["token"] for item in blank["predictions"]}
        assert blank["gold"]["rank"] >= 1
    assert {item["method"] for item in found["baselines"]} == {"3CosAdd", "3CosMul"}
    assert found["analogy"] == {"words": ["Tokyo", "Japan", "Paris", None], "template": "to-as"}


def test_solve_takes_four_words_and_any_template(models: tuple[str, ...]) -> None:
    words = ("analogy", "solve", "Paris", "France", "Rome", "___", *models)
    found = told(
        "analogy", "solve", "___", "France", "Rome", "Italy", *models, "--template", "rel-same"
    )
    assert found["text"].startswith("The relation between [MASK] and France is the same as")
    own = told(*words, "--template", "[A]:[B] = [C]:[D]")
    assert own["text"].startswith("Paris:France = Rome:[MASK]")
    assert "Paris" in printed(*words)


def test_score_ranks_the_pairs_of_each_model(models: tuple[str, ...]) -> None:
    pairs = ("Paris:France", "Rome:Italy", "Italy:Rome", "Rome:Peru")
    arguments = ("analogy", "score", *pairs, *models)
    found = told(*arguments, "--normalise", "mean")
    assert [model["measure"] for model in found["models"]] == ["pseudo-perplexity", "perplexity"]
    for model in found["models"]:
        assert [pair["rank"] for pair in model["pairs"]] == [1, 2, 3]
        logs = [pair["log_perplexity"] for pair in model["pairs"]]
        assert logs == sorted(logs)
        for pair in model["pairs"]:
            values = [token["log_prob"] for token in pair["tokens"]]
            known = [value for value in values if value is not None]
            assert pair["log_perplexity"] == pytest.approx(-sum(known) / len(known), abs=1e-5)
            assert pair["log_prob"] == pytest.approx(sum(known), abs=1e-4)
            assert pair["mean_perplexity"] == pytest.approx(pair["perplexity"])
    said = printed(*arguments)  # by the sum, and yet the perplexity is per token
    assert "total log-prob." in said and "pseudo-perplexity (mean)" in said


def test_probe_prints_accuracies_by_kind_and_relation(
    models: tuple[str, ...], data: str, tmp_path: Path
) -> None:
    arguments = ("analogy", "probe", "--dataset", data, *models[:2], "--limit", "4")
    lines = told(*arguments, "--setting", "both", "--seeds", "2", "--hidden", "4")
    names = {(line["probe"], line["setting"]) for line in lines}
    assert ("random", "supervised") in names
    assert ("type", "unsupervised") in names
    kinds = {"encyclopedic", "inflectional", "all", "semantic, without marked"}
    assert {line["name"] for line in lines} == kinds
    assert all(0 <= line["accuracy"] <= 1 for line in lines)
    by_relation = told(*arguments, "--by", "relation")
    assert {line["name"] for line in by_relation} == {"noun - plural_reg", "country - capital"}
    assert "Accuracy in percent" in printed(*arguments)
    assert len(list((tmp_path / "home" / "data" / "runs").glob("*/run.json"))) == 8


def test_probe_takes_word_vectors_as_a_baseline(data: str, tmp_path: Path) -> None:
    words = tuple(word for pair in CAPITALS for word in pair)
    path = write_vectors(tmp_path / "v.txt", words)
    arguments = ("--vectors", str(path), "--probe", "reverse", "--relation", "country - capital")
    lines = told("analogy", "probe", "--dataset", data, *arguments)
    assert {line["model"] for line in lines} == {"v.txt"}
    assert lines[-1]["accuracy"] == 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("solve", "Paris", "France", "___"), "three words and a blank"),
        (("solve", SENTENCE, "--template", "to-as"), "A template can't be used with a sentence"),
        (("score", "Paris", "a:b", "c:d"), "Not a pair: 'Paris'"),
        (("score", "a:b", "a:b", "c:d", "--normalise", "max"), 'Choose from: "sum", "mean"'),
        (("probe", "--probe", "reversed"), r"[Dd]id you mean .reverse"),
        (("probe", "--setting", "supervized"), r"[Dd]id you mean .supervised"),
        (("probe", "--pooling", "max"), 'Choose from: "mean", "first", "last"'),
        (("probe", "--by", "seed"), 'Choose from: "relation", "kind"'),
        (("probe", "--limit", "0", "--dataset", "DATA"), "limit can't be 0"),
        (("probe", "--relation", "nothing", "--dataset", "DATA"), "no relation 'nothing'"),
        (("probe", "--relation", "tiny", "--dataset", "DATA"), "This relation has 2."),
        (("probe", "--vectors", "/nowhere.txt", "--dataset", "DATA"), "can't be read"),
    ],
)
def test_a_mistake_is_one_sentence(
    arguments: tuple[str, ...], message: str, models: tuple[str, ...], data: str
) -> None:
    used = [data if part == "DATA" else part for part in arguments]
    extra = [] if "--vectors" in used else models[:2]
    with pytest.raises(UserError, match=message) as caught:
        printed("analogy", *used, *extra)
    assert "\n" not in str(caught.value)


def test_a_pair_file_with_one_column_is_refused(tmp_path: Path, models: tuple[str, ...]) -> None:
    place = tmp_path / "bats" / "1_Inflectional_morphology"
    place.mkdir(parents=True)
    (place / "I01 [one].txt").write_text("apple\npear\n", encoding="utf-8")
    with pytest.raises(UserError, match="no usable pair"):
        printed("analogy", "probe", "--dataset", str(tmp_path / "bats"), *models[:2])


def test_the_frequency_test_is_printed_of_random_and_its_halves(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def line(probe: str, name: str, p_value: float | None) -> ProbeAccuracy:
        return ProbeAccuracy("r", "m", "d", "supervised", probe, name, "k", 0.5, None, 8, 0,
                        p_value=p_value)  # fmt: skip

    lines = (
        line("random-head", "one", 0.04), line("random-tail", "one", 0.9),
        line("random-head", "two", 0.06), line("random-tail", "two", None),
        line("random", "one", 0.2), line("random", "two", 0.05), line("type", "one", 0.001),
    )  # fmt: skip
    print_parts(analogies.view.tables(Shown(analogies.view, AnalogiesRequest(), (), lines, {})))
    printed = capsys.readouterr().out
    rows = [row.split() for row in printed.partition("Kolmogorov")[2].splitlines()]
    assert ["one", "m", "0.200", "0.040", "0.900"] in rows
    assert ["two", "m", "0.050", "0.060"] in rows
    assert "m, random: p is above 0.05 in 1 of 2 relations" in printed
    assert "m, random-head: p is above 0.05 in 1 of 2 relations" in printed
    assert "m, random-tail: p is above 0.05 in 1 of 1 relations" in printed
