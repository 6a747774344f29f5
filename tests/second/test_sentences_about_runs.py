"""Sentences with numbers about the bundled runs and data, in lessons, model cards and docs.

Each is in `CLAIMS`, where its numbers are computed, or counted in `OTHERS`.
"""

import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pandas as pd
import pytest
from project_files import ROOT, of_values

from lama_core import load_dataset, metrics, ways
from lama_core.lessons.charts import chart_table
from lama_core.lessons.lesson import ShowRun, read_lesson
from lama_core.metrics.cooccurrence import STATED_FILE, load_stated
from lama_core.metrics.fact_answers import join_answers
from lama_core.metrics.origins import gain_from_training, trained_on
from lama_core.metrics.readings import readings_of
from lama_core.metrics.slices import PAIR_SEEN, WORDING_SEEN, slice_differences
from lama_core.paths import ASSETS
from lama_core.probes.prompts.spec import list_studies
from lama_core.rounding import fixed, percent
from lama_core.runs.find import bundled_dir, list_runs
from lama_core.runs.info import Run
from lama_core.runs.series import find_series
from lama_core.scoring.ranking import Ranking

LESSON_2, LESSON_3, LESSON_6, LESSON_8, LESSON_10 = (
    f"assets/lessons/{name}.toml"
    for name in ("2-wordings", "3-negation", "6-where-knowledge-comes-from",
                 "8-what-a-model-sees", "10-when-facts-appear")
)  # fmt: skip
CATALOG = "assets/models/catalog.json"
CARD, TWIN = (f"assets/models/{name}/README.md" for name in ("minilm-mlm", "minilm-mlm-twin"))
STARTER, RUNS = "assets/datasets/starter/README.md", "assets/results/README.md"
DEPARTURES, HOSTING = "docs/departures.md", "docs/hosting.md"
GENERATION, PROTOCOL = "docs/generation.md", "docs/protocol.md"
DOCUMENTS = [
    *ROOT.glob("assets/lessons/*.toml"), *ROOT.glob("assets/*/**/README.md"),
    *ROOT.glob("docs/*.md"), *ROOT.glob("plugins/*/README.md"), ROOT / "README.md",
]  # fmt: skip


@cache
def run_of(model: str, kind: str = "cloze") -> Run:
    """The bundled run of a model with manual prompts."""
    infos = list_runs([bundled_dir()], kinds=(kind,))
    (info,) = (one for one in infos if (one.model, one.prompts) == (model, "manual"))
    return Run(info)


@cache
def series() -> tuple[Run, ...]:
    """The bundled runs of MiniLM-MLM's training history."""
    found = find_series(list_runs([bundled_dir()]))
    return tuple(Run(info) for one in found if one.name == "minilm-mlm" for info in one.runs)


def steps_of_stages() -> list[str]:
    """Steps of both stages of MiniLM-MLM's training, which end with the last two checkpoints."""
    first, last = (int(run.info.model.rpartition("step")[2]) for run in series()[-2:])
    return [f"{first:,}", f"{last - first:,}"]


def chosen_better() -> list[str]:
    """Of how many relations MiniLM-MLM's best prompt on training facts beats the manual one."""
    (study,) = (one for one in list_studies([bundled_dir()]) if one.info.model == "minilm-mlm")
    n_better = 0
    for name in study.relations:
        found = study.relation(name)
        right = (found.ranks == 1).sum(axis=1)
        chosen = int((found.train_ranks == 1).sum(axis=1).argmax())
        n_better += bool(right[chosen] > right[found.pool.manual])
    return [str(n_better), str(len(study.relations))]


def leads_of_lesson_8() -> list[str]:
    """Relations of lesson 8's chart in which either model leads: the interval excludes 0."""
    lesson = read_lesson(ROOT / LESSON_8)
    (step,) = (one for one in lesson.steps if isinstance(one, ShowRun))
    leads: tuple[list[str], list[str]] = ([], [])
    for relation in step.relations:
        runs = (run_of("minilm-mlm"), run_of("smollm2-135m"))
        found = metrics.compare(*runs, relations=(relation,)).over_facts
        if found.interval.low > 0 or found.interval.high < 0:
            leads[found.difference > 0].append(relation)
    return [*leads[0], *leads[1]]


