"""A lesson: its steps, read from a TOML file and checked; docs/lessons.md documents the format.

The lessons that come with the project are `assets/lessons/*.toml`, a user's own
`data_dir()/lessons/*.toml`. A file's name without its ending is the lesson's name.
"""

import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta

from lama_core.datasets.library.installed import STARTER
from lama_core.errors import UserError, did_you_mean
from lama_core.files import cant_be_read, read_file
from lama_core.metrics.slices import DOMAIN, ORIGIN, PAIR_SEEN, SLICINGS, WORDING_SEEN
from lama_core.paths import ASSETS, data_dir
from lama_core.probes.analogy.templates import DEFAULT_TEMPLATE, TEMPLATES
from lama_core.scoring.blanks import parse_query
from lama_core.scoring.shared_fields import ClozeSettings

ENDING = ".toml"
NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,59}")
# A model that the catalogue or the hub may have: no path, and no address of a server.
MODEL = re.compile(r"[\w][\w.-]*(/[\w][\w.-]*)?(@[\w.-]+)?")
MAX_FILE = 1 << 20  # bytes
MAX_LESSONS = 200
DEFAULT_MODELS = ("minilm-mlm", "smollm2-135m")

Figure = Literal[
    "by relation",
    "curve",
    "ranks",
    "slices",
    "totals",
    "mentions",
    "rankings",
    "altered",
    "wordings",
    "analogies",
]
Of = Literal["object", "subject"]
Context = Literal["auto", "left", "both"]
# All but the first two are names of 0.1, whose parameters lead to the screens that show the same.
Page = Literal["ask", "results", "cloze", "analogy", "facts", "prompts"]
Words = Annotated[str, Meta(max_length=20_000)]
Texts = tuple[Words, ...]
AtMost12 = Meta(min_length=1, max_length=12)


