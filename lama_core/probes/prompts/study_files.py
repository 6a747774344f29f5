"""Studies on disk: one folder a study, two files a relation.

    study.json       what the study was made from
    candidates.json  the words that were ranked
    P19.json         prompts, facts, weights, words, notes
    P19.npz          ranks, answers and the shortlist, as arrays without any object in them

Each file is written under another name first and renamed when whole; the JSON last.
"""

import json
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lama_core.candidates.columns import Candidates
from lama_core.datasets.prompt_sets import Entry, PromptPool
from lama_core.errors import UserError, did_you_mean
from lama_core.files import whole_file, write_text_whole
from lama_core.paths import ASSETS, data_dir
from lama_core.probes.prompts.selection import Ensemble
from lama_core.probes.prompts.shortlist import Shortlist
from lama_core.probes.prompts.study import RelationStudy
from lama_core.types import Fact, Prompt, Relation

STUDY_FILE = "study.json"
WORDS_FILE = "candidates.json"


@dataclass(frozen=True)
class StudyInfo:
    """What `study.json` says.

    identity: digest of everything the numbers depend on. limit, train_limit, seed: which facts;
    None is all of them, or the first in file order.
    """

    identity: str
    dataset: str
    model: str
    model_kind: str
    model_identity: str
    candidates: str
    context: str
    ranking: str
    prompts: str
    training: str
    combinations: tuple[str, ...]
    recipes: tuple[str, ...]
    limit: int | None
    train_limit: int | None
    seed: int | None
    folder: Path = Path()

    @property
    def label(self) -> str:
        """A short name for people."""
        some = "" if self.limit is None else f", {self.limit} facts a relation"
        return f"{self.model} on {self.dataset}{some}"

    def relations(self) -> tuple[str, ...]:
        """The relations that are finished, in natural order."""
        names = [
            path.stem
            for path in self.folder.glob("*.json")
            if path.name not in (STUDY_FILE, WORDS_FILE)
        ]
        return tuple(sorted(names, key=lambda name: (len(name), name)))


def studies_dir() -> Path:
    """Folder of the user's own studies; not created here."""
    return data_dir() / "prompt-studies"


def bundled_studies_dir() -> Path:
    """Folder of the studies that come with the project."""
    return ASSETS / "prompts"


def list_studies(
    folders: Sequence[Path] | None = None, *, on_problem: Callable[[str], None] | None = None
) -> tuple[StudyInfo, ...]:
    """Studies with at least one finished relation: the user's own, newest first, then bundled.

    on_problem: told of each study that can't be read; without it the first raises UserError.
    """
    found = []
    for folder in (studies_dir(), bundled_studies_dir()) if folders is None else folders:
        paths = sorted(folder.glob(f"*/{STUDY_FILE}"), key=lambda path: -path.stat().st_mtime)
        for path in paths:
            try:
                info = read_study_info(path.parent)
            except UserError as error:
                if on_problem is None:
                    raise
                on_problem(str(error))
                continue
            if info.relations():
                found.append(info)
    return tuple(found)


def find_study(name: str) -> StudyInfo:
    """The study called `name` (or the beginning of its name), or in the folder `name`.

    Raises UserError, with the nearest name, if there is none.
    """
    if (Path(name) / STUDY_FILE).is_file():
        return read_study_info(Path(name))
    here = {info.folder.name: info for info in list_studies()}
    matches = [info for found, info in here.items() if found.startswith(name)]
    if len(matches) == 1 or name in here:
        return here.get(name) or matches[0]
    if matches:
        names = ", ".join(info.folder.name for info in matches)
        raise UserError(f"{len(matches)} studies begin with {name!r}: {names}.")
    hint = did_you_mean(name, here)
    raise UserError(f"There is no study {name!r}{hint}. `prompts fit` makes one.")


def read_study_info(folder: Path) -> StudyInfo:
    """What a study folder says of itself. Raises UserError if it is broken or missing."""
    raw = _read_json(folder / STUDY_FILE)
    try:
        for name in ("combinations", "recipes"):
            raw[name] = tuple(raw[name])
        return StudyInfo(**raw, folder=folder)
    except (TypeError, KeyError) as error:
        raise UserError(f"{folder / STUDY_FILE} is damaged ({error}): make the study again.") from (
            error
        )


def write_study_info(info: StudyInfo, folder: Path) -> StudyInfo:
    """Write `study.json`; returns the description with its folder."""
    content = asdict(info)
    del content["folder"]
    write_text_whole(folder / STUDY_FILE, json.dumps(content, ensure_ascii=False, indent=1) + "\n")
    return StudyInfo(**{**content, "combinations": info.combinations, "recipes": info.recipes},
                     folder=folder)  # fmt: skip


def write_candidates(candidates: Candidates, folder: Path) -> None:
    """Write the words that a study ranks, so that another prompt can be tried on the same."""
    content = {
        "name": candidates.name, "fold_case": candidates.fold_case, "words": candidates.words
    }  # fmt: skip
    write_text_whole(folder / WORDS_FILE, json.dumps(content, ensure_ascii=False))


def read_candidates(info: StudyInfo) -> Candidates:
    """The words that a study ranks. Raises UserError if they are missing or damaged."""
    raw = _read_json(info.folder / WORDS_FILE)
    try:
        words = raw["words"]
        return Candidates(raw["name"], None if words is None else tuple(words), raw["fold_case"])
    except (KeyError, TypeError) as error:
        raise UserError(
            f"{info.folder / WORDS_FILE} is damaged ({error}): make the study again."
        ) from error