def falls_of_lesson_10() -> list[str]:
    """Facts of P103 and P@1 on them at three steps; facts right at some step, wrong at the last."""
    tables = {int(run.info.model.rpartition("step")[2]): run.facts for run in series()}
    counted = next(iter(tables.values()))["excluded"].isna().to_numpy()
    right = {step: (facts["rank_filtered"] == 1).to_numpy() for step, facts in tables.items()}
    of_p103 = counted & (next(iter(tables.values()))["relation"] == "P103").to_numpy()
    shares = (percent(float(right[step][of_p103].mean())) for step in (1024, 2048, 12800))
    ever = counted & np.any(list(right.values()), axis=0)
    return [str(of_p103.sum()), *shares, str(ever.sum()), str((ever & ~right[12800]).sum())]


def chart(figure: str, row: str) -> str:
    """A value of lesson 10's charts, in percent."""
    table = chart_table(list(series()), ShowRun(figure=figure, models=("minilm-mlm",)))  # type: ignore[arg-type]
    return percent(table.set_index("row").loc[row, "value"])


def first_answer(step: int) -> str:
    """The first answer to lesson 10's query at a step."""
    (run,) = (one for one in series() if one.info.model.endswith(f"step{step}"))
    (row,) = (run.facts["query"] == "The capital of Bangladesh is [MASK].").to_numpy().nonzero()[0]
    return str(run.top.words[row][0])


def pair_readings(subject: str, gold: str) -> int:
    """How often MiniLM-MLM had read a pair at the last step."""
    readings = readings_of("minilm-mlm")
    assert readings is not None
    return readings.counts[subject, gold][-1]


@cache
def mean_by_source(column: str, ranking: Ranking, model: str = "minilm-mlm") -> pd.Series:
    """Means over the relations of each source."""
    table = metrics.score_table([run_of(model)], ranking=ranking)
    return table.groupby("source", observed=True)[column].mean()


def over_conceptnets_facts() -> str:
    """MiniLM-MLM's P@1 on ConceptNet, over facts."""
    table = metrics.score_table([run_of("minilm-mlm")])
    table = table[table["source"] == "ConceptNet"]
    return percent((table["n"] * table["p_at_k"]).sum() / table["n"].sum())


def of_p527() -> list[str]:
    """The baseline Freq of P527, raw and filtered."""
    tables = [
        metrics.score_table([run_of("minilm-mlm")], ranking=ranking, relations=("P527",))
        for ranking in ("raw", "filtered")
    ]  # fmt: skip
    return [percent(float(table["freq"].iloc[0])) for table in tables]


def twins() -> tuple[Run, Run]:
    """MiniLM-MLM's twin and MiniLM-MLM."""
    return run_of("minilm-mlm-twin"), run_of("minilm-mlm")


def twins_over(what: str) -> list[str]:
    """A row of the twin's card; the interval over relations has them as a sample."""
    comparison = metrics.compare(*twins())
    found = comparison.over_relations if what == "relations" else comparison.over_facts
    ends = comparison.over_relations.sample_interval if what == "relations" else found.interval
    numbers = (found.difference, ends.low, ends.high)
    return [
        f"{found.n:,}", percent(found.a), percent(found.b),
        *(percent(number, signed=True) for number in numbers),
    ]  # fmt: skip


def twins_on(by: str, name: str, *columns: str) -> list[str]:
    """A slice of the twin and MiniLM-MLM: n, P@1 (a, b), the difference and its ends; +: signed."""
    lines = slice_differences(join_answers(twins()))
    line = lines[(lines["by"] == by) & (lines["slice"] == name)].iloc[0]
    return [
        f"{line['n']:,}" if one == "n" else percent(line[one.strip("+")], signed=one[0] == "+")
        for one in columns
    ]


def twins_on_pairs(name: str) -> list[str]:
    return twins_on(PAIR_SEEN, name, "n", "a", "b", "+difference", "+low", "+high")


