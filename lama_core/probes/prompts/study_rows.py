"""Write a relation's study as rows of a run, and read it back.

There is one row per prompt and fact, then one per ensemble and fact (its `prompt` is the prompt
with the highest weight), then one per training fact. Columns in addition to those of every run:

    gold            the gold answer, spelled as in the candidates
    ensemble        number of the ensemble; null in a prompt's row
    train_ranks     in a training fact's row: the gold answer's rank under each prompt
    other_valid     in the first prompt's rows: the candidates that filtered ranking removes
    near_words      in the first prompt's rows, for the first test facts: the shortlisted words
    near            in the prompts' rows, for the same facts: the words' log-probabilities minus
                    near_highest
    near_highest    the highest log-probability of these words
    ceiling         the highest log-probability of any other word, minus near_highest

`details.json` holds the values that do not belong to a single fact: prompts, ensembles with their
weights, curves.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lama_core.candidates.columns import pad_columns
from lama_core.candidates.spelling import Vocabulary
from lama_core.datasets.prompt_sets import PooledPrompt, PromptPool
from lama_core.probes.prompts.fact_queries import PreparedFacts
from lama_core.probes.prompts.selection import Ensemble
from lama_core.probes.prompts.shortlist import Shortlist
from lama_core.probes.prompts.study import RelationStudy
from lama_core.runs.facts_table import SCHEMA, make_column
from lama_core.runs.rows import fact_columns, make_rows
from lama_core.scoring.blanks import fill
from lama_core.scoring.preparation import Prepared, Segment
from lama_core.scoring.queries import Knowledge, Question
from lama_core.scoring.top_answers import ROW, TOP_K
from lama_core.types import Fact, Prompt, Relation

TRAINING = "training fact"
FIT = ("combination", "method", "combine", "objective", "n_epochs")  # fields of an ensemble
WORD = pa.dictionary(pa.int32(), pa.string())
ROWS = pa.schema(
    [
        *SCHEMA,
        ("gold", WORD),
        ("ensemble", pa.int16()),
        ("train_ranks", pa.list_(pa.int32())),
        ("other_valid", pa.list_(pa.string())),
        ("near_words", pa.list_(pa.string())),
        ("near", pa.list_(pa.float16())),
        ("near_highest", pa.float32()),
        ("ceiling", pa.float16()),
    ]
)


def write_study(
    study: RelationStudy, asked: PreparedFacts, knowledge: Knowledge, vocabulary: Vocabulary
) -> pa.Table:
    """Return the rows of a study.

    Args:
        study: The study.
        asked: The prepared test facts of the study.
        knowledge: The known answers of the whole dataset.
        vocabulary: The model's vocabulary.
    """
    test = _test_rows(study, asked, knowledge, vocabulary)
    n_test, n_facts, words = test.num_rows, len(study.test), asked.columns.words
    n_prompts, n_ensembles = len(study.rows), len(study.ensembles)
    excluded = [fact.object for fact, _ in study.excluded]
    none: list[Any] = [None]
    of_prompts = none * (n_test - n_ensembles * n_facts)
    numbers = [number for number in range(n_ensembles) for _ in range(n_facts)]
    other_valid = [[words[at] for at in row if at >= 0] for row in study.removed.tolist()]
    shortlist = study.shortlist
    highest = shortlist.log_probs.max(axis=2)

    def by_prompt(values: NDArray[Any]) -> list[Any]:
        """Return for each row its element of `values` [prompt, fact, ...]; None if it has none."""
        rows = none * n_test
        for prompt, row in enumerate(values):
            rows[prompt * n_facts : prompt * n_facts + len(row)] = list(row)
        return rows

    # Half precision is most precise near 0, so values are stored relative to each fact's highest.
    of_test: dict[str, list[Any]] = {
        "gold": [*study.objects * n_prompts, *excluded, *study.objects * n_ensembles],
        "ensemble": [*of_prompts, *numbers],
        "other_valid": other_valid + none * (n_test - len(other_valid)),
        "near_words": by_prompt(np.array(words, object)[shortlist.columns][None]),
        "near": by_prompt((shortlist.log_probs - highest[:, :, None]).astype(np.float16)),
        "near_highest": by_prompt(highest),
        "ceiling": by_prompt((shortlist.ceilings - highest).astype(np.float16)),
    }
    n_train = len(study.train)
    train: dict[str, list[Any]] = {
        **fact_columns(study.train, [study.relation] * n_train),
        "prompt": [0] * n_train,
        "query": [""] * n_train,
        "excluded": [TRAINING] * n_train,
        "train_ranks": study.train_ranks.T.tolist(),
    }
    columns = []
    for field in ROWS:
        lower = make_column(train.get(field.name), n_train, field.type)
        if field.name in SCHEMA.names:
            upper = test[field.name].combine_chunks()
        else:
            upper = make_column(of_test.get(field.name), n_test, field.type)
        columns.append(pa.chunked_array([upper, lower], field.type))
    return pa.Table.from_arrays(columns, schema=ROWS).unify_dictionaries()


def _test_rows(
    study: RelationStudy, asked: PreparedFacts, knowledge: Knowledge, vocabulary: Vocabulary
) -> pa.Table:
    """Return the rows of the prompts, of the excluded facts and of the ensembles."""
    templates = study.pool.templates
    tested = [(fact, None) for fact in study.test]
    heaviest = [int(np.argmax(ensemble.weights)) for ensemble in study.ensembles]
    groups: list[tuple[int, Sequence[tuple[Fact, str | None]]]] = [
        *((number, tested) for number in range(len(templates))),
        (0, study.excluded),
        *((number, tested) for number in heaviest),
    ]
    questions = [
        Question(fact, study.relation, prompt, fill(templates[prompt], fact.subject), reason)
        for prompt, facts in groups
        for fact, reason in facts
    ]
    rows = np.concatenate([study.rows.ravel(), study.ensemble_rows.ravel()])
    rows["query"] = np.arange(len(rows))
    scored = np.flatnonzero([question.excluded is None for question in questions])
    segment = Segment(
        asked.columns, (), (), scored, np.zeros(len(rows), np.int64), pad_columns([()] * len(rows))
    )
    return make_rows(Prepared(tuple(questions), (segment,)), [(0, rows)], knowledge, vocabulary)


def write_details(study: RelationStudy) -> dict[str, Any]:
    """Return the values of a study that do not belong to a single fact, for `details.json`."""
    return {
        "label": study.relation.label,
        "description": study.relation.description,
        "manual": [prompt.template for prompt in study.relation.prompts[:1]],
        "prompts": [
            [entry.prompt.template, entry.prompt.origin, entry.prompt.weight, sorted(entry.origins)]
            for entry in study.pool.entries
        ],
        "aside": [number for number, entry in enumerate(study.pool.entries) if entry.aside],
        "ensembles": [
            [*(getattr(one, name) for name in FIT), one.weights.tolist()] for one in study.ensembles
        ],
        "n_kept": study.shortlist.n_kept,
        "curves": study.curves,
        "n_candidates": study.n_candidates,
        "notes": study.notes,
    }


def read_study(
    table: pa.Table, details: Mapping[str, Any], *, model: str, ranking: Any
) -> RelationStudy:
    """Read the study of one relation. Raises ValueError if rows and details don't match."""
    name, source, kind = (table[column][0].as_py() for column in ("relation", "source", "type"))
    manual = tuple(Prompt(text) for text in details["manual"])
    relation = Relation(name, source, details["label"], details["description"], kind, manual)
    aside = set(details["aside"])
    entries = tuple(
        PooledPrompt(Prompt(template, origin, weight), frozenset(origins), number in aside)
        for number, (template, origin, weight, origins) in enumerate(details["prompts"])
    )
    is_excluded, of_ensemble, trained = (
        np.asarray(table[column].combine_chunks().is_valid())
        for column in ("excluded", "ensemble", "train_ranks")
    )
    asked, mixed, train, excluded = (
        table.filter(pa.array(chosen))
        for chosen in (~is_excluded & ~of_ensemble, of_ensemble, trained, is_excluded & ~trained)
    )
    n_facts = asked.num_rows // len(entries)
    words = _Words()
    rows = _read_rows(asked, words).reshape(len(entries), n_facts)
    ensembles = tuple(
        Ensemble(**dict(zip(FIT, fit, strict=True)), weights=np.array(weights, np.float32))
        for *fit, weights in details["ensembles"]
    )
    ensemble_rows = _read_rows(mixed, words).reshape(len(ensembles), n_facts)
    facts = _read_facts(asked.slice(0, n_facts), name, source)
    objects = tuple(asked["gold"].slice(0, n_facts).to_pylist())
    for word in objects:
        words.number(word)
    shortlist = _read_shortlist(asked, n_facts, objects, words, details["n_kept"])
    others = asked["other_valid"].slice(0, n_facts).to_pylist()
    removed = pad_columns([[words.number(word) for word in row] for row in others])
    ranks = train["train_ranks"].combine_chunks().flatten().to_numpy()
    return RelationStudy(
        relation=relation,
        model=model,
        ranking=ranking,
        pool=PromptPool(name, entries),
        train=_read_facts(train, name, source),
        test=facts,
        objects=objects,
        train_ranks=ranks.astype(np.int32).reshape(-1, len(entries)).T,
        rows=rows,
        ensembles=ensembles,
        ensemble_rows=ensemble_rows,
        shortlist=shortlist,
        removed=removed,
        curves=tuple((name, combine, tuple(values)) for name, combine, values in details["curves"]),
        words={number: word for word, number in words.known.items()},
        n_candidates=details["n_candidates"],
        excluded=tuple(
            zip(_read_facts(excluded, name, source), excluded["excluded"].to_pylist(), strict=True)
        ),
        notes=tuple(details["notes"]),
    )


