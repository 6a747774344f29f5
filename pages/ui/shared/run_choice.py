"""The choice of the runs that a page shows, and their display names.

Runs are chosen by data, prompts and models, or by name. The choice is in the URL parameters data,
prompts, models, runs, relations, p_at and ranking.
"""

import re
from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from lama_core.errors import UserError
from lama_core.glossary import explain
from lama_core.metrics.headlines import CHOSEN, MOST_NAMED
from lama_core.runs.alignment import differing_candidates, small_runs
from lama_core.runs.chosen_facts import facts_of
from lama_core.runs.find import RunListing, list_runs
from lama_core.runs.info import FACT_KINDS, OWN_WORDS, RunInfo
from lama_core.runs.series import earlier_checkpoints, find_series
from lama_core.scoring.prompt_choice import PROMPT_SETS
from lama_core.scoring.ranking import Ranking
from lama_core.views.choice import TopRequest, described_small
from lama_core.views.colours import run_colours
from lama_core.views.figure import labels_of, scored_by_all
from lama_core.views.view import Found, Shown, ViewFunction, narrowed
from lama_core.views.view import R as V
from pages.ui.shared import cache, links, screens
from pages.ui.shared.messages import counted, plain, show_error, show_note
from pages.ui.shared.tables import draw_table
from pages.ui.shared.url_state import (
    BOUND,
    choose,
    choose_several,
    note_unknown,
    pick,
    place_of,
    title_of,
)

Item = TypeVar("Item")
MAX_RUNS = 8
# The boxes of the choice of runs -> their widths.
BOXES: dict[str, float] = {"data": 2.2, "models": 4, "relations": 4, "more": 2.2}
SAME, OWN = SCORED_ON = ("the same facts", "each model's own facts")


