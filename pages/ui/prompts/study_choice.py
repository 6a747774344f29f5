"""The study, relation and prompts that the tab Prompts shows; they are in the URL."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar, cast

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from lama_core.datasets.prompt_sets import MEANINGS, TITLES
from lama_core.errors import UserError
from lama_core.glossary import explain
from lama_core.metrics.origins import n_from_training
from lama_core.probes.prompts.gains import Gain
from lama_core.probes.prompts.request import SelectRequest, StudyRequest
from lama_core.probes.prompts.spec import Study, list_studies
from lama_core.probes.prompts.study import RelationStudy
from lama_core.runs.info import RunInfo
from lama_core.scoring.blanks import shows_subject
from lama_core.views.colours import model_colours
from lama_core.views.figure import relation_label
from pages.ui.shared import cache, links
from pages.ui.shared.export import request_of
from pages.ui.shared.messages import counted, plain, show_error
from pages.ui.shared.url_state import BOUND, choose, drop_stale, note_unknown, pick, title_of

T = TypeVar("T")
MADE_STUDY_KEY = "study made"  # session key: the study that the user just made


@dataclass(frozen=True)
class PromptsChoice:
    """The study, one of its relations, and the combination of prompt sets shown."""

    whole: Study
    study: RelationStudy
    combination: str

    @property
    def info(self) -> RunInfo:
        """The study's data, model and settings."""
        return self.whole.info

    def request(self, relations: tuple[str, ...]) -> StudyRequest | None:
        """Return the request for a study of some of the relations; None if it isn't stored."""
        request = request_of(self.info)
        if not isinstance(request, SelectRequest):
            return None
        return replace(request.study, relations=relations)

    @property
    def colour(self) -> str:
        """The model's colour, as on every page."""
        return model_colours([self.info.model])[self.info.model]

    def title_of(self, relation: str) -> str:
        """Return a relation's name and label."""
        return relation_label(relation, self.info.relation(relation).label)

    @property
    def members(self) -> tuple[int, ...]:
        """Indexes of the shown prompts in the study's pool."""
        return self.study.pool.members(self.combination)

    @property
    def eligible(self) -> tuple[int, ...]:
        """Indexes of the shown prompts that ensembles include."""
        return self.study.pool.eligible(self.combination)

    def shows_subject(self, prompt: int) -> bool:
        """Return whether the model sees the subject in this prompt."""
        return shows_subject(self.study.pool.prompts[prompt].template, self.info.context)

    @property
    def drawn(self) -> str:
        """How the facts of a study with a limit were chosen, in brackets; else empty."""
        details = self.whole.details
        if not (self.info.limit or details["train_limit"]):
            return ""
        seed = details["seed"]
        return " (the first ones)" if seed is None else f" (drawn at random, seed {seed})"

    @property
    def footnote(self) -> str:
        """Model, data and settings in one line, for charts."""
        info, study = self.info, self.study
        return (
            f"{title_of(info.model)} on {info.dataset}, {study.relation.name}: "
            f"{len(study.train):,} training and {len(study.test):,} test facts{self.drawn}, "
            f"{study.n_candidates:,} candidates ({info.candidates}), {info.ranking} ranking"
        )

    def made(self) -> dict[str, object]:
        """Return how the numbers were computed, for an export."""
        details = self.whole.details
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
            "train_limit": details["train_limit"],
            "seed": details["seed"],
        }


def default_study(studies: Sequence[Study]) -> Study:
    """Return the study with most test facts, of those with a known gain over manual prompts.

    So a visitor's small study doesn't change what others see. The first one wins a tie.
    """
    return max(studies, key=lambda study: (_gain(study) is not None, study.info.n))


def _gain(study: Study) -> Gain | None:
    """Return the largest gain over the manual prompt; None if unknown."""
    try:
        return cache.gain_of(study.info)
    except UserError:
        return None  # damaged; choosing the study shows the error


def _titles_of_study(study: Study) -> tuple[str, str, str]:
    """Return a study's titles, the shortest first, for the shortest that no other study has.

    By model and data, then also by the number of facts or single relation, then by when it was
    made.
    """
    info = study.info
    short = f"{title_of(info.model)} on {info.dataset}"
    what = counted(len(info.relations), "relation")
    if len(info.relations) == 1:
        what = relation_label(info.relations[0].name, info.relations[0].label)
    longer = f"{short}: {what}, {counted(info.n, 'fact')}"
    return short, longer, f"{longer}, {info.made[:16]}"


