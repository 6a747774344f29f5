"""Which study, relation and prompts the tab Prompts shows; all of it in the address bar."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar, cast

import streamlit as st

from lama_core.datasets.prompt_sets import MEANINGS, TITLES
from lama_core.errors import UserError
from lama_core.glossary import explain
from lama_core.metrics.origins import n_from_training
from lama_core.probes.prompts.gains import Gain
from lama_core.probes.prompts.plan import StudyRequest, request_of
from lama_core.probes.prompts.spec import Study, list_studies
from lama_core.probes.prompts.study import RelationStudy
from lama_core.runs.info import RunInfo
from lama_core.scoring.blanks import shows_subject
from pages.ui.shared import cache
from pages.ui.shared.colours import model_colours
from pages.ui.shared.messages import plain, show_fault
from pages.ui.shared.url_state import BOUND, choose, drop_stale, heed_unknown, pick, title_of

T = TypeVar("T")
MADE = "study made"  # in the session: the study that its user made and asked to see


@dataclass(frozen=True)
class PromptsChoice:
    """What is on the screen. combination: the prompt sets that are shown together."""

    whole: Study
    study: RelationStudy
    combination: str

    @property
    def info(self) -> RunInfo:
        """What the study was made from."""
        return self.whole.info

    def request(self) -> StudyRequest:
        """What makes the numbers of this relation again."""
        return request_of(self.whole, (self.study.relation.name,))

    @property
    def colour(self) -> str:
        """The model's colour, as on every page."""
        return model_colours([self.info.model])[self.info.model]

    @property
    def members(self) -> tuple[int, ...]:
        """Positions of the prompts that are shown."""
        return self.study.pool.members(self.combination)

    @property
    def eligible(self) -> tuple[int, ...]:
        """Positions of those from which ensembles are made."""
        return self.study.pool.eligible(self.combination)

    def shows_subject(self, prompt: int) -> bool:
        """Whether the model sees the subject in this prompt."""
        return shows_subject(self.study.pool.prompts[prompt].template, self.info.context)

    @property
    def footnote(self) -> str:
        """How the numbers were made, in one line."""
        info, study = self.info, self.study
        return (
            f"{title_of(info.model)} on {info.dataset}, {study.relation.name}: "
            f"{len(study.train):,} training and {len(study.test):,} test facts, "
            f"{study.n_candidates:,} candidates ({info.candidates}), ranking {info.ranking}"
        )

    def made(self) -> dict[str, object]:
        """How the numbers were made, for an export."""
        made = self.whole.details
        return {
            "study": self.info.id,
            "model": self.info.model,
            "model_identity": self.info.model_identity,
            "dataset": self.info.dataset,
            "relation": self.study.relation.name,
            "set": self.combination,
            "candidates": self.info.candidates,
            "ranking": self.info.ranking,
            "limit": self.info.limit,
            "train_limit": made["train_limit"],
            "seed": made["seed"],
        }


def default_study(studies: Sequence[Study]) -> Study:
    """The study to open on: where chosen prompts gain most over the manual one; else the first."""
    return max(studies, key=lambda study: gain.mean if (gain := _gain(study)) else -math.inf)


def _gain(study: Study) -> Gain | None:
    """What its best way of choosing gains; None where that isn't known."""
    try:
        return cache.gain_of(study.info)
    except UserError:
        return None  # damaged: it says so once it is chosen


