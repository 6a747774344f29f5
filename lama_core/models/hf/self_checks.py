"""Self-checks of a model when it is loaded: its fast paths must agree with a plain forward pass.

The fast paths cut the output to the blank before the head reads it, pad texts of different lengths,
continue a causal model from a cached prefix, and read texts as a prefix tree. A fast path that
changes the answers is switched off, with a note for users. A model is refused if it can't be scored
at all: a "causal" model whose logits depend on the right context, or a model whose answers to a
text vary.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np
import torch

from lama_core.errors import UserError
from lama_core.models.devices import is_out_of_memory, run_or_refuse, to_cpu
from lama_core.models.hf.both_sides import TokenHidingModel
from lama_core.models.hf.causal import CausalModel
from lama_core.models.hf.transformer import (
    TOLERANCES,
    Transformer,
    chosen_log_probs,
    cutting_places,
)
from lama_core.models.model_folder import LIBRARY_ERRORS

M = TypeVar("M", bound=TokenHidingModel | CausalModel)
TEXT, BEGINNING = "The capital of France is Paris, said Ann.", "The capital of France"
N_CONTINUED = 3
# Families whose answers are right for short texts and random for longer ones.
BY_CHANCE = {
    "reformer": "a reformer model hashes the tokens of a text longer than a chunk at random",
}
# Configuration keys: how many tokens back some layers attend. MOST: the value for no limit.
LOOKING_BACK = ("sliding_window", "window_size", "attention_chunk_size", "attention_window_size")
MOST = 1 << 30
# As TOLERANCES, but for two passes of the same shape, whose logits differ less.
SAME_SHAPE = {"fp32": 1e-3, "bf16": 0.02, "bf16-weights": 1e-3}


def use_fast_paths(model: M) -> M:
    """Return a model that passed all checks earlier, with every fast path switched on."""
    if isinstance(model, CausalModel):
        model.tree_reach = find_lookback(model.model.config)
    return model


def self_checked(model: M) -> tuple[M, bool]:
    """Switch off each fast path of a model that would change its answers.

    Return the model, and whether it passed all checks, so that every fast path is on.
    Raises UserError if the model can't be scored.
    """
    why = BY_CHANCE.get(_family(model))
    if why:
        raise UserError(f"{model.name} can't be used: {why}, so its answers differ each time.")
    rows = _rows(model)
    try:
        plain = [run_or_refuse(partial(model.plain_logits, row)) for row in rows]
    except LIBRARY_ERRORS as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise UserError(
            f"{model.name} can't be used: a {_family(model)} model fails on a plain text "
            f"({reason[:200]})."
        ) from error
    for logits in plain:
        model.check_numbers(logits)
    if isinstance(model, CausalModel):
        _check_causal(model, rows[0], plain)
    # Two positions, as in a text with two blanks; only one if a decoder answers.
    at = [sorted({len(logits) // 3, len(logits) // 2} - {0}) for logits in plain]
    wanted = [logits[places] for logits, places in zip(plain, at, strict=True)]

    def answer(some: Sequence[int]) -> bool:
        texts, places = [rows[n] for n in some], [at[n] for n in some]
        expected = torch.cat([wanted[n] for n in some])
        return _agrees(model, lambda: model.logits(texts, places), expected)

    everything = range(len(rows))
    passed = answer(everything) and all(answer([one]) for one in everything)
    if not passed:
        _disable_shortcuts(model, answer, everything)
    if isinstance(model, CausalModel):
        _check_cache(model, rows[0], plain[0])
        _check_trees(model, rows[0], plain[0])
        passed = passed and model.caches and model.tree_reach == find_lookback(model.model.config)
    return model, passed


def _disable_shortcuts(
    model: Transformer, answer: Callable[[Sequence[int]], bool], everything: Sequence[int]
) -> None:
    """Switch off cutting, then padding, until the answers agree with a plain pass."""
    # Earlier runs, made without this check, may hold other numbers: use a different identity.
    model.identity += "/proved"
    places = cutting_places(model.model)
    for kept in [places[number:] for number in range(1, len(places))] + [[]]:
        if all(answer([one]) for one in everything):
            break
        model.cut_at(kept)
        if not kept:
            model.notes.append("Its output can't be cut to the blank: all positions are computed.")
    if not all(answer([one]) for one in everything):
        raise UserError(
            f"{model.name} can't be used: a {_family(model)} model's answers differ between two "
            "passes of the same text, or with and without an attention mask."
        )
    if not answer(everything):
        model.pads = False
        model.notes.append(
            "Padding would change its answers: only texts of the same length share a batch."
        )


def _check_causal(model: CausalModel, row: Sequence[int], plain: Sequence[torch.Tensor]) -> None:
    """Raise UserError if a token's logits depend on the tokens right of it.

    Two texts of the same length that differ in the last token must agree almost exactly before it;
    a shorter text must agree approximately.
    """
    other = next(token for token in row if token != row[-1])
    found = run_or_refuse(lambda: model.plain_logits([*row[:-1], other]))[:-1]
    whole, beginning = plain
    alike = _close(model, found, whole[:-1], share=SAME_SHAPE[model.precision])
    if not (alike and _close(model, whole[: len(beginning)], beginning)):
        raise UserError(
            f"{model.name} is not causal: the token log-probabilities of {_family(model)} models "
            "depend on the right context. Choose another model."
        )


def _check_cache(model: CausalModel, row: Sequence[int], plain: torch.Tensor) -> None:
    """Switch off continuing from a cached prefix if it changes answers."""
    first = len(row) - N_CONTINUED
    words = [[row[first]], [row[first]]]
    targets = torch.tensor(row[first + 1 :])
    chosen = plain[first:-1].log_softmax(1).gather(1, targets[:, None].to(plain.device))[:, 0]
    left, suffix = list(row[:first]), list(row[first + 1 :])

    def ask() -> torch.Tensor:
        return torch.from_numpy(model.suffix_log_probs(left, words, suffix))

    if not _agrees(model, ask, chosen.expand(2, -1), float(to_cpu(plain).std())):
        model.caches = False
        model.notes.append("It can't continue from a cached prefix: every text is computed whole.")


def _check_trees(model: CausalModel, row: Sequence[int], plain: torch.Tensor) -> None:
    """Let a model read prefix trees if a tree's two branches score the same as separate texts.

    The tokens of the second branch have another index in the tree than in their text, and must not
    attend to the first branch. A tree has at most `tree_reach` nodes, the number of tokens that the
    model looks back.
    """
    turned = [row[0], *row[:0:-1]]
    other = run_or_refuse(lambda: model.plain_logits(turned))
    wanted = torch.cat([_of_targets(plain, row), _of_targets(other, turned)])
    model.tree_reach = find_lookback(model.model.config)

    def ask() -> torch.Tensor:
        found = model.chain_log_probs([row, turned])
        return torch.from_numpy(np.concatenate([one[1:] for one in found]))

    if not _agrees(model, ask, wanted, float(to_cpu(plain).std())):
        model.tree_reach = 0
        model.notes.append(
            "It can't read texts with a common prefix together: each text is computed separately."
        )


def _of_targets(logits: torch.Tensor, row: Sequence[int]) -> torch.Tensor:
    """Log-probability of each token of a row except the first, float32 [token]."""
    return to_cpu(chosen_log_probs(logits[:-1], torch.tensor(row[1:])))


def find_lookback(config: Any) -> int:
    """Return the smallest number of tokens that a layer looks back; MOST if unlimited."""
    if hasattr(config, "get_text_config"):
        config = config.get_text_config(decoder=True)
    spans = [getattr(config, name, None) for name in LOOKING_BACK]
    return min([span for span in spans if isinstance(span, int) and span > 0], default=MOST)


def _rows(model: TokenHidingModel | CausalModel) -> list[list[int]]:
    """Token ids of a text and of a shorter one; for a causal model, of a prefix of the text."""
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
    """Whether `ask()` succeeds and returns the expected values."""
    try:
        return _close(model, ask(), wanted, spread)
    except LIBRARY_ERRORS as error:
        if is_out_of_memory(error):
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
    found, wanted = to_cpu(found).float(), to_cpu(wanted).float()
    spread = float(wanted.std(-1).min()) if spread is None else spread
    share = TOLERANCES[model.precision] if share is None else share
    bound = share * max(spread, 1e-3)
    return bool((found - wanted).abs().max() <= bound)


def _family(model: Any) -> str:
    return str(model.model.config.model_type)
