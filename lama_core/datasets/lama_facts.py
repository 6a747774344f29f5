"""The parts of a fact's line in LAMA's files: its id, sentences, evidences and votes."""

import random

from lama_core.datasets.dataset import BLANK
from lama_core.datasets.line_reader import JsonObject, Rejected, as_text, optional_text, text_list


def make_id(
    row: JsonObject, prefix: str, subject: str, obj: str, ids: dict[str, int], number: int
) -> str:
    """The file's id after the relation's name, or one made of subject and object."""
    stated = optional_text(row, "uuid") or optional_text(row, "id")
    fact_id = prefix + (stated or f"{subject}|{obj}")
    if fact_id in ids:
        if stated:
            raise Rejected(f"the id {stated!r} was already on line {ids[fact_id]}")
        # Without ids, the same pair twice is two facts; scoring deduplicates as LAMA does.
        again = f"{fact_id}\0"  # no id of a file: the copies so far
        copy = ids.get(again, 1) + 1
        while f"{fact_id}#{copy}" in ids:
            copy += 1
        ids[again] = copy
        fact_id = f"{fact_id}#{copy}"
    ids[fact_id] = number
    return fact_id


def sentences(row: JsonObject, name: str) -> tuple[str, ...]:
    """The field's sentences with a blank; LAMA's multi-sentence queries are joined to one text."""
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
    """The stated sentences, then evidences drawn by the fact's id, at most `max_sentences`."""
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
    """(yes, no) votes, or None where nobody judged.

    A vote for anything but yes, such as `skip`, counts as no: Petroni et al. 2019, as the released
    code does (`filter_samples`).
    """
    votes = row.get("judgments")
    if votes is None:
        return None
    if not isinstance(votes, list):
        raise Rejected("'judgments' is not a list")
    said = [one.get("judgment", "") if isinstance(one, dict) else "" for one in votes]
    n_yes = [as_text(vote, "judgment") for vote in said].count("yes")
    return n_yes, len(votes) - n_yes
