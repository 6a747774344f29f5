"""Parts of a line of LAMA's fact files: id, sentences, evidences and votes."""

import random

from lama_core.datasets.dataset import BLANK
from lama_core.datasets.line_reader import JsonObject, Rejected, as_text, optional_text, text_list


def make_id(
    row: JsonObject, prefix: str, subject: str, obj: str, ids: dict[str, int], number: int
) -> str:
    """Return the fact's id: `prefix`, then the row's id, or subject and object if it has none.

    ids: id -> line of the file's facts so far; the new id is added.
    Raises Rejected if the file has the row's id twice.
    """
    stated = optional_text(row, "uuid") or optional_text(row, "id")
    fact_id = prefix + (stated or f"{subject}|{obj}")
    if fact_id in ids:
        if stated:
            raise Rejected(f"duplicate of line {ids[fact_id]}: the id {stated!r}")
        # Without ids, a repeated pair is a second fact; scoring deduplicates as LAMA does.
        again = f"{fact_id}\0"  # this key, which no file has as an id, counts the copies so far
        copy = ids.get(again, 1) + 1
        while f"{fact_id}#{copy}" in ids:
            copy += 1
        ids[again] = copy
        fact_id = f"{fact_id}#{copy}"
    ids[fact_id] = number
    return fact_id


def sentences(row: JsonObject, name: str) -> tuple[str, ...]:
    """Return the field's sentences with a blank; a multi-sentence query is joined to one text."""
    texts = text_list(row, name)
    if not texts:
        return ()
    if len(texts) == 1:
        return texts if BLANK in texts[0] else ()
    if sum(BLANK in text for text in texts) == 1:
        return (" ".join(texts),)
    return tuple(dict.fromkeys(text for text in texts if BLANK in text))


def with_evidences(
    stated: tuple[str, ...], row: JsonObject, fact_id: str, max_sentences: int
) -> tuple[str, ...]:
    """Return the stated sentences, and evidences up to `max_sentences` in all.

    If there are too many evidences, they are drawn at random with the fact's id as seed.
    """
    evidences = row.get("evidences")
    if not evidences or len(stated) >= max_sentences:
        return stated
    if not isinstance(evidences, list):
        raise Rejected("'evidences' is not a list")
    drawn = dict.fromkeys(stated)
    for evidence in evidences:
        # Google-RE's evidences are web pages without a masked sentence.
        text = evidence.get("masked_sentence") if isinstance(evidence, dict) else None
        if isinstance(text, str) and text.count(BLANK) == 1:
            drawn[text] = None
    texts = list(drawn)
    n_stated, n_wanted = len(stated), max_sentences - len(stated)
    if len(texts) > max_sentences:
        picks = random.Random(fact_id).sample(range(n_stated, len(texts)), n_wanted)
        texts = texts[:n_stated] + [texts[pick] for pick in sorted(picks)]
    return tuple(texts)


def judgments(row: JsonObject) -> tuple[int, int] | None:
    """Return the numbers of yes and no votes, or None without votes.

    Any vote but yes, such as `skip`, counts as no, as in the released code of Petroni et al. 2019
    (`filter_samples`).
    """
    votes = row.get("judgments")
    if votes is None:
        return None
    if not isinstance(votes, list):
        raise Rejected("'judgments' is not a list")
    answers = [vote.get("judgment", "") if isinstance(vote, dict) else "" for vote in votes]
    n_yes = [as_text(answer, "judgment") for answer in answers].count("yes")
    return n_yes, len(votes) - n_yes