def save_relation(study: RelationStudy, folder: Path) -> None:
    """Write one relation's results; half-written ones are never seen."""
    name = study.relation.name
    shortlist = study.shortlist
    # Half precision is finest near 0: what is kept is the distance from each fact's highest.
    highest = shortlist.log_probs.max(axis=2)
    arrays = {
        "train_ranks": study.train_ranks,
        "rows": study.rows,
        "ensemble_rows": study.ensemble_rows,
        "weights": np.stack([one.weights for one in study.ensembles]),
        "columns": shortlist.columns.astype(np.int32),
        "highest": highest,
        "log_probs": (shortlist.log_probs - highest[:, :, None]).astype(np.float16),
        "gold": shortlist.gold.astype(np.int16),
        "ceilings": (shortlist.ceilings - highest).astype(np.float16),
    }
    with whole_file(folder / f"{name}.npz") as part, part.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)
    write_text_whole(folder / f"{name}.json", json.dumps(_content(study), ensure_ascii=False))


def load_relation(info: StudyInfo, relation: str) -> RelationStudy:
    """One relation's results. Raises UserError if they are not there or damaged."""
    raw = _read_json(info.folder / f"{relation}.json")
    path = info.folder / f"{relation}.npz"
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return _study(raw, {name: arrays[name] for name in arrays.files})
    except OSError as error:
        raise UserError(f"{path} can't be read ({error}): make the study again.") from error
    except (ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise UserError(f"{path} is damaged ({error}): make the study again.") from error


def read_label(info: StudyInfo, relation: str) -> str:
    """A relation's label, such as `capital`; cheap to read."""
    return str(_read_json(info.folder / f"{relation}.json")["relation"][2])


def _content(study: RelationStudy) -> dict[str, Any]:
    relation = study.relation
    return {
        "relation": [relation.name, relation.source, relation.label, relation.description],
        "type": relation.type,
        "manual": [prompt.template for prompt in relation.prompts[:1]],
        "model": study.model,
        "model_kind": study.model_kind,
        "ranking": study.ranking,
        "prompts": [
            [entry.prompt.template, entry.prompt.origin, entry.prompt.weight, sorted(entry.origins)]
            for entry in study.pool.entries
        ],
        "train": [_fact_row(fact) for fact in study.train],
        "test": [_fact_row(fact) for fact in study.test],
        "objects": study.objects,
        "ensembles": [
            [one.combination, one.method, one.combine, one.objective, one.n_epochs]
            for one in study.ensembles
        ],
        "n_kept": study.shortlist.n_kept,
        "curves": study.curves,
        "words": {str(column): word for column, word in study.words.items()},
        "n_candidates": study.n_candidates,
        "excluded": [[*_fact_row(fact), reason] for fact, reason in study.excluded],
        "notes": study.notes,
    }


def _fact_row(fact: Fact) -> list[str]:
    return [fact.id, fact.subject, fact.object]


def _study(raw: dict[str, Any], arrays: dict[str, Any]) -> RelationStudy:
    name, source, label, description = raw["relation"]
    relation = Relation(
        name, source, label, description, raw["type"], tuple(Prompt(text) for text in raw["manual"])
    )

    def fact(row: list[str]) -> Fact:
        return Fact(row[0], row[1], name, row[2], source)

    entries = tuple(
        Entry(Prompt(template, origin, weight), frozenset(origins))
        for template, origin, weight, origins in raw["prompts"]
    )
    columns = arrays["columns"].astype(np.int64)
    highest = arrays["highest"]
    log_probs = arrays["log_probs"].astype(np.float32) + highest[:, :, None]
    return RelationStudy(
        relation=relation,
        model=raw["model"],
        model_kind=raw["model_kind"],
        ranking=raw["ranking"],
        pool=PromptPool(name, entries),
        train=tuple(fact(row) for row in raw["train"]),
        test=tuple(fact(row) for row in raw["test"]),
        objects=tuple(raw["objects"]),
        train_ranks=arrays["train_ranks"],
        rows=arrays["rows"],
        ensembles=tuple(
            Ensemble(combination, method, weights, combine, objective, n_epochs)
            for (combination, method, combine, objective, n_epochs), weights in zip(
                raw["ensembles"], arrays["weights"], strict=True
            )
        ),
        ensemble_rows=arrays["ensemble_rows"],
        shortlist=Shortlist(
            columns,
            log_probs,
            arrays["gold"].astype(np.int64),
            np.zeros(columns.shape, np.float32),
            arrays["ceilings"].astype(np.float32) + highest,
            raw["n_kept"],
        ),
        curves=tuple((combination, kind, tuple(p)) for combination, kind, p in raw["curves"]),
        words={int(column): word for column, word in raw["words"].items()},
        n_candidates=raw["n_candidates"],
        excluded=tuple((fact(row), row[3]) for row in raw["excluded"]),
        notes=tuple(raw["notes"]),
    )


def _read_json(path: Path) -> dict[str, Any]:
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{path} can't be read: {error.strerror}.") from error
    except ValueError as error:
        raise UserError(f"{path} is damaged ({error}): make the study again.") from error
    if not isinstance(raw, dict):
        raise UserError(f"{path} is damaged: make the study again.")
    return raw