@dataclass(frozen=True)
class RunChoice:
    """The chosen runs.

    Attributes:
        runs: The runs.
        names: A unique name for each run, as in URLs.
        data: The chosen dataset.
        prompts: The chosen prompts.
        models: The chosen models; () means all.
        exact: The ids of the runs chosen under Exact runs.
        relations: The chosen relations; () means all.
        k: The k of P@k.
        ranking: The chosen ranking.
        known: All models with a run, without earlier checkpoints of a training run, so that a
            model's colour doesn't depend on the choice, and no other run has it.
        facts: What runs are scored on, one of `SCORED_ON`.
    """

    runs: tuple[RunInfo, ...]
    names: tuple[str, ...]
    data: str
    prompts: str
    models: tuple[str, ...]
    exact: tuple[str, ...]
    relations: tuple[str, ...]
    k: int
    ranking: Ranking
    known: tuple[str, ...] = ()
    facts: str = SAME

    @cached_property
    def colours(self) -> dict[str, str]:
        """Run id -> colour."""
        return run_colours(self.runs, self.known)

    @cached_property
    def titles(self) -> tuple[str, ...]:
        """A unique name for each run, as charts and tables show it.

        Prompts that all of several runs have aren't repeated: a line above the results names them.
        """
        titles = run_titles(self.runs)
        prompts = {run.prompts_said for run in self.runs}
        if len(titles) > 1 == len(prompts):
            short = tuple(title.removesuffix(f" {one}") for title in titles for one in prompts)
            titles = short if len(set(short)) == len(short) else titles
        return titles

    @cached_property
    def heads(self) -> dict[str, str]:
        """Title -> the title without parentheses, if all are different: for tables."""
        short = tuple(re.sub(r" \(.*?\)", "", title) for title in self.titles)
        heads = short if len(set(short)) == len(short) else self.titles
        return dict(zip(self.titles, heads, strict=True))

    @cached_property
    def labels(self) -> dict[str, str]:
        """Relation -> its display label, such as `P19 place of birth`."""
        return labels_of(self.runs)

    def labels_of(self, names: Sequence[str]) -> list[str]:
        """The labels of relations, as in URLs; that of a source for all its relations."""
        left, found = dict.fromkeys(names), []
        for label, members in relations_of_sources(self.runs).items():
            if left.keys() >= {*members}:
                found.append(label)
                left = {name: None for name in left if name not in members}
        return found + [self.labels.get(name, name) for name in left]

    @property
    def counts(self) -> str:
        """The counted unit: `queries` if a run scores facts more than once, else `facts`."""
        return max(run.counts for run in self.runs)  # the last of the alphabet

    @property
    def only(self) -> str:
        """The chosen facts that the runs are restricted to, as in URLs; "" is all."""
        return self.runs[0].only

    def with_runs(self, runs: Sequence[RunInfo]) -> "RunChoice":
        """Return the choice with these runs instead, as if chosen under Exact runs."""
        return replace(
            self,
            runs=tuple(runs),
            names=run_names(runs),
            prompts="",
            models=(),
            exact=tuple(run.id for run in runs),
        )

    @cached_property
    def same_counts(self) -> bool:
        """Whether all runs have the same number of facts in every relation."""
        return len({tuple(one.n for one in run.relations) for run in self.runs}) == 1

    def view(self, function: ViewFunction[..., V, Found], **options: Any) -> Shown[V, Found]:
        """Return a view of these runs, cached; `options` are fields of its request."""
        ids = tuple(run.id for run in self.runs)
        chosen = TopRequest(
            ids,
            ranking=None if {run.ranking for run in self.runs} == {self.ranking} else self.ranking,
            relations=self.relations,
            facts=self.only,
            own=self.facts == OWN,
            k=self.k,
        )
        request = narrowed(function.request, chosen, **options)
        names = dict(zip(ids, self.titles, strict=True))
        return cache.shown(function.view, request, self.runs, names)

    def params(self) -> dict[str, str | list[str]]:
        """The choice as URL parameters, for the pages that show runs."""
        return {
            "data": self.data,
            "prompts": self.prompts if self.prompts != "manual" else "",
            "models": list(self.models),
            "runs": list(self.exact),
            "relations": self.labels_of(self.relations),
            "p_at": str(self.k) if self.k != 1 else "",
            "ranking": self.ranking if self.ranking != "filtered" else "",
            "scored_on": self.facts if self.facts != SAME else "",
            links.ONLY: self.only,
        }

    def made(self) -> dict[str, object]:
        """The provenance of the shown numbers, for exports."""
        return {
            "runs": {name: run.id for name, run in zip(self.names, self.runs, strict=True)},
            "digests": {run.id: run.digest for run in self.runs},
            "ranking": self.ranking,
            "facts": self.facts,
            "asked": self.question or "manual",
            "k": self.k,
            "relations": list(self.relations) or "all",
            "chosen_facts": sorted(facts_of(self.only)) if self.only else "all",
        }

    def lines_of_runs(self) -> str:
        """Python code that loads the shown runs as `runs`."""
        runs = ", ".join(f'load_run("{run.id}")' for run in self.runs)
        imports, made = ["from lama_core.runs.find import load_run"], f"[{runs}]"
        if self.only:
            imports.insert(0, "from lama_core.runs.chosen_facts import only_facts")
            made = f'only_facts({made}, "{self.only}")'
        if self.facts == SAME:
            imports.insert(0, "from lama_core.runs.alignment import align")
            made = f"align({made})"
        return "\n".join((*imports, "", f"runs = {made}", ""))

    @property
    def question(self) -> str:
        """The kinds of prompts of the runs; empty if all use the relations' own templates."""
        by_prompts = {run.prompts: run for run in self.runs}
        if set(by_prompts) <= {"manual"}:
            return ""
        return "; ".join(map(_describe_prompts, by_prompts.values()))

    @property
    def all_words(self) -> bool:
        """Whether all runs rank words at a blank."""
        return all(run.ranks_words for run in self.runs)

    def where(self, keep: Callable[[RunInfo], bool]) -> "RunChoice":
        """The choice with the runs for which `keep` is true."""
        kept = [number for number, run in enumerate(self.runs) if keep(run)]
        return replace(
            self,
            runs=tuple(self.runs[number] for number in kept),
            names=tuple(self.names[number] for number in kept),
        )

    @property
    def ranked_among(self) -> str:
        """What the gold answer is ranked among, in words."""
        either = {"answers" if run.ranks_statements else "candidates" for run in self.runs}
        return f"the {' or '.join(sorted(either, reverse=True))}"

    @property
    def basis(self) -> str:
        """Data, ranking and scored facts, in words."""
        chosen = f", only {counted(len(facts_of(self.only)), 'chosen fact')}" if self.only else ""
        scored = f", scored on {self.facts}" * (len(self.runs) > 1)
        return f"{self.data}{chosen}, {self.ranking} ranking{scored}"


