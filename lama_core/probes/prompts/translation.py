"""Paraphrases by translating a prompt there and back again.

    rank by   log P(there | prompt) + log P(back | there)

B candidates each way, so B^2 in all; the same text reached twice counts with its best round trip.
What lost a placeholder on the way, or came back as a prompt that is there already, is dropped and
counted. Source: Jiang et al. 2020, section 3.2 (English - German - English, B = 7).

Departure: Paraphrases of prompts
"""

import re
from dataclasses import dataclass

from lama_core.datasets.prompt_sets import normalise_template
from lama_core.datasets.templates import template_fault
from lama_core.errors import UserError
from lama_core.models.translator import Translator

N_BEAMS = 7
N_KEPT = 40
PLACEHOLDER = re.compile(r"\[\s*([XYxy])\s*\]")


@dataclass(frozen=True, slots=True)
class Paraphrase:
    """A paraphrase of a template. log_prob: by which they are ranked. via: the way it took."""

    template: str
    log_prob: float
    via: str


@dataclass(frozen=True)
class Paraphrases:
    """What paraphrasing gave, best first. n_dropped: what lost a placeholder or was no new text."""

    kept: tuple[Paraphrase, ...]
    n_tried: int
    n_dropped: int


def paraphrase_by_translation(
    template: str,
    there: Translator,
    back: Translator,
    *,
    n_beams: int = N_BEAMS,
    n_kept: int = N_KEPT,
) -> Paraphrases:
    """Return paraphrases, ranked by the probability of the round trip."""
    fault = template_fault(template)
    if fault:
        raise UserError(f"{fault[0].upper()}{fault[1:]}.")
    middle = there.translate([template], n_beams)[0]
    returned = back.translate([one.text for one in middle], n_beams)
    best: dict[str, Paraphrase] = {}
    n_dropped = 0
    itself = normalise_template(template)
    for first, seconds in zip(middle, returned, strict=True):
        for second in seconds:
            text = repair_placeholders(second.text)
            key = normalise_template(text)
            if template_fault(text) or key == itself:
                n_dropped += 1
                continue
            found = Paraphrase(text, first.log_prob + second.log_prob, first.text)
            if key not in best or found.log_prob > best[key].log_prob:
                best[key] = found
    ranked = sorted(best.values(), key=lambda one: -one.log_prob)
    n_tried = sum(len(seconds) for seconds in returned)
    return Paraphrases(tuple(ranked[:n_kept]), n_tried, n_dropped)


def repair_placeholders(text: str) -> str:
    """`[ x ]` and the like, as translators write them, as `[X]`."""
    return PLACEHOLDER.sub(lambda match: f"[{match.group(1).upper()}]", " ".join(text.split()))