class _Words:
    """Numbers for the words of a study, in order of first use."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}

    def number(self, word: str) -> int:
        """Return the word's number; a new word gets the next number."""
        return self.known.setdefault(word, len(self.known))

    def numbers(self, words: pa.Array) -> NDArray[np.int64]:
        """Return the numbers of a flat array of words, int64; -1 for null."""
        encoded = words if isinstance(words, pa.DictionaryArray) else words.dictionary_encode()
        codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        numbers = [self.number(word) for word in encoded.dictionary.to_pylist()]
        return np.array([*numbers, -1], np.int64)[codes]


def _read_rows(table: pa.Table, words: _Words) -> NDArray[np.void]:
    rows = np.zeros(table.num_rows, ROW)
    for name in ("rank_raw", "rank_filtered", "log_prob", "first_filtered_log_prob"):
        rows[name] = table[name].to_numpy()
    rows["top"] = words.numbers(table["top_words"].combine_chunks().flatten()).reshape(-1, TOP_K)
    top_log_probs = table["top_log_probs"].combine_chunks().flatten()
    rows["top_log_probs"] = top_log_probs.to_numpy(zero_copy_only=False).reshape(-1, TOP_K)
    rows["first_filtered"] = words.numbers(table["first_filtered"].combine_chunks())
    return rows


