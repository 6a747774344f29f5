"""Which runs a page shows: data, prompts and models, or exact runs; and how they are told apart.

What is chosen is in the address bar: data, prompts, models, runs, relations, p_at, ranking.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import pandas as pd
import streamlit as st

from lama_core.glossary import explain
from lama_core.probes.kinds import FACT_KINDS
from lama_core.runs.alignment import differing_candidates
from lama_core.runs.find import RunListing, list_runs
from lama_core.runs.info import OWN_WORDS, Run, RunInfo
from lama_core.scoring.prompt_choice import PROMPT_SETS
from lama_core.scoring.ranking import Ranking
from pages.ui.shared import cache, links, screens
from pages.ui.shared.colours import model_colours
from pages.ui.shared.messages import plain, show_fault, show_note
from pages.ui.shared.url_state import BOUND, choose, heed_unknown, pick, title_of

if TYPE_CHECKING:
    import plotly.graph_objects as go

MAX_RUNS = 8
SAME, OWN = SCORED_ON = ("the same facts", "each model's own facts")
OLD_OWN = "each its own"  # in addresses of earlier versions


@dataclass(frozen=True)
class RunChoice:
    """The runs that are shown.

    names: one a run, no two the same, as in addresses. relations: () is all. missing: models
    without a run here. known: all models that have a run, so that a model keeps its colour
    whichever are chosen.
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
    picture: str
    missing: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    facts: str = SAME

    @property
    def colours(self) -> dict[str, str]:
        """Run name -> colour: the model's; a second run of it takes one that is free."""
        found = model_colours([*self.known, *(run.model for run in self.runs)])
        colours: dict[str, str] = {}
        for run, name in zip(self.runs, self.names, strict=True):
            colours[name] = found[run.model]
            if list(colours.values()).count(found[run.model]) > 1:
                free = [c for c in model_colours(self.names).values() if c not in colours.values()]
                colours[name] = (free or [found[run.model]])[0]
        return colours

    @cached_property
    def titles(self) -> tuple[str, ...]:
        """A name for each run as charts and tables show it, no two the same."""
        return run_names(self.runs, show=title_of)

    @property
    def inks(self) -> dict[str, str]:
        """Title -> colour, for charts."""
        return dict(zip(self.titles, self.colours.values(), strict=True))

    def name_of(self, title: str) -> str:
        """What an address calls the run of a title; empty for none."""
        return dict(zip(self.titles, self.names, strict=True)).get(title, "")

    @property
    def labels(self) -> dict[str, str]:
        """Relation -> what people call it: `P19 place of birth`."""
        return {
            relation.name: relation_label(relation.name, relation.label)
            for run in self.runs
            for relation in run.relations
        }

    @property
    def counts(self) -> str:
        """What the numbers of these runs count: facts, or queries where one asks some often."""
        return "queries" if any(run.counts == "queries" for run in self.runs) else "facts"

    @cached_property
    def same_counts(self) -> bool:
        """Whether all runs count as many facts of every relation."""
        return len({tuple(one.n for one in run.relations) for run in self.runs}) == 1

    def table_of(self, what: str, make: Callable[[list[Run]], pd.DataFrame]) -> pd.DataFrame:
        """A table made of these runs, kept under `what`; the column `name` has their titles."""
        table = cache.of_runs(what, self.runs, self.ranking, self.relations, make)
        titles = {run.id: title for run, title in zip(self.runs, self.titles, strict=True)}
        return table.assign(name=table["run"].map(titles)) if len(table) else table

    def show(self, figure: "go.Figure", key: str, title: str, **more: Any) -> list[dict[str, Any]]:
        """A chart of these runs with how they were made; what was clicked, as of `charts.show`."""
        from pages.ui.shared import charts  # plotly takes longer than the first answer

        more = {"footnote": self.footnote(), "picture": self.picture} | more
        return charts.show(figure, key, title=title, **more)

    def params(self) -> dict[str, str | list[str]]:
        """The choice as parameters of an address, for the pages that show runs."""
        labels = self.labels
        return {
            "data": self.data,
            "prompts": self.prompts if self.prompts != "manual" else "",
            "models": list(self.models),
            "runs": list(self.exact),
            "relations": [labels[name] for name in self.relations],
            "p_at": str(self.k) if self.k != 1 else "",
            "ranking": self.ranking if self.ranking != "filtered" else "",
            "scored_on": self.facts if self.facts != SAME else "",
        }

    def made(self) -> dict[str, object]:
        """How what is shown was made, to go with what is taken away."""
        return {
            "runs": {name: run.id for name, run in zip(self.names, self.runs, strict=True)},
            "digests": {run.id: run.digest for run in self.runs},
            "ranking": self.ranking,
            "facts": self.facts,
            "asked": self.question or "manual",
            "k": self.k,
            "relations": list(self.relations) or "all",
        }

    def lines_of_runs(self) -> str:
        """The lines of Python that open the runs as they are shown, as `runs`."""
        runs = ", ".join(f'load_run("{run.id}")' for run in self.runs)
        same = self.facts == SAME
        align = "from lama_core.runs.alignment import align\n" if same else ""
        return (
            f"{align}from lama_core.runs.find import load_run\n\n"
            f"runs = {f'align([{runs}])' if same else f'[{runs}]'}\n"
        )

    @property
    def question(self) -> str:
        """What kinds of question the runs asked; empty for the relations' own templates."""
        asked = {run.prompts: run for run in self.runs}
        if set(asked) <= {"manual"}:
            return ""
        return "; ".join(_meant(run) for run in asked.values())

    @property
    def any_statements(self) -> bool:
        """Whether one of the runs ranks whole answers by the statements with them."""
        return any(run.ranks_statements for run in self.runs)

    @property
    def all_statements(self) -> bool:
        """Whether all of the runs do."""
        return all(run.ranks_statements for run in self.runs)

    @property
    def guessable(self) -> bool:
        """Whether the chance level of one of the runs is worth showing."""
        return any(run.guessable for run in self.runs)

    @property
    def gold_stands(self) -> str:
        """What the gold is ranked among, in words."""
        if not self.any_statements:
            return "the candidates"
        return "the answers" if self.all_statements else "the candidates or answers"

    def footnote(self) -> str:
        """What charts stand on, in a line under them and in their pictures."""
        asked = f"asked: {self.question}; " if self.question else ""
        scored = f", scored on {self.facts}" if len(self.runs) > 1 else ""
        return f"{asked}{self.data}, {self.ranking} ranking{scored}"


