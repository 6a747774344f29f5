"""Self-checks of a model when it is loaded: its fast paths must agree with a plain forward pass.

The fast paths cut the output to the blank before the head reads it, pad texts of different lengths,
continue a causal model's texts from a cache, alone or together, and read texts as a prefix tree. A
fast path that changes the answers is switched off, with a note for users; without any of them, each
text is computed whole. A model is refused if it can't be scored
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
from lama_core.models.hf.continuation import CausalBatch
from lama_core.models.hf.transformer import (
    TOLERANCES,
    Transformer,
    chosen_log_probs,
    cutting_places,
    text_config,
)
from lama_core.models.model_folder import LIBRARY_ERRORS

M = TypeVar("M", bound=TokenHidingModel | CausalModel)
TEXT, BEGINNING = "The capital of France is Paris, said Ann.", "The capital of France"
N_CONTINUED = 3
# Configuration keys: how many tokens back some layers attend. MOST: the value for no limit.
LOOKING_BACK = ("sliding_window", "window_size", "attention_chunk_size", "attention_window_size")
MOST = 1 << 30
# As TOLERANCES, but for two passes of the same shape, whose logits differ less.
SAME_SHAPE = {"fp32": 1e-3, "bf16": 0.02, "bf16-weights": 1e-3}


def use_fast_paths(model: M) -> M:
    """Return a model that passed all checks earlier, with every fast path switched on."""
    if isinstance(model, CausalModel):
        model.shares, model.tree_reach = True, find_lookback(model.model.config)
    return model


def self_checked(model: M) -> tuple[M, bool]:
    """Switch off each fast path of a model that would change its answers.

    Return the model, and whether it passed all checks, so that every fast path is on.
    Raises UserError if the model can't be scored.
    """
    if _family(model) == "reformer":
        raise UserError(
            f"{model.name} can't be used: a reformer model hashes the tokens of a text longer than "
            "a chunk at random, so its answers differ each time."
        )
    # A text and a shorter one; for a causal model, a prefix of the text.
    whole = model.framed(TEXT)[: model.max_tokens]
    shorter = model.framed(BEGINNING)[: model.max_tokens]
    rows = [whole, whole[: len(whole) // 2] if isinstance(model, CausalModel) else shorter]
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
        return _agrees(
            model, lambda: model.logits(texts, places), torch.cat([wanted[n] for n in some])
        )

    everything = range(len(rows))
    passed = answer(everything) and all(answer([one]) for one in everything)
    if not passed:
        _disable_shortcuts(model, answer, everything)
    if isinstance(model, CausalModel):
        _check_continuing(model, rows[0], plain[0])
        _check_trees(model, rows[0], plain[0])
        passed &= model.shares and model.tree_reach == find_lookback(model.model.config)
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
        _stop_padding(model)


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


def _check_continuing(model: CausalModel, row: Sequence[int], plain: torch.Tensor) -> None:
    """Switch off the cache, padding of prompts, or shared beginnings if they change answers.

    Two beginnings of the text, of different lengths, are continued with the text's own tokens.
    """
    first = len(row) - N_CONTINUED
    spread = float(to_cpu(plain).std())

    def scores_suffix() -> bool:
        words = [[row[first]], [row[first]]]
        left, suffix = list(row[:first]), list(row[first + 1 :])
        wanted = _of_targets(plain, row)[first:].expand(2, -1)

        def ask() -> torch.Tensor:
            return torch.from_numpy(model.suffix_log_probs(left, words, suffix))

        return _agrees(model, ask, wanted, spread)

    def continues(ends: Sequence[int], prefixes: Sequence[Sequence[int]] = ()) -> bool:
        """Whether a batch of the text's first tokens is continued right. ends: their numbers."""
        every = range(len(ends))
        more = [ends[-1], *ends]  # for one token, the last prompt is twice in the batch

        def ask() -> torch.Tensor:
            batch = CausalBatch(model, [row[:end] for end in ends], prefixes=prefixes)
            found = [batch.first()]
            batch.choose([every[-1], *every])
            found.append(batch.next([row[end] for end in more], range(len(more))))
            found.append(batch.next([row[end + 1] for end in more], [at + 1 for at in every]))
            return torch.cat(found)

        at = [*(end - 1 for end in ends), *more, *(end + 1 for end in ends)]
        return _agrees(model, ask, plain[at], spread)

    model.caches = scores_suffix() and continues([first])
    if not model.caches:
        model.notes.append("It can't continue from a cached prefix: every text is computed whole.")
        return
    both = [first, first - 2]
    if model.pads and not continues(both):
        _stop_padding(model)
    model.shares = model.pads and continues(both, [row[:2]] * 2)
    if not model.shares:
        # Earlier runs, made without this check, may hold other numbers: use a different identity.
        model.identity += "/proved"


def _check_trees(model: CausalModel, row: Sequence[int], plain: torch.Tensor) -> None:
    """Let a model read prefix trees if a tree's two branches score the same as separate texts.

    The tokens of the second branch have another index in the tree than in their text, and must not
    attend to the first branch. A tree has at most `tree_reach` nodes, the number of tokens that the
    model looks back, so the two texts are cut until they fit in one tree.
    """
    reach = find_lookback(model.model.config)
    row = row[: (reach + 3) // 2]
    turned = [row[0], *row[:0:-1]]
    other = run_or_refuse(lambda: model.plain_logits(turned))
    wanted = torch.cat([_of_targets(plain, row), _of_targets(other, turned)])
    model.tree_reach = reach

    def ask() -> torch.Tensor:
        return torch.from_numpy(
            np.concatenate([one[1:] for one in model.chain_log_probs([row, turned])])
        )

    if row == turned or not _agrees(model, ask, wanted, float(to_cpu(plain).std())):
        model.tree_reach = 0
        model.notes.append(
            "It can't read texts with a common prefix together: each text is computed separately."
        )


def _of_targets(logits: torch.Tensor, row: Sequence[int]) -> torch.Tensor:
    """Log-probability of each token of a row except the first, float32 [token]."""
    return to_cpu(chosen_log_probs(logits[: len(row) - 1], torch.tensor(row[1:])))


def _stop_padding(model: Transformer) -> None:
    model.pads = False
    model.notes.append(
        "Padding would change its answers: only texts of the same length share a batch."
    )


def find_lookback(config: Any) -> int:
    """Return the smallest number of tokens that a layer looks back; MOST if unlimited."""
    config = text_config(config)
    spans = [getattr(config, name, None) for name in LOOKING_BACK]
    return min([span for span in spans if isinstance(span, int) and span > 0], default=MOST)


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
    return bool((found - wanted).abs().max() <= (share * max(spread, 1e-3)))


def _family(model: Any) -> str:
    return str(model.model.config.model_type)