def _describe_prompts(run: RunInfo) -> str:
    """The prompts of a run and their meaning."""
    if run.ranks_statements and not run.imported:
        return f"{run.prompts_said} (ranked by the likelihood of the sentence with each)"
    if run.imported:
        return f"imported (from {run.imported.source})"
    if run.generates:
        return (
            f"{run.prompts_said} (generated answers; a text that contains a right answer is right)"
        )
    if run.prompts in PROMPT_SETS:
        return f"{run.prompts} ({PROMPT_SETS[run.prompts].meaning})"
    return f"{run.prompts_said} prompts"


def relations_of_sources(runs: Sequence[RunInfo]) -> dict[str, tuple[str, ...]]:
    """Label -> the relations of a source, for sources of several relations next to others."""
    found: dict[str, dict[str, None]] = {}
    for relation in (relation for run in runs for relation in run.relations):
        found.setdefault(relation.source, {})[relation.name] = None
    return {
        f"all of {name}": tuple(members)
        for name, members in found.items()
        if len(members) > 1 and len(found) > 1
    }


def pick_runs(runs: Sequence[RunInfo], data: str, prompts: str) -> dict[str, RunInfo]:
    """Model -> its run on this data with these prompts: the newest of those with most facts.

    The models are in the order of the catalogue, as in every choice of models; others follow.
    """
    found = [run for run in runs if (run.dataset, run.prompts) == (data, prompts)]
    best = {run.model: run for run in sorted(found, key=lambda run: (run.n, run.made))}
    models = dict.fromkeys(run.model for run in found)
    return {model: best[model] for model in sorted(models, key=place_of)}


def run_names(runs: Sequence[RunInfo]) -> tuple[str, ...]:
    """A unique name for each run, for URLs: the model, the prompts unless `manual`, more if needed.

    A run's title replaces its name, unless two runs would then have the same name.
    """
    names = tuple(
        run.title or run.model + f" {run.prompts}" * (run.prompts != "manual") for run in runs
    )
    for more in ("", "{0.dataset}", "{0.dataset} {0.digest:.6}"):
        if len(set(names)) < len(names):
            names = tuple(f"{r.model} {r.prompts} {more.format(r)}".strip() for r in runs)
    return names


def run_titles(runs: Sequence[RunInfo]) -> tuple[str, ...]:
    """A unique title for each run: as its name, with what differs between runs of the same name."""

    def facts_of(run: RunInfo) -> str:
        names = [one.name for one in run.scored_relations]
        of = names[0] if len(names) == 1 else counted(len(names), "relation")
        return f"{counted(run.n, 'fact')} of {of}"

    titles = [
        run.title or title_of(run.model) + f" {run.prompts_said}" * (run.prompts != "manual")
        for run in runs
    ]
    tells: tuple[Callable[[RunInfo], str], ...] = (
        lambda run: run.dataset,
        lambda run: f"{run.prompts_said} prompts",
        facts_of,
        lambda run: run.digest[:6],
    )
    for tell in tells:
        for title, n in Counter(titles).items():
            same = [at for at, one in enumerate(titles) if one == title]
            if n > 1 and len({tell(runs[at]) for at in same}) > 1:
                for at in same:
                    titles[at] = f"{title}, {tell(runs[at])}"
    return tuple(titles)


def open_runs(idle: Container[str] = ()) -> tuple[RunListing, RunChoice] | None:
    """Draw the choice of runs; return the finished runs and the choice, or None without runs.

    Also shows which runs can't be read, which chosen models have no run, and ways back to all.

    idle: the keys of `BOXES` that change nothing on the screen: they are hidden and keep their
    values for other screens.
    """
    listing = list_runs(kinds=FACT_KINDS)
    problems = st.container()
    listing, choice = _choose_runs(listing, idle) if len(listing) else (listing, None)
    with problems:
        for problem in listing.problems:
            show_error(problem)
    return None if choice is None else (listing, choice)