def _meant(run: RunInfo) -> str:
    """What kind of question a run asked, and what it means."""
    if run.ranks_statements:
        return f"{run.prompts} (whole answers, ranked by the likelihood of the sentence with each)"
    if run.prompts in PROMPT_SETS:
        return f"{run.prompts} ({PROMPT_SETS[run.prompts].meaning})"
    return f"{run.prompts} prompts"


def relation_label(name: str, label: str) -> str:
    """A relation as people read it, beginning with its name."""
    same = label.lower() in ("", name.lower().replace("_", " "))
    return name if same else f"{name} {label}"


def pick_runs(runs: Sequence[RunInfo], data: str, prompts: str) -> dict[str, RunInfo]:
    """Model -> its run on this data with these prompts: the one on most facts, the newest."""
    picked: dict[str, RunInfo] = {}
    for run in runs:
        if (run.dataset, run.prompts) != (data, prompts):
            continue
        best = picked.get(run.model)
        if best is None or (run.n, run.made) >= (best.n, best.made):
            picked[run.model] = run
    return picked


def run_names(runs: Sequence[RunInfo], *, show: Callable[[str], str] = str) -> tuple[str, ...]:
    """A name for each run: the model's, and as much more as it takes to tell them apart.

    show: the model's name as it is written.
    What kind of question was asked is always said, but for the relations' own templates. What its
    owner calls a run takes the place of all that, unless two are called the same.
    """
    ways = (
        lambda run: run.title or show(run.model) + f" {run.prompts}" * (run.prompts != "manual"),
        lambda run: f"{show(run.model)} {run.prompts}",
        lambda run: f"{show(run.model)} {run.prompts} {run.dataset}",
        lambda run: f"{show(run.model)} {run.prompts} {run.dataset} {run.digest[:6]}",
    )
    for way in ways[:-1]:
        names = tuple(way(run) for run in runs)
        if len(set(names)) == len(names):
            return names
    return tuple(ways[-1](run) for run in runs)


def open_runs(here: str) -> tuple[RunListing, RunChoice] | None:
    """The finished runs, and the choice among them; None if there is no run to choose.

    Says which runs can't be read, and which were asked for and aren't here.
    """
    listing = list_runs(kinds=FACT_KINDS)
    for problem in listing.problems:
        show_fault(problem)
    if not len(listing):
        return None
    listing, choice = choose_runs(listing)
    draw_missing(choice, here)
    return listing, choice


