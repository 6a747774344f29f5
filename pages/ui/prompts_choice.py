"""Which study, relation and prompts the Prompts page shows; all of it in the address bar."""

from dataclasses import dataclass

import streamlit as st

from lama_core.datasets.prompt_sets import TITLES
from lama_core.errors import UserError
from lama_core.probes.prompts.study import RelationStudy
from lama_core.probes.prompts.study_files import StudyInfo, list_studies, load_relation, read_label
from pages.ui.colours import model_colours
from pages.ui.messages import show_fault
from pages.ui.state import BOUND, title_of

FIRST_RELATIONS = ("P36", "P103", "P19")
FIRST_SETS = ("mine+man", "man+para", "all")
SETS_HELP = (
    "**Mine**: found in sentences that hold a subject and its object. **Mine+Para**: paraphrases "
    "of the best mined prompt. **Man+Para**: the manual prompt and its paraphrases. "
    "**Mine+Man**: the mined ones and the manual one (Jiang et al. 2020, section 5.1)."
)


@dataclass(frozen=True)
class PromptsChoice:
    """What is on the screen. combination: the prompt sets that are shown together."""

    info: StudyInfo
    study: RelationStudy
    combination: str

    @property
    def colour(self) -> str:
        """The model's colour, as on every page."""
        return model_colours([self.info.model])[self.info.model]

    @property
    def members(self) -> tuple[int, ...]:
        """Positions of the prompts that are shown."""
        return self.study.pool.members(self.combination)

    @property
    def footnote(self) -> str:
        """How the numbers were made, in one line."""
        info, study = self.info, self.study
        return (
            f"{info.model} on {info.dataset}, {study.relation.name}: {len(study.train):,} training "
            f"and {len(study.test):,} test facts, {study.n_candidates:,} candidates "
            f"({info.candidates}), ranking {info.ranking}"
        )

    def made(self) -> dict[str, object]:
        """How the numbers were made, for an export."""
        return {
            "study": self.info.folder.name,
            "model": self.info.model,
            "model_identity": self.info.model_identity,
            "dataset": self.info.dataset,
            "relation": self.study.relation.name,
            "set": self.combination,
            "candidates": self.info.candidates,
            "ranking": self.info.ranking,
            "limit": self.info.limit,
            "train_limit": self.info.train_limit,
            "seed": self.info.seed,
        }


def choose_study() -> PromptsChoice | None:
    """The widgets in one row; None while there is no study at all."""
    studies = {info.folder.name: info for info in list_studies(on_problem=show_fault)}
    if not studies:
        return None
    models = {name: f"{title_of(info.model)} on {info.dataset}" for name, info in studies.items()}
    doubled = [label for label in models.values() if list(models.values()).count(label) > 1]
    labels = {
        name: f"{label} ({name.rsplit('-', 1)[-1][:4]})" if label in doubled else label
        for name, label in models.items()
    }
    left, middle, right = st.columns([2, 2, 3], vertical_alignment="bottom")
    name = left.selectbox(
        "Model and facts", list(studies), format_func=lambda one: labels[one], key="study",
        bind=BOUND, help="One model's answers to one set of facts through many prompts.",
    )  # fmt: skip
    info = studies[name]
    names = info.relations()
    first = next((known for known in FIRST_RELATIONS if known in names), names[0])
    if st.session_state.get("relation") not in names:
        st.session_state.pop("relation", None)
    shown = {one: _relation_title(info, one) for one in names}
    relation = middle.selectbox(
        "Relation", list(names), index=names.index(first), format_func=lambda one: shown[one],
        key="relation", bind=BOUND,
    )  # fmt: skip
    study = _loaded(info, relation)
    sets = [one for one in study.pool.combinations() if len(study.pool.members(one)) > 1]
    sets = sets or ["all"]
    first_set = next((one for one in FIRST_SETS if one in sets), sets[-1])
    if st.session_state.get("set") not in sets:
        st.session_state.pop("set", None)
    with right:
        combination = st.segmented_control(
            "Prompts", sets, default=first_set, required=True, key="set", bind=BOUND,
            format_func=lambda one: TITLES[one], help=SETS_HELP,
        )  # fmt: skip
    return PromptsChoice(info, study, combination or first_set)


def _loaded(info: StudyInfo, relation: str) -> RelationStudy:
    """The relation's results, kept in the session while it is looked at."""
    mark = (str(info.folder), info.identity, relation)
    kept = st.session_state.get("prompts study")
    if kept is None or kept[0] != mark:
        kept = (mark, load_relation(info, relation))
        st.session_state["prompts study"] = kept
    study: RelationStudy = kept[1]
    return study


def all_relations(info: StudyInfo) -> tuple[RelationStudy, ...]:
    """Every finished relation of a study, kept in the session while it is looked at."""
    names = info.relations()
    mark = (str(info.folder), info.identity, names)
    kept = st.session_state.get("prompts studies")
    if kept is None or kept[0] != mark:
        found = []
        for name in names:
            try:
                found.append(load_relation(info, name))
            except UserError as error:
                show_fault(str(error))
        kept = (mark, tuple(found))
        st.session_state["prompts studies"] = kept
    studies: tuple[RelationStudy, ...] = kept[1]
    return studies


def _relation_title(info: StudyInfo, relation: str) -> str:
    """The relation's name and label, read once a session."""
    titles: dict[tuple[str, str], str] = st.session_state.setdefault("prompts titles", {})
    mark = (str(info.folder), relation)
    if mark not in titles:
        titles[mark] = f"{relation} {read_label(info, relation)}".strip()
    return titles[mark]