def _choose_runs(listing: RunListing, idle: Container[str]) -> tuple[RunListing, RunChoice | None]:
    """Draw the widgets, and what isn't shown; return the choice.

    Args:
        listing: The finished runs, at least one; only those on the chosen data are checked.
        idle: As of `open_runs`.

    Returns:
        The finished runs, except runs on the chosen data that are damaged or that the URL doesn't
        list; and the choice, None if all of these are damaged.
    """
    datasets = list(dict.fromkeys(run.dataset for run in listing))
    # style.css hides the boxes on phones until the toggle, which only phones show, is on.
    st.toggle("Choose data, models and relations", key="choosing")
    with st.container(key="run-choice"):
        acting = {name: width for name, width in BOXES.items() if name not in idle}
        spare = [10.2] * (len(acting) == 1)
        places = st.columns([*acting.values(), *spare], vertical_alignment="bottom")
    boxes = dict.fromkeys(BOXES, st.container(key="idle")) | dict(zip(acting, places, strict=False))
    # The URL may have the data of an analogy probe.
    links.replace_values(
        "data", {run.dataset: datasets[0] for run in list_runs() if run.dataset not in datasets}
    )
    data = choose(
        "Data",
        datasets,
        key="data",
        place=boxes["data"],
        help="The facts that the queries ask for.",
    )
    named = {*(st.session_state.get("runs") or ()), *st.query_params.get_all("runs")}
    listing = listing.intact(unless=lambda run: run.dataset != data and run.id not in named)
    listing = _only_chosen(listing, lambda run: run.dataset == data or run.id in named)
    by_id = {run.id: run for run in listing}
    of_data = [run for run in listing if run.dataset == data]
    if not of_data:
        return listing, None
    kept = links.runs_of_url(of_data, of=data)
    of_data = [run for run in of_data if run.id in kept]
    every = tuple(run for run in listing if run.dataset != data or run.id in kept)
    with boxes["more"], st.popover("More options", icon=":material/tune:", width="stretch"):
        more = _choose_more(of_data, list(by_id))
    picked, exact = pick_runs(every, data, more["prompts"]), more["exact"]
    earlier = earlier_checkpoints(every)
    usual = [name for name, run in picked.items() if run.id not in earlier]
    folded = _folded_checkpoints(every, picked)
    of_exact = ", ".join(dict.fromkeys(title_of(by_id[name].model) for name in exact))
    chosen = choose_several(
        "Models",
        {name: title_of(name) for name in usual} | {name: name for name in folded},
        key="models",
        place=boxes["models"],
        bind=BOUND,
        accept_new_options=True,
        max_selections=MAX_RUNS,
        disabled=bool(exact),
        placeholder=of_exact or f"All {len(usual)} with a run",
        help="The models whose runs are shown. None: all models with a run on this data; of a "
        "training run's checkpoints only the last (More, Training shows all). You can also type "
        "the name of one checkpoint.",
    )
    models = tuple(dict.fromkeys(name for one in chosen for name in folded.get(one, (one,))))
    models = models[:MAX_RUNS]
    runs = [by_id[name] for name in exact] or [picked[name] for name in models if name in picked]
    runs = (runs or [picked[name] for name in usual])[:MAX_RUNS]
    small = ""
    if more["facts"] == SAME and not exact and not models:
        small = described_small(runs, {run.id: title_of(run.model) for run in runs})
        runs = [run for run in runs if run.id not in small_runs(runs)]
    if more["facts"] == SAME:
        runs = [run.info for run in cache.aligned(tuple(runs))]
    choice = RunChoice(
        runs=tuple(runs),
        names=run_names(runs),
        data=data,
        models=models,
        relations=_choose_relations(runs, boxes["relations"]),
        known=tuple(dict.fromkeys(run.model for run in every if run.id not in earlier)),
        **more,
    )
    _draw_ways_back(
        choice,
        [title_of(name) for name in models if name not in picked and not exact],
        any(run.prompts == "manual" for run in of_data),
        idle,
    )
    if small and "models" not in idle:
        st.caption(
            f"Not shown, because all models would be scored on its few facts only: "
            f"{plain(small)}. To include it, choose it under Models."
        )
    return RunListing(every, listing.problems), choice