class Step(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"):
    """The fields of every step. title: above it, or empty. text: read first; see `words`.

    A step's own `check` raises ValueError for values that don't fit together.
    """

    title: Words = ""
    text: Words = ""

    @property
    def kind(self) -> str:
        """Its name in the file."""
        return str(self.__struct_config__.tag)

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Nothing more to check."""


class Text(Step, frozen=True, kw_only=True, tag="text"):
    """A text to read."""

    def check(self) -> None:
        """Raise ValueError for a text without words."""
        _require(bool(self.text.strip()), "text is empty: write it")


class Explain(Text, frozen=True, kw_only=True, tag="explain"):
    """A short explanation. source: where it is from."""

    source: Words


class Predict(Step, frozen=True, kw_only=True, tag="predict"):
    """A question that the reader answers before the next step shows the answer.

    choices: to choose from; () with no `between` is a word that the reader types. between: the
    bounds, in percent, of ranges to choose from. answer: one of the choices; empty where the next
    step gives it. row, model: whose first answer or number in it; by default the first's.
    """

    question: Words
    choices: Texts = ()
    between: tuple[float, ...] = ()
    answer: Words = ""
    row: Words = ""
    model: Words = ""

    @property
    def options(self) -> tuple[str, ...]:
        """The choices or ranges; () for a word that is typed."""
        if not self.between:
            return self.choices
        ends = [f"{end:g}" for end in self.between]
        middle = [f"{low} to {high} %" for low, high in pairwise(ends)]
        return (f"less than {ends[0]} %", *middle, f"{ends[-1]} % or more")

    def check(self) -> None:
        """Raise ValueError for choices that can't be, or an answer that isn't among them."""
        choices, between, answer = self.choices, self.between, self.answer
        each_once = len(choices) != 1 and len(set(choices)) == len(choices)
        possible = all(0 < end < 100 for end in between)
        known = not (choices and answer) or answer in choices
        _require(not (choices and between), "it has both choices and between: keep one")
        _require(each_once, "choices needs at least two, each once")
        _require(list(between) == sorted(set(between)), "between must rise from number to number")
        _require(possible, "between needs numbers between 0 and 100, in percent")
        _require(
            not (between and answer),
            "between takes its answer from the next step: leave answer out",
        )
        _require(known, f"the answer {answer!r} is none of the choices")


class Asking(Step, frozen=True, kw_only=True):
    """A step about models. models: by name."""

    models: Annotated[tuple[str, ...], Meta(min_length=1, max_length=4)] = DEFAULT_MODELS

    def __post_init__(self) -> None:
        _each_once("models", self.models)
        for name in self.models:
            _require(
                MODEL.fullmatch(name) is not None,
                f"{name[:60]!r} can't be a model here: a lesson names one by its name alone",
            )
        self.check()


class Live(Asking, frozen=True, kw_only=True):
    """A step that queries them now. context: what causal models see, as on the page Ask."""

    context: Context = "auto"

    def settings(self, models: tuple[str, ...]) -> ClozeSettings:
        """The settings of its queries, as on the page Ask. models: those that are queried."""
        context = None if self.context == "auto" else self.context
        return ClozeSettings(models=models, context=context)


class Ask(Live, frozen=True, kw_only=True, tag="ask"):
    """A cloze query, each model's five best answers side by side. gold: or empty."""

    query: Words
    gold: Words = ""

    def check(self) -> None:
        """Raise ValueError for a query without one blank."""
        _check_queries([self.query])


class Compare(Live, frozen=True, kw_only=True, tag="compare"):
    """Several cloze queries, each model's first answers side by side.

    golds: one each, or one for all, or none. wrong: of each query the answer that its negation
    rules out, or empty; or none.
    """

    queries: Annotated[Texts, AtMost12]
    golds: Texts = ()
    wrong: Texts = ()

    @property
    def gold_of(self) -> dict[str, str]:
        """Query -> its gold answer, or empty."""
        golds = self.golds or ("",)
        golds = golds * len(self.queries) if len(golds) == 1 else golds
        return dict(zip(self.queries, golds, strict=True))

    @property
    def wrong_of(self) -> dict[str, str]:
        """Query -> the answer that its negation rules out, or empty."""
        return dict(zip(self.queries, self.wrong or [""] * len(self.queries), strict=True))

    def check(self) -> None:
        """Raise ValueError for queries without one blank, or golds that aren't theirs."""
        n_golds, n = len(self.golds), len(self.queries)
        _require(n_golds in (0, 1, n), f"{n_golds} golds stand with {n} queries: give one each")
        _require(
            len(self.wrong) in (0, n), f"{len(self.wrong)} wrong for {n} queries: give one each"
        )
        _each_once("queries", self.queries)
        _check_queries(self.queries)


class Analogy(Live, frozen=True, kw_only=True, tag="analogy"):
    """Analogies, each model's first answer: A, B, C, and the gold D. template: a name."""

    analogies: Annotated[tuple[Texts, ...], AtMost12]
    template: Words = DEFAULT_TEMPLATE

    @property
    def rows(self) -> tuple[str, ...]:
        """Each as a text without its answer: `Paris : France :: Rome : ?`."""
        return tuple(f"{a} : {b} :: {c} : ?" for a, b, c, _ in self.analogies)

    def check(self) -> None:
        """Raise ValueError for words that aren't four, or an unknown template."""
        _require(
            all(len(words) == 4 and all(map(str.strip, words)) for words in self.analogies),
            "each of analogies needs four words: A, B, C and the answer D",
        )
        _require_known("template", self.template, TEMPLATES)
        _each_once("analogies", self.analogies)


class ShowRun(Asking, frozen=True, kw_only=True, tag="run"):
    """A chart of finished runs; see `figures`.

    relations: () is all. k: of P@k. by: the slicing of `slices`. of: whose mentions.
    """

    figure: Figure
    data: Words = STARTER
    prompts: Words = "manual"
    relations: Texts = ()
    k: Annotated[int, Meta(ge=1, le=100)] = 1
    by: Words = "gold in the subject"
    of: Of = "object"

    def check(self) -> None:
        """Raise ValueError for an unknown slicing."""
        _require_known("by", self.by, (*SLICINGS, ORIGIN, DOMAIN, PAIR_SEEN, WORDING_SEEN))


class Try(Live, frozen=True, kw_only=True, tag="try"):
    """The reader's own query, and the way to a page that does more.

    query: what stands in the field at first. params: of the page's address.
    """

    query: Words = ""
    page: Page = "ask"
    params: dict[str, Words] = {}

    def check(self) -> None:
        """Raise ValueError for a query without one blank."""
        _check_queries([self.query] if self.query else [])


AnyStep = Text | Predict | Ask | Compare | Analogy | ShowRun | Explain | Try
STEPS: dict[str, type[Step]] = {str(step.__struct_config__.tag): step for step in get_args(AnyStep)}
SHOWING = (Ask, Compare, Analogy, ShowRun)  # what a prediction's answer can come from


class LessonFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The contents of a lesson's file."""

    title: Words
    minutes: Annotated[int, Meta(ge=1, le=120)]
    question: Words
    sources: Texts
    steps: Annotated[tuple[AnyStep, ...], Meta(min_length=1, max_length=60)]


class Lesson(LessonFile, frozen=True, kw_only=True):
    """A lesson. id: its file's name. own: it is the user's, and not the project's."""

    id: str
    own: bool


@dataclass(frozen=True, slots=True)
class LessonListing:
    """The lessons that are here, the project's first, and what is wrong with the others."""

    lessons: tuple[Lesson, ...]
    problems: tuple[str, ...] = ()

    def find(self, name: str) -> Lesson | None:
        """The lesson of that name; None if there is none."""
        return next((one for one in self.lessons if one.id == name), None)


def bundled_lessons() -> Path:
    """Folder of the lessons that come with the project."""
    return ASSETS / "lessons"


def own_lessons() -> Path:
    """Folder of the user's own lessons; not created here."""
    return data_dir() / "lessons"


def list_lessons() -> LessonListing:
    """All lessons, by file name; one that can't be read is named in `problems`."""
    found: dict[str, Lesson] = {}
    problems: list[str] = []
    for folder, own in ((bundled_lessons(), False), (own_lessons(), True)):
        try:
            paths = sorted(path for path in folder.iterdir() if path.suffix == ENDING)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            problems.append(str(cant_be_read(folder, error)))
            continue
        if len(paths) > MAX_LESSONS:
            problems.append(
                f"{folder} has {len(paths)} lessons, and the first {MAX_LESSONS} are read."
            )
        for path in paths[:MAX_LESSONS]:
            try:
                lesson = read_lesson(path, own=own)
                if lesson.id in found:
                    raise UserError(f"{path}: a lesson has this name already: rename the file.")
                found[lesson.id] = lesson
            except UserError as error:
                problems.append(str(error))
    return LessonListing(tuple(found.values()), tuple(problems))


def read_lesson(path: Path, *, own: bool = True) -> Lesson:
    """The lesson in a file.

    Raises UserError, in one sentence with the file, the step and what is wrong, if it is none.
    """
    name = path.name.removesuffix(ENDING)
    if not NAME.fullmatch(name):
        raise UserError(
            f"{path}: a lesson's name is made of small letters, digits and hyphens: rename the "
            "file."
        )
    try:
        raw = tomllib.loads(read_file(path, MAX_FILE).decode())
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is no text in UTF-8: save it as that.") from error
    except ValueError as error:  # a number may have too many digits, too
        raise UserError(f"{path} is no TOML: {error}.") from error
    except RecursionError as error:
        raise UserError(f"{path} is no TOML that can be read: it is nested too deep.") from error
    try:
        read = msgspec.convert(raw, LessonFile)
    except msgspec.ValidationError as error:
        raise UserError(f"{path}{_fault(str(error), raw)}.") from error
    for at, (step, after) in enumerate(zip(read.steps, [*read.steps[1:], None], strict=True), 1):
        fault = _fault_of_prediction(step, after) if isinstance(step, Predict) else ""
        if fault:
            raise UserError(f"{path}, step {at} (predict): {fault}.")
    return Lesson(id=name, own=own, **msgspec.structs.asdict(read))


# How a file's types are called for people, and what else to say of a missing field.
_TYPES = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text in quotes",
    "array": 'a list, as ["one", "two"]',
    "object": 'a table, as {tab = "Slices"}',
}
_MISSING = {"kind": f"choose {', '.join(STEPS)}", "steps": "begin each with [[steps]]"}