def negated_answers(state: str) -> list[str]:
    """MiniLM-MLM's first answers for a state's capital with "not" and without it."""
    infos = list_runs([bundled_dir()], kinds=("contrast",))
    (info,) = (one for one in infos if one.prompts == "negated")
    facts = Run(info).facts
    line = facts[facts["query"] == f"The capital of {state} is not [MASK]."].iloc[0]
    return [str(line["first"]), str(line["plain_first"])]


def twins_by_relation() -> list[str]:
    """In how many relations MiniLM-MLM is ahead, of how many; behind; equal."""
    found = metrics.compare(*twins()).over_relations
    return [str(n) for n in (found.ahead_b, found.n, found.ahead_a, found.equal)]


def twins_gain() -> list[str]:
    """MiniLM-MLM's gain in facts, and the share of it on facts of its sources."""
    gain, n_trained = gain_from_training(*reversed(twins()))
    return [f"{gain:,}", f"{100 * n_trained / gain:.0f}"]


def wordnet_in_the_twins_text() -> list[str]:
    """Facts from WordNet that count for the twin, and those with both names in a passage."""
    facts = run_of("minilm-mlm-twin").facts
    facts = facts[facts["excluded"].isna() & (facts["origin"] == "WordNet 3.0")]
    stated = load_stated(ASSETS / "models" / "minilm-mlm-twin" / STATED_FILE)
    pairs = zip(facts["subject"], facts["object"], strict=True)
    return [f"{len(facts):,}", str(sum(stated[pair] for pair in pairs))]


def corpus(model: str) -> list[dict[str, Any]]:
    """The sources of a model's training text, with their numbers of words."""
    text = (ASSETS / "models" / model / "evaluation.json").read_bytes()
    return list(orjson.loads(text)["corpus"])


def corpus_words(model: str) -> float:
    """Words of a model's training text, in millions."""
    return sum(source["n_words"] for source in corpus(model)) / 1e6


def licence_shares(card: str) -> list[str]:
    """Shares of a card's text under GPL and CC BY-SA, in %: of the first stage, of the second."""
    rows = re.findall(
        r"^\|[^|]+\|([^|]+)\| ([\d.–]+)[ %]*\| ([\d.]+) % \|",
        (ROOT / card).read_text("utf-8"),
        re.M,
    )
    return [
        fixed(sum(float(row[stage]) for row in rows if licence in row[0] and row[stage] != "–"), 1)
        for stage in (1, 2)
        for licence in ("GPL", "CC BY-SA")
    ]


def n_of_origin(origin: str) -> str:
    """Starter facts of an origin."""
    return f"{sum(fact.origin == origin for fact in load_dataset('starter').facts):,}"


def tied() -> int:
    """Gold answers among the ten best words that have the log-probability of another one."""
    n = 0
    for model in ("minilm-mlm", "minilm-mlm-twin", "smollm2-135m"):
        run = run_of(model)
        ranks = run.facts["rank_raw"].to_numpy()
        for row in (run.facts["excluded"].isna().to_numpy() & (ranks <= 10)).nonzero()[0]:
            log_probs = run.top.log_probs[row]
            n += int((log_probs == log_probs[int(ranks[row]) - 1]).sum() > 1)
    return n


def analogy_decisions() -> list[str]:
    """Ties and decisions of the bundled analogy runs without classifiers, which have no seed."""
    runs = map(Run, list_runs([bundled_dir()], kinds=("analogy",)))
    columns = ["score", "negative_score", "seed", "excluded"]
    facts = pd.concat([run.facts[columns] for run in runs])
    facts = facts[facts["excluded"].isna() & facts["seed"].isna()]
    n_ties = int((facts["score"] == facts["negative_score"]).sum())
    return ["none" if n_ties == 0 else str(n_ties), f"{len(facts):,}"]


@dataclass(frozen=True)
class Claim:
    """A text with a {} for each number, and what computes them."""

    document: str
    text: str
    numbers: Callable[[], list[str]]


def sources(column: str, name: str, *rankings: Ranking) -> list[str]:
    """Means of a source under rankings, in percent."""
    return [percent(mean_by_source(column, ranking)[name]) for ranking in rankings]