def _only_chosen(listing: RunListing, counts: Callable[[RunInfo], bool]) -> RunListing:
    """Restrict the runs that count to the chosen facts of the URL, if these runs have any."""
    text = links.only_facts()
    if not text:
        return listing
    try:
        runs = [cache.restricted(run, text) if counts(run) else run for run in listing]
        runs = [run for run in runs if run.relations or not run.only]
        if not any(run.only for run in runs):
            raise UserError("None of the chosen facts is in these data.")
    except UserError as error:
        show_note(f"{plain(str(error))} All facts are shown.")
        st.session_state[links.ONLY] = ""
        return listing
    links.set_param(links.ONLY, [text])
    return RunListing(tuple(runs), listing.problems)


def _choose_more(of_data: Sequence[RunInfo], ids: Sequence[str]) -> dict[str, Any]:
    """Draw the options that most visitors leave as they are; return fields of `RunChoice`.

    Args:
        of_data: The runs on the chosen data.
        ids: The ids of all runs.
    """
    links.drop_infinite("p_at")
    k = st.number_input("k", 1, 100, 1, key="p_at", bind=BOUND, help=explain("P@k"))
    sets = {run.prompts: run.prompts_said for run in of_data}
    links.replace_values("prompts", sets)
    prompts = st.selectbox(
        "Prompts",
        list(sets),
        index=list(sets).index("manual") if "manual" in sets else 0,
        key="prompts",
        bind=BOUND,
        format_func=sets.__getitem__,
        help="The prompts of the runs; **manual** is each relation's own template.",
    )
    ranking: Ranking = pick(
        "Ranking", ("filtered", "raw"), key="ranking", help=explain("Filtered and raw ranking")
    )
    facts = pick(
        "Scored on",
        SCORED_ON,
        key="scored_on",
        first=SAME,
        help=f"**{SAME}**: the facts that all shown models can be scored on, and the words "
        "that all of them ranked. A fact that one model excludes (for example because the "
        f"object isn't one of its tokens) is excluded for all. **{OWN}**: all facts that each "
        "model can be scored on.",
    )
    exact = st.multiselect(
        "Exact runs",
        ids,
        key="runs",
        bind=BOUND,
        max_selections=MAX_RUNS,
        placeholder="By data, prompts and models",
        help="Runs by name, with any data and prompts. They replace the choice of data, "
        "models and prompts.",
        select_all=False,
    )
    return {
        "k": int(k),
        "prompts": prompts,
        "ranking": ranking,
        "facts": facts,
        "exact": tuple(exact),
    }


def _choose_relations(runs: Sequence[RunInfo], place: DeltaGenerator) -> tuple[str, ...]:
    """Draw the choice of relations, or of all relations of a source; none means all."""
    labels = {label: name for name, label in labels_of(tuple(runs)).items()}
    sources = relations_of_sources(runs)
    shown = {name: label for label, name in labels.items()} | {name: name for name in sources}
    known = {*labels, *shown} & set(st.query_params.get_all("relations"))
    note_unknown("Relations", "relations", shown, "the others" if known else "all of them")
    chosen = choose_several(
        "Relations",
        # A code such as P36 comes before those that begin with it.
        {name: name for name in sources} | {labels[label]: label for label in sorted(labels)},
        key="relations",
        place=place,
        bind=BOUND,
        placeholder=f"All {len(labels)}",
        help="None: all relations.",
    )
    return tuple(dict.fromkeys(name for one in chosen for name in sources.get(one, (one,))))


def evenly_spaced(items: Sequence[Item], most: int) -> list[Item]:
    """Return at most `most` items, evenly spaced from the first to the last."""
    n = min(most, len(items))
    return [items[round(at * (len(items) - 1) / max(1, n - 1))] for at in range(n)]