def _fault(message: str, raw: dict[str, Any]) -> str:
    """A message of msgspec in plain words, after the step and its kind."""
    said, _, place = message.partition(" - at `$")
    where: str = ""
    kind: type[msgspec.Struct] = LessonFile
    if found := re.match(r"\.steps\[(\d+)\]", place):
        step, place = raw["steps"][int(found[1])], place[found.end() :]
        where = f", step {int(found[1]) + 1}"
        if isinstance(step, dict) and step.get("kind") in STEPS:
            where, kind = f"{where} ({step['kind']})", STEPS[step["kind"]]
    name, inside, _ = place.strip(".`").partition("[")
    what = f"each of {name}" if inside else name or "it"
    known = {one.name: one.type for one in msgspec.structs.fields(kind)}
    given = re.findall("[`'](.*?)[`']", said)
    if said.startswith("Object missing"):
        fault = f"{given[0]} is missing: {_MISSING.get(given[0], 'write it')}"
    elif said.startswith("Object contains unknown"):
        hint = did_you_mean(given[0], known)
        fault = f"{given[0]!r} means nothing here{hint}: it takes {', '.join(known)}"
    elif said.startswith("Invalid"):
        fault = _unknown(name, given[0], STEPS if name == "kind" else get_args(known[name]))
    elif found := re.search("(of length )?([<>])= ([0-9]+)", said):
        number = {"str": "the number of characters of ", "array": "the number of "}
        what = number[given[0]] + what if found[1] else what
        bound = "least" if found[2] == ">" else "most"
        fault = f"{what} must be at {bound} {int(found[3]):,}"
    elif said.startswith("Expected"):
        fault = f"{what} must be {_TYPES[given[0].split()[0]]}"
    else:
        fault = said
    return f"{where}: {fault}"