def choose_study(*, of_relation: bool, of_set: bool) -> PromptsChoice | None:
    """Draw the widgets that choose a study, relation and prompts; None without studies.

    of_relation, of_set: whether the choice of a relation, and of prompts, changes what is shown.
    """
    studies = {study.info.id: study for study in list_studies(on_problem=show_error)}
    if not studies:
        return None
    st.toggle("Choose study, relation and prompts", key="choosing")  # on phones
    with st.container(key="run-choice"):
        left, *boxes = st.columns(
            [4, *[3] * of_relation, 5 if of_set else 8],
            vertical_alignment="bottom",
        )
    titles = {key: _titles_of_study(study) for key, study in studies.items()}
    n_same = Counter(title for of_study in titles.values() for title in of_study)
    labels = {
        key: next(title for title in of_study if n_same[title] == 1 or title == of_study[-1])
        for key, of_study in titles.items()
    }
    # In URLs from before another study of the same title was made, the title is replaced.
    former = {title: labels[key] for key in reversed(studies) for title in titles[key]}
    links.replace_values("study", former)
    made = [studies[name] for name in st.session_state.get(MADE_STUDY_KEY, ()) if name in studies]
    name = choose(
        "Model and facts",
        list(studies),
        show=labels.__getitem__,
        key="study",
        place=left,
        first=default_study(made or list(studies.values())).info.id,
        help="A study has one model's answers to one set of facts with many prompts. The default "
        "is the study with most test facts.",
    )
    whole = studies[name]
    gain = _gain(whole)
    relation = first = whole.relations[0]
    names = whole.relations
    if of_relation:
        drop_stale("relation", names)
        of_names = {one: relation_label(one, whole.info.relation(one).label) for one in names}
        shown = of_names[st.session_state.get("relation", first)]
        note_unknown("Relation", "relation", of_names, shown)
        relation = boxes[0].selectbox(
            "Relation", list(names), format_func=of_names.__getitem__, key="relation", bind=BOUND
        )
    mark = (str(whole.info.folder), whole.info.digest, relation)
    study = _cached("prompts study", mark, lambda: whole.relation(relation))
    combination = "all"
    if of_set:
        combination = _choose_set(study, boxes[-1], first=gain.combination if gain else "")
    if combination != "all":
        st.caption(f"**{TITLES[combination]}**: {MEANINGS[combination]}")
    return PromptsChoice(whole, study, combination)


def _choose_set(study: RelationStudy, place: DeltaGenerator, *, first: str) -> str:
    """Draw the choice of a combination of prompt sets with several prompts."""
    sets = [key for key in study.pool.combinations() if len(study.pool.members(key)) > 1]
    sets = sets or ["all"]
    drop_stale("set", sets)
    with place:
        return pick(
            "Prompts",
            sets,
            key="set",
            first=first if first in sets else sets[-1],
            format_func=TITLES.__getitem__,
            help=explain("Sets of prompts"),
        )


def describe_ranking(study: RelationStudy) -> str:
    """Describe the ranking that every number of the tab uses."""
    meaning = {
        "raw": "all candidates are ranked, including other valid objects",
        "filtered": "other valid objects of the subject are excluded",
    }[study.ranking]
    return f"This tab uses the **{study.ranking} ranking** ({meaning})."


def said_of_training(choice: PromptsChoice, studies: Sequence[RelationStudy]) -> str:
    """Return how many test facts are from the model's training sources, a clause; "" if none is."""
    origins = [fact.origin for study in studies for fact in study.test]
    trained = n_from_training(choice.info.model, origins)
    of = f"all {trained:,}" if trained == len(origins) else f"{trained:,} of the {len(origins):,}"
    model = plain(title_of(choice.info.model))
    return f"{of} test facts come from sources that {model} was trained on" * bool(trained)


def describe(choice: PromptsChoice, studies: Sequence[RelationStudy]) -> str:
    """Describe the ranking, and the facts and candidates of one relation, or of all of a study."""
    study, model = choice.study, plain(title_of(choice.info.model))
    few = len(studies) == 1
    n_train = sum(len(one.train) for one in studies)
    n_test = sum(len(one.test) for one in studies)
    text = (
        f"{describe_ranking(study)} "
        f"{plain(study.relation.name) if few else f'{len(studies)} chosen relations'}: {n_train:,} "
        f"training and {n_test:,} test facts{choice.drawn}, {study.n_candidates:,} "
        f"candidates ({plain(choice.info.candidates)})."
    )
    if trained := said_of_training(choice, studies):
        text += f" {trained[0].upper()}{trained[1:]}."
    pools = [one.pool for one in studies]
    members = [(pool, number) for pool in pools for number in pool.members(choice.combination)]
    blind = [
        (pool, number)
        for pool, number in members
        if not shows_subject(pool.prompts[number].template, choice.info.context)
    ]
    if blind:
        included = any(number in pool.eligible(choice.combination) for pool, number in blind)
        text += (
            f" **{len(blind)} of {len(members)} prompts hide the subject from {model}**: "
            "the subject comes after the blank, and a causal model sees only the text before it. "
            f"This study {'includes them in' if included else 'excludes them from'} its ensembles."
        )
    return text


def _cached(key: str, mark: tuple[str, ...], load: Callable[[], T]) -> T:
    """Return `load()`, cached in the session under `key` until `mark` changes."""
    entry = st.session_state.get(key)
    if entry is None or entry[0] != mark:
        entry = st.session_state[key] = (mark, load())
    return cast(T, entry[1])


def load_relations(whole: Study) -> tuple[RelationStudy, ...]:
    """Return all relations of a study, cached in the session."""
    mark = (str(whole.info.folder), whole.info.digest)
    return _cached("prompts studies", mark, lambda: tuple(map(whole.relation, whole.relations)))