def _folded_checkpoints(
    every: Sequence[RunInfo], picked: Mapping[str, RunInfo]
) -> dict[str, tuple[str, ...]]:
    """Label -> the checkpoints of a training run among the picked runs, evenly spaced if many."""
    found, ids = {}, {run.id for run in picked.values()}
    for series in find_series(every):
        models = [run.model for run in series.runs if run.id in ids]
        if len(models) < 2:
            continue
        shown = evenly_spaced(models, MAX_RUNS)
        many = f"{len(shown)}" + f" of {len(models)}" * (len(shown) < len(models))
        found[f"{title_of(series.name)}: {many} checkpoints"] = tuple(shown)
    return found


def draw_comparison_basis(choice: RunChoice) -> None:
    """Draw the runs' prompts, and the facts and words on which several runs are compared."""
    draw_question(choice)
    if said := f"{comparison_basis(choice)[0]} {unscored(choice)}".strip():
        st.caption(said)


def unscored(choice: RunChoice) -> str:
    """Return a sentence on the chosen relations without a fact that all runs score; "" without any.

    Other sentences count only relations with scored facts: `61 of 62 relations`.
    """
    scored = scored_by_all(choice.runs)
    names = [name for name in choice.relations or choice.labels if name not in scored]
    few = plain(", ".join(choice.labels.get(name, name) for name in names[:MOST_NAMED]))
    few = f"**{few}**" + f" and {len(names) - MOST_NAMED} more relations" * (
        len(names) > MOST_NAMED
    )
    why = "is scored by all runs" if len(choice.runs) > 1 else "counts"
    return f"Left out, as no fact {why}: {few}." if names else ""


def draw_question(choice: RunChoice) -> None:
    """Draw the runs' prompts, unless they are the relations' own templates."""
    if choice.question:
        st.markdown(f"**Prompts: {plain(choice.question)}.**")


def comparison_basis(choice: RunChoice) -> tuple[str, str]:
    """Return the facts and words on which the runs are compared.

    Returns:
        The description as Markdown, with the ranking; and a clause on what differs between the
        runs, empty if they are comparable. How many facts are scored is part of the headline.
    """
    ranked = any(run.has_ranks for run in choice.runs)
    ranking = f" {choice.ranking.capitalize()} ranking." * ranked
    if len(choice.runs) < 2:
        of = "answers" if choice.runs[0].ranks_statements else "words"
        return f"Ranked: {choice.runs[0].n_said} {of}.{ranking}" * ranked, ""
    aligned = choice.runs
    if not any(run.beside for run in aligned):
        aligned = tuple(run.info for run in cache.aligned(aligned))
    words, differ = words_compared(choice)
    differ = differ or CHOSEN * bool(choice.only)
    if any(
        not info.beside or info.n != run.n for info, run in zip(aligned, choice.runs, strict=True)
    ):
        each = ", ".join(
            f"{run.n:,} ({plain(title)})"
            for title, run in zip(choice.titles, choice.runs, strict=True)
        )
        return (
            f"**Different {choice.counts}**: {each}. {words}{ranking}",
            differ or f"the models are scored on different {choice.counts}",
        )
    return f"All models are scored on the same {choice.counts}. {words}{ranking}", differ


def words_compared(choice: RunChoice) -> tuple[str, str]:
    """Return whether the runs rank the same words or answers, and how many; what differs."""

    def when_right(runs: Sequence[RunInfo]) -> str:
        rules = {
            "a text that contains a right answer is right": any(run.generates for run in runs),
            "the tool that made the results says what is right": any(run.imported for run in runs),
        }
        return "; ".join(rule for rule, applies in rules.items() if applies)

    runs, first = choice.runs, choice.runs[0]
    own = first.beside or runs
    each = ", ".join(
        f"{run.n_said} ({plain(title)})" for title, run in zip(run_titles(own), own, strict=True)
    )
    if exact_to := [run.exact_to for run in runs if run.exact_to is not None]:
        return (
            f"Ranked among the {first.n_candidates:,} words that all runs ranked "
            f"(originally {each}). Runs store their ten best words, so P@k is exact up to "
            f"k = {min(exact_to)}, and ranks beyond the ten best are upper bounds."
        ), ""
    unranked = {
        title: run for title, run in zip(choice.titles, runs, strict=True) if not run.has_ranks
    }
    if len(unranked) == len(runs):
        return f"Nothing is ranked: {when_right(runs)}, so only P@1 is defined.", ""
    if unranked:
        return (
            f"**Different things are counted**: {when_right(list(unranked.values()))} "
            f"({plain(', '.join(unranked))}); the other runs rank words or answers."
        ), "some models generate answers and others rank them"
    if len({run.ranks_statements for run in runs}) > 1:
        return (
            "**Different things are ranked**: whole-answer runs rank answers by the likelihood of "
            f"the sentence, cloze runs rank words at the blank ({each}). The fewer candidates, the "
            "better the ranks."
        ), "some models rank words and others whole answers"
    if differing_candidates(runs):
        return (
            f"**Different words** are ranked: {each}. The fewer words, the better the ranks."
            + " A new run of all models together ranks the words that all of them have."
            * (not any(run.imported for run in runs))
        ), "the models rank different words"
    if first.candidates == OWN_WORDS:
        ranked = "answers" if first.ranks_statements else "words"
        return f"All rank the same {ranked}: each relation's own, {first.n_said}.", ""
    return f"All rank the same {first.n_candidates:,} words.", ""