def reciprocal_ranks() -> list[str]:
    """MRR on T-REx of MiniLM-MLM and SmolLM2."""
    models = ("minilm-mlm", "smollm2-135m")
    return [fixed(mean_by_source("mrr", "filtered", model)["TREx"], 5) for model in models]


def generated_shares(prompts: str) -> list[str]:
    """SmolLM2's generated answers: texts that contain a right answer, and right texts, in %."""
    infos = list_runs([bundled_dir()], kinds=("generation",))
    (info,) = (one for one in infos if one.prompts == prompts)
    run = Run(info)
    right = run.facts["rank_filtered"] == 1
    return [percent(float(share.mean())) for share in (pd.Series(run.column("contains")), right)]


def on_wordings() -> list[str]:
    """MiniLM-MLM's P@1 on the main wordings seen in training, and on the others, in percent."""
    found = trained_on(run_of("minilm-mlm"))
    assert found is not None
    return [percent(part.p_at_k) for part in (found.seen, found.unseen)]


def one_way(name: str) -> list[str]:
    """SmolLM2's facts of all ways; P@1 of a way with its interval, and facts known in it only."""
    table = ways()
    line = table[(table["relation"] == "all") & (table["way"] == name)].iloc[0]
    shares = (percent(line[column]) for column in ("p_at_1", "low", "high"))
    return [f"{line['n']:,}", *shares, f"{line['n_only']:,}"]


