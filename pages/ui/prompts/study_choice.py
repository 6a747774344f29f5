"""The study, relation and prompts that the tab Prompts shows; they are in the URL."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import streamlit as st

from lama_core.datasets.prompt_sets import MEANINGS, TITLES
from lama_core.errors import UserError
from lama_core.glossary import explain
from lama_core.metrics.origins import n_from_training
from lama_core.probes.prompts.gains import Gain
from lama_core.probes.prompts.request import SelectRequest, StudyRequest
from lama_core.probes.prompts.spec import Study, list_studies
from lama_core.probes.prompts.study import RelationStudy
from lama_core.runs.info import Run, RunInfo
from lama_core.scoring.blanks import shows_subject
from lama_core.views.colours import model_colours
from lama_core.views.figure import relation_label
from pages.ui.shared import cache, links
from pages.ui.shared.export import request_of
from pages.ui.shared.messages import counted, plain, show_error
from pages.ui.shared.url_state import choose, drop_stale, pick, title_of

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
    relation = whole.relations[0]
    if of_relation:
        relation = choose(
            "Relation",
            whole.relations,
            key="relation",
            show=lambda one: relation_label(one, whole.info.relation(one).label),
            place=boxes[0],
        )
    study, combination = _load_relation(whole.info, relation), "all"
    if of_set:
        pool, gain = study.pool, _gain(whole)
        sets = [one for one in pool.combinations() if len(pool.members(one)) > 1] or ["all"]
        drop_stale("set", sets)
        combination = pick(
            "Prompts",
            sets,
            key="set",
            first=gain.combination if gain and gain.combination in sets else sets[-1],
            place=boxes[-1],
            format_func=TITLES.__getitem__,
            help=explain("Sets of prompts"),
        )
    if combination != "all":
        st.caption(f"**{TITLES[combination]}**: {MEANINGS[combination]}")
    return PromptsChoice(whole, study, combination)


def describe_ranking(study: RelationStudy) -> str:
    """Describe the ranking that every number of the tab uses."""
    meanings = {
        "raw": "all candidates are ranked, including other valid objects",
        "filtered": "other valid objects of the subject are excluded",
    }
    return f"This tab uses the **{study.ranking} ranking** ({meanings[study.ranking]})."


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
    n_train, n_test = (
        sum(len(getattr(one, part)) for one in studies) for part in ("train", "test")
    )
    of = plain(study.relation.name) if len(studies) == 1 else f"{len(studies)} chosen relations"
    text = (
        f"{describe_ranking(study)} {of}: {n_train:,} training and {n_test:,} test facts"
        f"{choice.drawn}, {study.n_candidates:,} candidates ({plain(choice.info.candidates)})."
    )
    if trained := said_of_training(choice, studies):
        text += f" {trained[0].upper()}{trained[1:]}."
    # Of each prompt: whether it shows the subject, and whether ensembles include it.
    prompts = [
        (
            shows_subject(one.pool.prompts[number].template, choice.info.context),
            number in one.pool.eligible(choice.combination),
        )
        for one in studies
        for number in one.pool.members(choice.combination)
    ]
    if blind := [is_included for shows, is_included in prompts if not shows]:
        text += (
            f" **{len(blind)} of {len(prompts)} prompts hide the subject from {model}**: "
            "the subject comes after the blank, and a causal model sees only the text before it. "
            f"This study {'includes them in' if any(blind) else 'excludes them from'} its "
            "ensembles."
        )
    return text


@cache.cached(8)
def _load_relation(info: RunInfo, relation: str) -> RelationStudy:
    return Study(Run(info)).relation(relation)


@cache.cached(3)
def load_relations(info: RunInfo) -> tuple[RelationStudy, ...]:
    """Return all relations of a study."""
    whole = Study(Run(info))
    return tuple(map(whole.relation, whole.relations))