def _unknown(what: str, value: str, known: Iterable[str]) -> str:
    names = list(known)
    return f"unknown {what} {value[:40]!r}{did_you_mean(value, names)}: choose {', '.join(names)}"


def _require(holds: bool, fault: str) -> None:
    if not holds:
        raise ValueError(fault)


def _require_known(what: str, value: str, known: Iterable[str]) -> None:
    _require(value in known, _unknown(what, value, known))


def _each_once(what: str, values: Sequence[object]) -> None:
    _require(len(set(values)) == len(values), f"one of {what} stands there twice")


def _check_queries(queries: Iterable[str]) -> None:
    """Raise ValueError for a query that has no blank, or several."""
    for query in queries:
        try:
            n_blanks = parse_query(query).n_blanks
        except UserError as error:
            raise ValueError(f"{query[:60]!r}: {str(error).rstrip('.')}") from error
        _require(n_blanks == 1, f"{query[:60]!r} has {n_blanks} blanks: write one")


def _fault_of_prediction(step: Predict, after: Step | None) -> str:
    """Why the answer can't be had from the step after it."""
    if step.answer:
        return ""
    if not isinstance(after, SHOWING):
        kinds = ", ".join(name for name, one in STEPS.items() if one in SHOWING)
        return f"write its answer, or let the next step show it, of kind {kinds}"
    if isinstance(after, ShowRun) != bool(step.between) and not (
        isinstance(after, ShowRun) and step.choices
    ):
        return (
            "the next step is a run: give between, or choices that are rows of its chart"
            if isinstance(after, ShowRun)
            else "between is for a run, and the next step is none"
        )
    if step.model and step.model not in after.models:
        return f"the next step doesn't show the model {step.model!r}"
    if isinstance(after, ShowRun) or not step.row:
        return ""  # a chart's lines are known once it is drawn
    if isinstance(after, Ask):
        rows: tuple[str, ...] = (after.query,)
    else:
        rows = after.queries if isinstance(after, Compare) else after.rows
    if step.row not in rows:
        hint = did_you_mean(step.row, rows)
        return f"row {step.row[:60]!r} is none of the next step's queries{hint}"
    return ""