def choose_runs(listing: RunListing) -> tuple[RunListing, RunChoice]:
    """The widgets, and what they say. The listing must hold a run.

    Returned without the runs on this data that the address isn't about.
    """
    every = list(listing)
    by_id = {run.id: run for run in every}
    datasets = list(dict.fromkeys(run.dataset for run in every))
    # Under this name style.css hides the boxes on a telephone until the switch is on.
    st.toggle("Choose data, models and relations", key="choosing")
    with st.container(key="run-choice"):
        data_box, models_box, relations_box, more_box = st.columns(
            [2.2, 4, 4, 2.2], vertical_alignment="bottom"
        )
    data = choose("Data", datasets, key="data", place=data_box, help="The facts of the queries.")
    kept = links.among((run.id for run in every if run.dataset == data), of=data)
    every = [run for run in every if run.dataset != data or run.id in kept]
    with more_box, st.popover("More options", icon=":material/tune:", width="stretch"):
        links.leave_endless("p_at")
        k = st.number_input("k", 1, 100, 1, key="p_at", bind=BOUND, help=explain("P@k"))
        sets = list(dict.fromkeys(run.prompts for run in every if run.dataset == data))
        prompts = st.selectbox(
            "Prompts",
            sets,
            index=sets.index("manual") if "manual" in sets else 0,
            key="prompts",
            bind=BOUND,
            help="The prompts that the runs were made with: **manual** is each relation's own "
            "template.",
        )
        ranking = pick(
            "Ranking", ("filtered", "raw"), key="ranking", help=explain("Filtered and raw ranking")
        )
        links.respell("scored_on", {OLD_OWN: OWN})
        facts = pick(
            "Scored on",
            SCORED_ON,
            key="scored_on",
            first=SAME,
            help=f"**{SAME}**: the facts that all models shown can be scored on, and the words "
            "that all of them ranked. A fact that one model excludes (its object isn't one of its "
            f"tokens, for example) is excluded for all. **{OWN}**: every fact that a model can be "
            "scored on.",
        )
        exact = st.multiselect(
            "Exact runs",
            list(by_id),
            key="runs",
            bind=BOUND,
            max_selections=MAX_RUNS,
            placeholder="By data, prompts and models",
            help="Runs by name, of any data and prompts. They replace the choice of data, models "
            "and prompts.",
        )
        picture = pick(
            "Charts are saved as",
            ("png", "svg"),
            key="picture",
            help="The camera above a chart saves it as a file.",
        )
    picked = pick_runs(every, data, prompts)
    models = models_box.multiselect(
        "Models",
        list(picked),
        key="models",
        bind=BOUND,
        accept_new_options=True,
        max_selections=MAX_RUNS,
        placeholder=f"All {len(picked)} with a run",
        help="The models whose runs are shown; none chosen shows all that have a run on this data.",
    )
    if exact:
        runs = [by_id[name] for name in exact]
    else:
        runs = [picked[name] for name in (models or picked) if name in picked] or list(
            picked.values()
        )
    runs = runs[:MAX_RUNS]
    if facts == SAME:
        runs = [run.info for run in cache.aligned(tuple(runs))]
    labels = {
        relation_label(relation.name, relation.label): relation.name
        for run in runs
        for relation in run.relations
    }
    shown = {name: label for label, name in labels.items()}
    known = {*labels, *shown} & set(st.query_params.get_all("relations"))
    others = "the rest of them" if known else "all of them"
    heed_unknown("Relations", "relations", shown, others)
    chosen = relations_box.multiselect(
        "Relations",
        list(labels),
        key="relations",
        bind=BOUND,
        placeholder=f"All {len(labels)}",
        help="None chosen is all.",
    )
    choice = RunChoice(
        runs=tuple(runs),
        names=run_names(runs),
        data=data,
        prompts=prompts,
        models=tuple(models),
        exact=tuple(exact),
        relations=tuple(labels[label] for label in chosen),
        k=int(k),
        ranking=cast(Ranking, ranking),
        picture=picture,
        missing=tuple(name for name in models if name not in picked and not exact),
        known=tuple(dict.fromkeys(run.model for run in every)),
        facts=str(facts),
    )
    return RunListing(tuple(every), listing.problems), choice


@dataclass(frozen=True)
class Footing:
    """On which facts and words runs are compared. said: as Markdown; empty for one run.

    differ: what isn't the same of all runs, as a clause; empty where they are on an equal footing.
    """

    said: str = ""
    differ: str = ""