def _draw_ways_back(
    choice: RunChoice, missing: Sequence[str], has_manual: bool, idle: Container[str]
) -> None:
    """Draw the exact runs, a note on missing models, and links back to all runs and relations.

    Args:
        choice: The choice.
        missing: The titles of chosen models without a run.
        has_manual: Whether a run on this data has the manual prompts.
        idle: As of `open_runs`.
    """
    if choice.exact and "models" not in idle:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"Exact runs: {plain(', '.join(choice.titles))}", width="content")
            opened = {name: st.query_params.get(name, "") for name in screens.OPENED}
            there = {**opened, **choice.params(), "runs": [], "relations": []}
            links.draw_link("Choose by data and models", "undo", screens.RESULTS, there)
    if missing and "models" not in idle:
        show_note(
            plain(f"{', '.join(missing)}: no run on {choice.data} with these prompts yet. ")
            + "Start one on the page **Data and runs**."
        )
    only = f"Only {counted(len(facts_of(choice.only)), 'chosen fact')}" if choice.only else ""
    chip: dict[str, Any] = {
        "type": "secondary",
        "key": "all facts",
        "help": "Show all facts again.",
    }
    is_other = has_manual and not choice.exact and choice.prompts != "manual"
    # Label of a link -> the parameters that it empties.
    ways: dict[str, list[str]] = {
        only: [links.ONLY] * bool(only),
        "Back to manual prompts": ["prompts", "models"] * (is_other and "more" not in idle),
        "All models": ["models"] * (bool(choice.models) and "models" not in idle),
        "All relations": ["relations"] * (bool(choice.relations) and "relations" not in idle),
    }
    if not any(ways.values()):
        return
    with st.container(horizontal=True, vertical_alignment="center", key="selection"):
        for label, names in ways.items():
            if names:
                there = links.params_without(names) | {name: [] for name in names}
                icon, look = ("close", chip) if label == only else ("undo", {})
                links.draw_link(label, icon, screens.RESULTS, there, **look)


def draw_runs(choice: RunChoice) -> None:
    """Draw a table of how the shown runs were made."""
    with st.expander("How these runs were made"):
        draw_table(
            [
                {
                    "run": run.id,
                    "made": run.made.replace("T", " ").removesuffix("Z"),
                    choice.counts: run.n,
                    "excluded": run.n_excluded,
                    "candidates": (
                        "none"
                        if not run.has_ranks
                        else f"{run.candidates} ({run.n_said})"
                        if run.n_candidates
                        else run.n_said
                    ),
                    "context": "" if run.imported else run.context,
                    "precision": "" if run.imported else run.precision,
                    "device": run.device or "unknown",
                    "facts per relation": "all" if run.limit is None else f"first {run.limit}",
                    "facts/s": run.n / run.seconds if run.seconds else None,
                    "comes with the project": run.bundled,
                    "imported from": run.imported.source if run.imported else "",
                }
                for run in choice.runs
            ],
            column_config={"facts/s": st.column_config.NumberColumn(format="%.0f")},
        )
        if len({run.data_digest for run in choice.runs}) > 1:
            st.caption(
                "These runs use different facts, so their scores aren't directly comparable."
            )
