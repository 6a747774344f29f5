"""What is proved of a model when it is loaded, on one short text: that it answers as a plain pass
of the whole text does.

The ways to be fast suppose something of a model: that its output may be cut to the blank before
the head reads it, that padding changes nothing, that a causal model goes on from what it kept of a
beginning. Where one is not so the model runs without it, and says so. A model that isn't what it is
taken for (it sees what stands right of a word, or answers otherwise each time) is refused.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np
import torch

from lama_core.errors import UserError
from lama_core.models.devices import fitting, host, is_full
from lama_core.models.hf.both_sides import BothSides
from lama_core.models.hf.causal import CausalModel
from lama_core.models.hf.transformer import (
    TOLERANCES,
    Transformer,
    chosen_log_probs,
    cutting_places,
)
from lama_core.models.model_folder import FAULTS

M = TypeVar("M", bound=BothSides | CausalModel)
TEXT, BEGINNING = "The capital of France is Paris, said Ann.", "The capital of France"
N_CONTINUED = 3
# Families that answer a short text right, and longer ones by chance.
BY_CHANCE = {
    "reformer": "a reformer model hashes the tokens of a text longer than a chunk at random",
}
# Where configurations say over how many tokens some layers look back, and what none has.
LOOKING_BACK = ("sliding_window", "window_size", "attention_chunk_size", "attention_window_size")
MOST = 1 << 30
# As TOLERANCES, of two passes of one shape.
SAME_SHAPE = {"fp32": 1e-3, "bf16": 0.02}


def proved(model: M) -> M:
    """The model, with each way to be fast left out that would change its answers.

    Raises UserError for one that can't be asked.
    """
    why = BY_CHANCE.get(_family(model))
    if why:
        raise UserError(f"{model.name} can't be asked: {why}, so it answers otherwise each time.")
    rows = _rows(model)
    try:
        plain = [fitting(partial(model.plain_logits, row)) for row in rows]
    except FAULTS as error:
        said = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise UserError(
            f"{model.name} can't be asked: a {_family(model)} model gives no answer to a plain "
            f"text ({said[:200]})."
        ) from error
    for logits in plain:
        model.check_numbers(logits)
    if isinstance(model, CausalModel):
        _prove_order(model, rows[0], plain)
    # Two places in a text, as in one with two blanks; where a decoder answers, its only one.
    at = [sorted({len(logits) // 3, len(logits) // 2} - {0}) for logits in plain]
    wanted = [logits[places] for logits, places in zip(plain, at, strict=True)]

    def answer(some: Sequence[int]) -> bool:
        def ask() -> torch.Tensor:
            return model.logits([rows[n] for n in some], [at[n] for n in some])

        return _agrees(model, ask, torch.cat([wanted[n] for n in some]))

    everything = range(len(rows))
    if not (answer(everything) and all(answer([one]) for one in everything)):
        _leave_out(model, answer, everything)
    if isinstance(model, CausalModel):
        _prove_cache(model, rows[0], plain[0])
        _prove_trees(model, rows[0], plain[0])
    return model


def _leave_out(
    model: Transformer, answer: Callable[[Sequence[int]], bool], everything: Sequence[int]
) -> None:
    """Leave out cutting, then padding, until the model answers as a plain pass does."""
    # Runs that were made before this was proved may hold other numbers: they are another model's.
    model.identity += "/proved"
    places = cutting_places(model.model)
    for kept in [places[number:] for number in range(1, len(places))] + [[]]:
        if all(answer([one]) for one in everything):
            break
        model.cut_at(kept)
        if not kept:
            model.notes.append("Its output can't be cut to the blank: all of it is computed.")
    if not all(answer([one]) for one in everything):
        raise UserError(
            f"{model.name} can't be asked: a {_family(model)} model doesn't answer a text twice "
            "alike, or not as it does without an attention mask."
        )
    if not answer(everything):
        model.pads = False
        model.notes.append("Padding would change its answers: texts of one length go together.")


def _prove_order(model: CausalModel, row: Sequence[int], plain: Sequence[torch.Tensor]) -> None:
    """Raise UserError if what stands right of a word changes what the model makes of it.

    Two texts of one length are computed alike, to the last digits in any precision; a beginning
    alone, only nearly.
    """
    other = next(token for token in row if token != row[-1])
    found = fitting(lambda: model.plain_logits([*row[:-1], other]))[:-1]
    whole, beginning = plain
    alike = _close(model, found, whole[:-1], share=SAME_SHAPE[model.precision])
    if not (alike and _close(model, whole[: len(beginning)], beginning)):
        raise UserError(
            f"{model.name} is no left-to-right model: what stands right of a word changes what a "
            f"{_family(model)} model gives for it, so its answers would be no predictions."
        )


def _prove_cache(model: CausalModel, row: Sequence[int], plain: torch.Tensor) -> None:
    """Leave out going on from a kept beginning, for one text or several, if it changes answers."""
    first = len(row) - N_CONTINUED
    words = [[row[first]], [row[first]]]
    targets = torch.tensor(row[first + 1 :])
    chosen = plain[first:-1].log_softmax(1).gather(1, targets[:, None].to(plain.device))[:, 0]

    def ask() -> torch.Tensor:
        return torch.from_numpy(
            model.suffix_log_probs(list(row[:first]), words, list(row[first + 1 :]))
        )

    if not _agrees(model, ask, chosen.expand(2, -1), float(host(plain).std())):
        model.caches = False
        model.notes.append("It can't go on from a beginning: every text is computed whole.")


def _prove_trees(model: CausalModel, row: Sequence[int], plain: torch.Tensor) -> None:
    """Let a model read texts as a tree if it answers two branches as it does two texts.

    The second branch's places are others in the tree than in its text, and it must not see the
    first. A tree is never larger than what a model looks back over: that is told by nodes.
    """
    turned = [row[0], *row[:0:-1]]
    other = fitting(lambda: model.plain_logits(turned))
    wanted = torch.cat([_of_targets(plain, row), _of_targets(other, turned)])
    model.tree_reach = _reach(model.model.config)

    def ask() -> torch.Tensor:
        found = model.chain_log_probs([row, turned])
        return torch.from_numpy(np.concatenate([one[1:] for one in found]))

    if not _agrees(model, ask, wanted, float(host(plain).std())):
        model.tree_reach = 0
        model.notes.append(
            "It can't read texts that share a beginning at once: each is read whole."
        )


def _of_targets(logits: torch.Tensor, row: Sequence[int]) -> torch.Tensor:
    """Log-probability of each token of a row but the first, float32 [token]."""
    return host(chosen_log_probs(logits[:-1], torch.tensor(row[1:])))


def _reach(config: Any) -> int:
    """Over how many tokens a model looks back in every layer; MOST where nothing bounds it."""
    config = config.get_text_config(decoder=True)
    spans = [getattr(config, name, None) for name in LOOKING_BACK]
    return min([span for span in spans if isinstance(span, int) and span > 0], default=MOST)


def _rows(model: BothSides | CausalModel) -> list[list[int]]:
    """Token ids of a text and of a shorter one; of a causal model, the text's own beginning."""
    whole = model.framed(TEXT)[: model.max_tokens]
    if isinstance(model, CausalModel):
        return [whole, whole[: len(whole) // 2]]
    return [whole, model.framed(BEGINNING)[: model.max_tokens]]


def _agrees(
    model: Transformer,
    ask: Callable[[], torch.Tensor],
    wanted: torch.Tensor,
    spread: float | None = None,
) -> bool:
    """Whether what is asked comes, and is what was wanted."""
    try:
        return _close(model, ask(), wanted, spread)
    except FAULTS as error:
        if is_full(error):
            raise
        return False


def _close(
    model: Transformer,
    found: torch.Tensor,
    wanted: torch.Tensor,
    spread: float | None = None,
    share: float | None = None,
) -> bool:
    if found.shape != wanted.shape:
        return False
    found, wanted = host(found).float(), host(wanted).float()
    spread = float(wanted.std(-1).min()) if spread is None else spread
    share = TOLERANCES[model.precision] if share is None else share
    bound = share * max(spread, 1e-3)
    return bool((found - wanted).abs().max() <= bound)


def _family(model: Any) -> str:
    return str(model.model.config.model_type)