def draw_same(choice: RunChoice) -> None:
    """What was asked, and on which facts and words models are compared where there are several."""
    draw_question(choice)
    if said := footing(choice).said:
        st.caption(said)


def draw_question(choice: RunChoice) -> None:
    """What was asked, where that isn't the relations' own templates."""
    if choice.question:
        st.markdown(f"**Asked: {plain(choice.question)}.**")


def footing(choice: RunChoice) -> Footing:
    """On which facts and words the runs are compared."""
    if len(choice.runs) < 2:
        return Footing()
    differ = ""
    if any(run.beside for run in choice.runs):
        together = list(choice.runs)
    else:
        together = [run.info for run in cache.aligned(choice.runs)]
    if all(
        info.beside and info.n == run.n for info, run in zip(together, choice.runs, strict=True)
    ):
        n, counts = choice.runs[0].n, choice.counts
        said = f"Scored on the {n:,} {counts} that all models can be scored on."
        if choice.relations:
            n = sum(choice.runs[0].relation(name).n for name in choice.relations)
            said = f"{said[:-1]}; {n:,} of them are in the chosen relations."
    else:
        named = zip(choice.titles, choice.runs, strict=True)
        each = ", ".join(f"{run.n:,} ({plain(title)})" for title, run in named)
        said = f"**Not the same {choice.counts}**: {each}."
        differ = f"the models are scored on different {choice.counts}"
    own = choice.runs[0].beside or choice.runs
    each = ", ".join(
        f"{run.n_said} ({plain(title)})"
        for title, run in zip(run_names(own, show=title_of), own, strict=True)
    )
    exact_to = [run.exact_to for run in choice.runs if run.exact_to is not None]
    if exact_to:
        said += (
            f" Ranked on the {choice.runs[0].n_candidates:,} words that all of them ranked (of "
            f"their own: {each}), from the ten best words that a run keeps: P@k is exact up to k = "
            f"{min(exact_to)}, and a rank behind the ten best is the most that it can be."
        )
    elif len({run.ranks_statements for run in choice.runs}) > 1:
        said += (
            " **Not the same is ranked**: of statements whole answers, by the likelihood of the "
            f"sentence, of cloze queries words at the blank: {each}; with fewer of them every rank "
            "is better."
        )
        differ = "some models rank words and others whole answers"
    elif differing_candidates(choice.runs):
        said += (
            f" **Not the same words** are ranked: {each}; with fewer words every rank is better. A "
            "new run of all models at once ranks the words that all of them have."
        )
        differ = "the models rank different words"
    elif choice.runs[0].candidates == OWN_WORDS:
        said += f" The same words are ranked: each relation's own, {choice.runs[0].n_said}."
    else:
        said += f" The same {choice.runs[0].n_candidates:,} words are ranked."
    return Footing(said, differ)


def draw_missing(choice: RunChoice, here: str) -> None:
    """Say what else than data, prompts and models decides, and which models have no run."""
    if choice.exact:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"Exact runs: {plain(', '.join(choice.titles))}", width="content")
            if st.button("By data and models", icon=":material/undo:", type="tertiary"):
                opened = {name: st.query_params.get(name, "") for name in screens.OPENED}
                links.go(here, {**opened, **choice.params(), "runs": [], "relations": []})
    if choice.missing:
        names = ", ".join(map(title_of, choice.missing))
        show_note(
            plain(f"{names}: no run on {choice.data} with these prompts yet. ")
            + "Make one on the page **Data and runs**."
        )


def draw_runs(choice: RunChoice) -> None:
    """How the runs that are shown were made."""
    with st.expander("How these runs were made"):
        st.dataframe(
            [
                {
                    "run": run.id,
                    "made": run.made.replace("T", " ").removesuffix("Z"),
                    choice.counts: run.n,
                    "excluded": run.n_excluded,
                    "candidates": f"{run.candidates} ({run.n_said})",
                    "context": run.context,
                    "precision": run.precision,
                    "device": run.device or "not said",
                    "facts a relation": "all" if run.limit is None else f"first {run.limit}",
                    "facts/s": run.n / run.seconds if run.seconds else None,
                    "comes with the project": run.bundled,
                }
                for run in choice.runs
            ],
            hide_index=True,
            column_config={"facts/s": st.column_config.NumberColumn(format="%.0f")},
        )
        if len({run.data_digest for run in choice.runs}) > 1:
            st.caption("These runs were made on different facts: compare them with care.")
