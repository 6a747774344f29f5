"""Whether a run's words may have other tokens than in earlier versions of this project.

Earlier versions looked up a word's text among the tokens. Now the tokenizer writes the word at its
place in the text. The tokens are the same if the words are plain letters and signs, and the blanks
are separate words. Runs for which this isn't certain get another identity, so that a run with the
earlier tokens isn't taken for theirs; all other runs keep their identity.
"""

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from lama_core.candidates.columns import Candidates
from lama_core.candidates.lists import COMMON
from lama_core.datasets.dataset import BLANK, Dataset
from lama_core.models.protocols import KINDS
from lama_core.models.vocabulary import TokenVocabulary
from lama_core.scoring.blanks import fill
from lama_core.scoring.prompt_choice import PromptSet
from lama_core.types import Query


def may_have_other_tokens(
    dataset: Dataset,
    relations: Iterable[str],
    prompts: PromptSet,
    candidates: Candidates,
    model: Any,
) -> bool:
    """Return whether a word of the run may have other tokens than in earlier versions.

    Vocabularies of whole words, and servers, which don't list their tokens, are as before.
    """
    if not isinstance(model.vocabulary, TokenVocabulary):
        return False
    names = set(relations)
    facts = [fact for fact in dataset.facts if fact.relation in names]
    # The words of `common` come from the vocabularies; they change the digest of the candidates.
    listed = () if candidates.name == COMMON else candidates.words or ()
    if not all(map(str.isascii, listed)) or not all(fact.object.isascii() for fact in facts):
        return True
    templates = [set(filter(None, map(fact.template, prompts.of(fact.relation)))) for fact in facts]
    queries = [fill(template, "a") for template in set().union(*templates)]
    for fact, found in zip(facts, templates, strict=True):
        queries += [Query(tuple(text.split(BLANK))) for text in fact.sentences if not found]
    return not all(_is_separate(query, model) for query in queries)


def _is_separate(query: Query, model: Any) -> bool:
    """Whether each blank of a query is a separate word for the model's tokenizer."""
    neighbours = [(left[-1:], right[:1]) for left, right in pairwise(query.parts)]
    if model.vocabulary.style == "wordpiece":  # the same tokens next to a sign as next to a space
        return all(_is_sign(before) and _is_sign(after) for before, after in neighbours)
    sees_right = KINDS[model.kind].sees_both
    return all(
        before.isspace() and (not sees_right or not after or after.isspace())
        for before, after in neighbours
    )


def _is_sign(sign: str) -> bool:
    """Whether a neighbour of a blank is a space, an ASCII sign, or nothing."""
    return not sign or sign.isspace() or (sign.isascii() and not sign.isalnum())