CLAIMS = (
    Claim(PROTOCOL, "P@1 on either kind of wordings, too: {} % and {} % with the main ones.",
          on_wordings),
    Claim(GENERATION, "the bundled runs of SmolLM2 on the {} facts that count in all of them:",
          lambda: one_way("whole answers")[:1]),
    Claim(GENERATION, "| word at a blank (left context) | 15,809 words | {} | {} to {} | {} |",
          lambda: one_way("word at a blank")[1:]),
    Claim(GENERATION, "| whole answers | the relation's objects | {} | {} to {} | {} |",
          lambda: one_way("whole answers")[1:]),
    Claim(GENERATION, "| generated answer, 0 examples | any text | {} | {} to {} | {} |",
          lambda: one_way("generated answer")[1:]),
    Claim(DEPARTURES, "without examples {} % contain a right answer and {} % are right; with three "
          "examples {} and {} %.",
          lambda: [*generated_shares("questions, 0-shot"), *generated_shares("questions, 3-shot")]),
    Claim(LESSON_2, "beats the manual one on other facts in {} of the {} relations", chosen_better),
    Claim(LESSON_8, "MiniLM-MLM leads in {}, {} and {}, SmolLM2 in {} and {}.", leads_of_lesson_8),
    Claim(LESSON_10, "on {} facts of P103, native language, it is {} % at step 1,024, {} % at step "
          "2,048 and {} % at the last step. Of the {} facts that were right at some step, {} are",
          falls_of_lesson_10),
    Claim(CATALOG, '"corpus": "WordNet, GCIDE, WikiText-2, World Factbook, GeoNames and others: {} '
          'sources (its card lists them)", "corpus_size": "{}M words"',
          lambda: [str(len(corpus("minilm-mlm"))), f"{corpus_words('minilm-mlm'):.1f}"]),
    Claim(CATALOG, 'Wikipedia and FOLDOC (its card lists them)", "corpus_size": "{}M words"',
          lambda: [f"{corpus_words('minilm-mlm-twin'):.1f}"]),
    Claim(LESSON_10, "is *{}* at step 64, *{}* at step 256, *{}* at step 512, *{}* at step 1,024, "
          "*{}* at step 4,096, *{}* at step 8,192, and *{}* again at the last step",
          lambda: [first_answer(step) for step in (64, 256, 512, 1024, 4096, 8192, 12800)]),
    Claim(LESSON_10, "Japan and Tokyo together in {} passages, and Russia and Moscow in {}.",
          lambda: [f"{pair_readings('Japan', 'Tokyo'):,}", str(pair_readings("Russia", "Moscow"))]),
    Claim(LESSON_10, "{} % are right, of those read 64 times or more {} %",
          lambda: [chart("readings", row) for row in ("never", "64 times or more")]),
    Claim(LESSON_10, "{} % of the facts read once are right, and {} % of those read 2 to 3 times",
          lambda: [chart("readings", row) for row in ("once", "2 to 3 times")]),
    Claim(LESSON_10, "was trained, in {} steps of about 8,192 tokens, and {} of about 2,048",
          steps_of_stages),
    Claim(LESSON_6, "a text of {} million words", lambda: [f"{corpus_words('minilm-mlm'):.0f}"]),
    Claim(LESSON_6, "{} facts whose wording is only in MiniLM-MLM's text, it is {} points ahead",
          lambda: twins_on(WORDING_SEEN, "in minilm-mlm's text alone", "n", "difference")),
    Claim(LESSON_6, "{} facts whose wording is in both texts, it is {} points ahead",
          lambda: twins_on(WORDING_SEEN, "in both texts", "n", "difference")),
    Claim(LESSON_6, "the {} whose wording is in neither, {}.",
          lambda: twins_on(WORDING_SEEN, "in neither text", "n", "difference")),
    Claim(LESSON_3, "in *The capital of California is not ___*, MiniLM-MLM ranks *{}* first, and "
          "no longer *{}*; in *The capital of Connecticut is not ___* a word of another kind, "
          "*{}*.",
          lambda: [*negated_answers("California"), negated_answers("Connecticut")[0]]),
    Claim(TWIN, "| over relations | {} relations | {} | {} | {} | {} to {} |",
          partial(twins_over, "relations")),
    Claim(TWIN, "| over facts | {} facts | {} | {} | {} | {} to {} |",
          partial(twins_over, "facts")),
    Claim(TWIN, "| pair in both texts | {} facts | {} | {} | {} | {} to {} |",
          partial(twins_on_pairs, "in both texts")),
    Claim(TWIN, "| pair in minilm-mlm's text alone | {} facts | {} | {} | {} | {} to {} |",
          partial(twins_on_pairs, "in minilm-mlm's text alone")),
    Claim(TWIN, "| pair in neither text | {} facts | {} | {} | {} | {} to {} |",
          partial(twins_on_pairs, "in neither text")),
    Claim(TWIN, "minilm-mlm is ahead in {} of the {} relations, behind in {} and equal in {}.",
          twins_by_relation),
    Claim(TWIN, "Of its gain ({} facts) {} % are facts from", twins_gain),
    Claim(TWIN, "{} points ({} to {}) on the {} facts whose wording is in minilm-mlm's text alone",
          lambda: twins_on(
              WORDING_SEEN, "in minilm-mlm's text alone", "+difference", "low", "high", "n")),
    Claim(TWIN, "{} ({} to {}) on the {} whose wording is in neither text",
          lambda: twins_on(WORDING_SEEN, "in neither text", "+difference", "low", "high", "n")),
    Claim(TWIN, "{} ({} to {}) on the {} whose wording is in both",
          lambda: twins_on(WORDING_SEEN, "in both texts", "+difference", "low", "high", "n")),
    *(Claim(card, "Of the text of the first stage, {} % is under GPL-3.0 (GCIDE) and {} % under CC "
            "BY-SA; of the second stage's, {} % and {} %.", partial(licence_shares, card))
      for card in (CARD, TWIN)),
    Claim(TWIN, "Of the {} starter facts from WordNet that count, {} have both names",
          wordnet_in_the_twins_text),
    Claim(DEPARTURES, "run has {} filtered and {} raw on T-REx, and {} and {} on ConceptNet",
          lambda: [*sources("p_at_k", "TREx", "filtered", "raw"),
                   *sources("p_at_k", "ConceptNet", "filtered", "raw")]),
    Claim(DEPARTURES, "The bundled MiniLM-MLM run has {} over relations and {} over facts",
          lambda: [*sources("p_at_k", "ConceptNet", "filtered"), over_conceptnets_facts()]),
    Claim(DEPARTURES, "on T-REx it is {} for MiniLM-MLM and {} for SmolLM2", reciprocal_ranks),
    Claim(DEPARTURES, "relations is {} raw and {} filtered on T-REx, and {} and {} on ConceptNet.",
          lambda: [*sources("freq", "TREx", "raw", "filtered"),
                   *sources("freq", "ConceptNet", "raw", "filtered")]),
    Claim(DEPARTURES, "The largest difference is that of P527: {} and {}.", of_p527),
    Claim(DEPARTURES, "{} of the {} decisions of the bundled unsupervised runs", analogy_decisions),
    Claim(DEPARTURES, "{} gold answer among the ten best words has the same log-probability",
          lambda: ["no" if tied() == 0 else f"{tied():,}"]),
    Claim(RUNS, "The first run ranks the {} words",
          lambda: [f"{run_of('minilm-mlm').info.n_candidates:,}"]),
    Claim("README.md", "{} starter facts in {} relations",
          lambda: [f"{len(load_dataset('starter').facts):,}",
                   str(len(load_dataset("starter").relations))]),
    Claim(STARTER, "| written by hand | {} |", lambda: [n_of_origin("written by hand")]),
    Claim(STARTER, "| WordNet 3.0, through Debian's `wordnet-base` | {} |",
          lambda: [n_of_origin("WordNet 3.0")]),
)  # fmt: skip