def choose_study() -> PromptsChoice | None:
    """The widgets in one row; None while there is no study at all."""
    studies = {study.info.id: study for study in list_studies(on_problem=show_fault)}
    if not studies:
        return None
    models = {
        name: f"{title_of(study.info.model)} on {study.info.dataset}"
        for name, study in studies.items()
    }
    # Told apart also while there is one: the label is in the address, and another may come.
    labels = {name: f"{label} ({name.rsplit('-', 1)[-1][:4]})" for name, label in models.items()}
    made = [studies[name] for name in st.session_state.get(MADE, ()) if name in studies]
    first_study = default_study(made or list(studies.values())).info.id
    left, middle, right = st.columns([2, 2, 3], vertical_alignment="bottom")
    name = choose(
        "Model and facts",
        list(studies),
        show=lambda one: labels[one],
        key="study",
        place=left,
        first=first_study,
        help="One model's answers to one set of facts through many prompts. The page opens on the "
        "study whose chosen and weighted prompts gain most over the manual ones.",
    )
    whole = studies[name]
    names = whole.relations
    gain = _gain(whole)
    first = gain.relation if gain else names[0]
    drop_stale("relation", names)
    shown = {one: _relation_title(whole.info, one) for one in names}
    heed_unknown("Relation", "relation", shown, shown[st.session_state.get("relation", first)])
    relation = middle.selectbox(
        "Relation",
        list(names),
        index=names.index(first),
        format_func=lambda one: shown[one],
        key="relation",
        bind=BOUND,
    )
    study = _loaded(whole, relation)
    sets = [one for one in study.pool.combinations() if len(study.pool.members(one)) > 1]
    sets = sets or ["all"]
    first_set = gain.combination if gain and gain.combination in sets else sets[-1]
    drop_stale("set", sets)
    with right:
        combination = pick(
            "Prompts",
            sets,
            key="set",
            first=first_set,
            format_func=lambda one: TITLES[one],
            help=explain("Sets of prompts"),
        )
        st.caption(f"**{TITLES[combination]}**: {MEANINGS[combination]}")
    choice = PromptsChoice(whole, study, combination)
    if study.ranking == "filtered" and study.removed is None:
        st.warning(
            "This study doesn't hold the other valid objects that its filtered ranking excludes: "
            "single answers are shown with them. Delete its folder and make it again to see them "
            "without.",
            icon=":material/warning:",
        )
    return choice


def describe(choice: PromptsChoice) -> str:
    """What every number of the tab counts, in a sentence or two."""
    study, model = choice.study, plain(title_of(choice.info.model))
    meant = {
        "raw": "every candidate counts, other valid objects too",
        "filtered": "other valid objects of the subject are excluded",
    }[study.ranking]
    said = (
        f"All of this tab: **{study.ranking} ranking** ({meant}). "
        f"{plain(study.relation.name)}: {len(study.train):,} training and {len(study.test):,} test "
        f"facts, {study.n_candidates:,} candidates ({plain(choice.info.candidates)})."
    )
    trained = n_from_training(choice.info.model, (fact.origin for fact in study.test))
    if trained:
        said += f" {trained:,} of the test facts come from sources that {model} was trained on."
    blind = [one for one in choice.members if not choice.shows_subject(one)]
    if blind:
        kept = [one for one in blind if one in choice.eligible]
        said += (
            f" **{len(blind)} of {len(choice.members)} prompts hide the subject from {model}**: "
            "the blank comes before it, and a causal model sees only what comes before the blank. "
            f"This study {'includes them in' if kept else 'excludes them from'} its ensembles."
        )
    return said


def _kept(key: str, mark: tuple[str, ...], load: Callable[[], T]) -> T:
    """What is loaded, kept in the session while what has this mark is looked at."""
    kept = st.session_state.get(key)
    if kept is None or kept[0] != mark:
        kept = st.session_state[key] = (mark, load())
    return cast(T, kept[1])


def _loaded(whole: Study, relation: str) -> RelationStudy:
    """The relation's results."""
    mark = (str(whole.info.folder), whole.info.digest, relation)
    return _kept("prompts study", mark, lambda: whole.relation(relation))


def all_relations(whole: Study) -> tuple[RelationStudy, ...]:
    """Every relation of a study."""
    mark = (str(whole.info.folder), whole.info.digest)
    return _kept("prompts studies", mark, lambda: tuple(map(whole.relation, whole.relations)))


def _relation_title(info: RunInfo, relation: str) -> str:
    """The relation's name and label."""
    return f"{relation} {info.relation(relation).label}".strip()