def _read_facts(table: pa.Table, relation: str, source: str) -> tuple[Fact, ...]:
    return tuple(
        Fact(
            row["fact_id"],
            row["subject"],
            relation,
            row["object"],
            source,
            origin=row["origin"] or "",
        )
        for row in table.select(["fact_id", "subject", "object", "origin"]).to_pylist()
    )


def _read_shortlist(
    asked: pa.Table, n_facts: int, objects: Sequence[str], words: _Words, n_kept: int
) -> Shortlist:
    near = asked["near"].combine_chunks()
    shown = asked.filter(near.is_valid())
    n_shown = int(np.asarray(near.slice(0, n_facts).is_valid()).sum())
    n_prompts = shown.num_rows // n_shown
    columns = words.numbers(
        shown["near_words"].slice(0, n_shown).combine_chunks().flatten()
    ).reshape(n_shown, -1)
    highest = shown["near_highest"].to_numpy().reshape(n_prompts, n_shown)
    values = shown["near"].combine_chunks().flatten().to_numpy(zero_copy_only=False)
    values = values.reshape(n_prompts, n_shown, -1).astype(np.float32)
    golds = np.array([words.number(word) for word in objects[:n_shown]])
    return Shortlist(
        columns,
        values + highest[:, :, None],
        (columns == golds[:, None]).argmax(axis=1),
        np.zeros(columns.shape, np.float32),
        shown["ceiling"].to_numpy().reshape(n_prompts, n_shown).astype(np.float32) + highest,
        n_kept,
    )