# What a sentence must name, and what isn't a number of a run: names, years, relations, code.
ABOUT = re.compile(r"MiniLM|SmolLM2|\bbundled|\btwin\b|\bstarter facts|GloVe", re.I)
NO_NUMBERS = re.compile(
    r"`[^`]*`|SmolLM2(-135M)?|MiniLM-L6-v2|P@\d+|\bP\d+|et al\.,? \(?\d+|Apache-2\.0|"
    r"CC(0| BY) [\d.]+|\[[^\]]*\]\([^)]*\)"
)

# Document -> sentences whose numbers no run here gives: settings, sizes, earlier weights, and what
# other tests or the command that the text names measured.
OTHERS = {
    LESSON_6: 1, LESSON_10: 1, STARTER: 3, TWIN: 3, CARD: 4, RUNS: 3, PROTOCOL: 2, HOSTING: 3,
    GENERATION: 1, DEPARTURES: 23, "docs/servers.md": 1, "docs/guide.md": 1, "README.md": 2,
}  # fmt: skip
# Its numbers are speeds and sizes, measured as its text says.
SPEEDS = "docs/scale.md"


def sentences(path: Path) -> Iterator[str]:
    """A document's sentences and rows of tables, each in one line."""
    content = path.read_text("utf-8")
    if path.suffix == ".toml":
        parts = list(of_values(tomllib.loads(content)))
    else:
        content = re.sub(r"```.*?```|<!--.*?-->\n|^    [^\n]*$", "", content, flags=re.S | re.M)
        parts = re.split(r"\n\s*\n|\n(?=- |\| |#)", content)
    for part in parts:
        text = " ".join(part.split())
        yield from (
            [text] if text.startswith("|") else re.split(r"(?<=[.?!:;]) +(?=[A-Z\"*`“])", text)
        )


def is_about_runs(sentence: str) -> bool:
    """Whether a sentence has a number and names a bundled model or run."""
    words = len(sentence.split()) > 3
    return bool(words and ABOUT.search(sentence) and re.search(r"\d", NO_NUMBERS.sub("", sentence)))


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.text[:60])
def test_a_sentence_has_the_numbers_of_the_runs(claim: Claim) -> None:
    text = " ".join((ROOT / claim.document).read_text("utf-8").split())
    assert claim.text.format(*claim.numbers()) in text


def test_no_sentence_about_runs_has_unchecked_numbers() -> None:
    found: dict[str, list[str]] = {}
    for path in DOCUMENTS:
        name = path.relative_to(ROOT).as_posix()
        texts = [
            re.sub(r"\\\{\\\}", r"\\S+", re.escape(one.text))
            for one in CLAIMS
            if one.document == name
        ]
        found[name] = [
            sentence
            for sentence in sentences(path)
            if is_about_runs(sentence) and not any(re.search(text, sentence) for text in texts)
        ]
    wrong = {name: ones for name, ones in found.items() if len(ones) != OTHERS.get(name, 0)}
    wrong.pop(SPEEDS, None)
    assert not wrong, f"add to CLAIMS, or count in OTHERS with a source in the text: {wrong}"
