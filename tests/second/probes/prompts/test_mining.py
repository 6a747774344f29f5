"""Mining on sentences small enough to check by eye."""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from lama_core.errors import UserError
from lama_core.probes.prompts.mining import (
    ParsedWord,
    SpacyParser,
    drop_reason,
    mine_from_text,
)
from lama_core.types import Fact


def _pairs(*pairs: tuple[str, str]) -> list[Fact]:
    return [Fact(f"{n}", subject, "P1", obj, "TREx") for n, (subject, obj) in enumerate(pairs)]


BORN = _pairs(("Barack Obama", "Hawaii"), ("Dante", "Florence"))
CAPITAL = _pairs(("France", "Paris"))


class HandParser:
    """The paper's example, parsed by hand: France <- of <- capital <- is -> Paris."""

    heads: ClassVar = {"The": 1, "capital": 4, "of": 1, "France": 2, "is": 4, "Paris": 4, ".": 4}

    def parse(self, words: Sequence[str]) -> tuple[ParsedWord, ...]:
        return tuple(ParsedWord(word, self.heads[word], "X") for word in words)


def _templates(sentences: list[str], pairs: list[Fact], **options: object) -> list[str]:
    return [one.prompt.template for one in mine_from_text(sentences, pairs, **options).kept]  # type: ignore[arg-type]


def test_the_words_in_the_middle_are_the_prompt_whichever_name_comes_first() -> None:
    assert _templates(["Barack Obama was born in Hawaii."], BORN) == ["[X] was born in [Y] ."]
    assert _templates(["Florence, hometown of Dante, is old."], BORN) == ["[Y] , hometown of [X] ."]


def test_the_papers_dependency_example_gives_the_papers_prompt() -> None:
    found = mine_from_text(["The capital of France is Paris."], CAPITAL, parser=HandParser())
    assert [one.prompt.template for one in found.kept] == ["capital of [X] is [Y] ."]
    assert found.kept[0].methods == ("dependency",)
    assert found.n_dropped == (("only stop words or punctuation", 1),)  # "[X] is [Y] ."


MIXED = [
    "France calls Paris home.", "France calls Paris home.", "France loves Paris.",
    "France adores Paris.", "Here capital of France is Paris.", "Here capital of France is Paris.",
    "Here seat of France is Paris.", "Here Seat of France is Paris.",
]  # fmt: skip


class MixedParser:
    """The paper's path in sentences with "is", by the same heads; none in the others."""

    def parse(self, words: Sequence[str]) -> tuple[ParsedWord, ...]:
        where = {word: number for number, word in enumerate(words)}
        if "is" not in where:
            return tuple(ParsedWord(word, number, "X") for word, number in where.items())
        heads = {"France": "of", "of": words[1]}
        return tuple(ParsedWord(word, where[heads.get(word, "is")], "X") for word in words)


def test_the_most_frequent_of_middle_words_are_kept_and_then_those_of_paths_alone() -> None:
    """T = 3, of which 2 are of paths: one place is left for middle words."""
    found = mine_from_text(MIXED, CAPITAL, parser=MixedParser(), n_kept=3, n_of_path=2)
    assert [(one.prompt.template, one.count, one.methods) for one in found.kept] == [
        ("[X] calls [Y] .", 2, ("middle",)),
        ("capital of [X] is [Y] .", 2, ("dependency",)),
        ("seat of [X] is [Y] .", 1, ("dependency",)),
    ]


def test_names_match_as_whole_words_only() -> None:
    with pytest.raises(UserError, match="None of the 1 sentences"):
        mine_from_text(["Dantes painted Florenceville."], BORN)


def test_a_prompt_of_stop_words_or_of_more_than_ten_words_is_dropped() -> None:
    assert drop_reason("[X] is in the [Y] .") == "only stop words or punctuation"
    assert drop_reason("[X] , [Y] .") == "only stop words or punctuation"
    assert drop_reason(f"[X] {'word ' * 10}[Y] .") is None
    assert drop_reason(f"[X] {'word ' * 11}[Y] .") == "longer than 10 words"


def test_placeholders_in_the_text_are_text() -> None:
    found = _templates(["Dante wrote [Y] and [X] near Florence."], BORN)
    assert found == ["[X] wrote ( Y ) and ( X ) near [Y] ."]


def test_of_two_mentions_the_nearest_counts() -> None:
    sentence = "Florence is old, and Dante left Florence."
    assert _templates([sentence], BORN) == ["[X] left [Y] ."]


def test_spacy_itself_finds_the_papers_dependency_prompt(tmp_path: Path) -> None:
    """By a parser that was trained, in two seconds, on nothing but the example and another."""
    spacy = pytest.importorskip("spacy")
    from spacy.training import Example
    from spacy.util import fix_random_seed

    fix_random_seed(0)
    pipeline = spacy.blank("en")
    pipeline.add_pipe("tagger")
    pipeline.add_pipe("parser", config={"min_action_freq": 1})
    lessons = [
        ("The capital of France is Paris .", [1, 4, 1, 2, 4, 4, 4],
         "det nsubj prep pobj ROOT attr punct", "DT NN IN NNP VBZ NNP ."),
        ("Dante was born in Florence .", [2, 2, 2, 2, 3, 2],
         "nsubj aux ROOT prep pobj punct", "NNP VBD VBN IN NNP ."),
    ]  # fmt: skip
    examples = [
        Example.from_dict(
            pipeline.make_doc(text), {"heads": heads, "deps": deps.split(), "tags": parts.split()}
        )
        for text, heads, deps, parts in lessons
    ]
    pipeline.initialize(lambda: examples)
    for _ in range(30):
        pipeline.update(examples)
    pipeline.to_disk(tmp_path / "trained")
    parser = SpacyParser(str(tmp_path / "trained"))
    assert [word.tag for word in parser.parse(["Dante", "was", "born"])][:2] == ["NNP", "VBD"]
    found = mine_from_text(["The capital of France is Paris."], CAPITAL, parser=parser)
    assert [one.prompt.template for one in found.kept] == ["capital of [X] is [Y] ."]
    with pytest.raises(UserError, match="pipeline 'no_such_pipeline' is not installed"):
        SpacyParser("no_such_pipeline")
