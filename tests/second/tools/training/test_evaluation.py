"""Evaluation: what counts as right."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from data_files import write_lama

from tools.training.facts import fact_ranks, probe_facts, relation_scores
from tools.training.modelling import hidden_logits, load_encoder, load_tokenizer
from tools.training.tokens import BatchSampler, tokenise_file


def test_hidden_logits_are_those_of_the_whole_model(tiny_encoder: Path) -> None:
    tokenizer, model = load_tokenizer(tiny_encoder), load_encoder(tiny_encoder).eval()
    encoded = tokenizer(["The city of [MASK] is old.", "[MASK] is great."], padding=True,
                        return_tensors="pt")  # fmt: skip
    hidden = encoded["input_ids"] == tokenizer.mask_token_id
    ours = hidden_logits(model, encoded["input_ids"], encoded["attention_mask"], hidden)
    whole = model(input_ids=encoded["input_ids"], attention_mask=encoded["attention_mask"]).logits
    assert torch.allclose(ours, whole[hidden], atol=1e-5)


def test_facts_are_scored_once_each_and_by_their_rank(tiny_encoder: Path, tmp_path: Path) -> None:
    facts = [("Paris", "France"), ("Paris", "France"), ("Rome", "Italy"), ("Bonn", "Atlantis")]
    relation = {"relation": "P36", "template": "[X] is the capital of [Y] ."}
    rows = [{"uuid": None, "sub_label": s, "obj_label": o} for s, o in facts]
    write_lama(tmp_path, [relation], {"P36": rows})
    (tmp_path / "common_vocab_cased.txt").write_text("France\nItaly\n")
    model = tmp_path / "model"
    load_encoder(tiny_encoder).save_pretrained(model)
    load_tokenizer(tiny_encoder).save_pretrained(model)
    run = probe_facts(model, tmp_path, tmp_path / "runs")
    score, mean = relation_scores(run)
    facts_of_run = [(f.subject, f.object) for f in fact_ranks(run)]
    assert facts_of_run == [("Paris", "France"), ("Rome", "Italy")]
    assert (score.relation, score.n_facts, score.n_excluded) == ("P36", 2, 2)
    # Left out: the one that stands there twice, and Atlantis.
    assert score.p_at_10 == 1.0  # there are only two candidates
    assert score.p_at_1 in (0.0, 0.5, 1.0)
    assert replace(mean, relation="P36") == score


@pytest.fixture
def reading(tiny_encoder: Path, text_file: Path) -> BatchSampler:
    """120 passages, read in batches of 128 tokens."""
    tokenizer = load_tokenizer(tiny_encoder)
    lines = text_file.with_name("lines.txt")
    lines.write_text(text_file.read_text(encoding="utf-8").replace("\n\n", "\n"))
    file = tokenise_file(
        lines, name="text", share=1.0, tokenizer=tokenizer, max_length=24, cache=None
    )
    return BatchSampler((file,), 128, seed=3, pad_id=tokenizer.pad_token_id, batches_per_chunk=4)


def test_reading_from_a_later_step_gives_the_batches_of_that_step(reading: BatchSampler) -> None:
    whole, later = reading.batches(0), reading.batches(6)
    for _ in range(6):
        next(whole)
    for _ in range(5):
        assert (next(whole).ids == next(later).ids).all()


def test_every_passage_is_read_once_before_any_is_read_twice(reading: BatchSampler) -> None:
    batches = reading.batches(0)
    seen: list[tuple[int, ...]] = []
    while len(seen) < 120:
        batch = next(batches)
        seen += [tuple(r[:n]) for r, n in zip(batch.ids.tolist(), batch.lengths, strict=True)]
    chunk = reading.passages_per_chunk()[0]
    assert len(set(seen[: 120 // chunk * chunk])) == 120 // chunk * chunk
