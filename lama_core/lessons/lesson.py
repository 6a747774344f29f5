"""A lesson: its steps, read from a TOML file and checked; docs/lessons.md says what is written how.

The lessons that come with the project are `assets/lessons/*.toml`, a user's own
`data_dir()/lessons/*.toml`. A file's name without its ending is the lesson's name.
"""

import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args, get_origin

from lama_core.asking.blanks import parse_query
from lama_core.errors import UserError, did_you_mean
from lama_core.files import cant_be_read, read_file
from lama_core.metrics.slices import DOMAIN, ORIGIN, SLICINGS, STATED
from lama_core.paths import ASSETS, data_dir
from lama_core.probes.analogy.templates import TEMPLATES

ENDING = ".toml"
NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,59}")
# A model that the catalogue or the hub may have: no path, and no address of a server.
MODEL = re.compile(r"[\w][\w.-]*(/[\w][\w.-]*)?(@[\w.-]+)?")
MAX_FILE = 1 << 20  # bytes
MAX_STEPS = 60
MAX_LESSONS = 200
MAX_QUERIES = 12
MAX_MODELS = 4
MAX_TEXT = 20_000  # characters
DEFAULT_MODELS = ("minilm-mlm", "smollm2-135m")

Figure = Literal[
    "by relation", "curve", "ranks", "slices", "mentions", "rankings", "altered", "wordings",
    "analogies",
]  # fmt: skip
Of = Literal["object", "subject"]
Context = Literal["auto", "left", "both"]
Page = Literal["cloze", "analogy", "results", "facts", "prompts"]


@dataclass(frozen=True, kw_only=True)
class Step:
    """What every step has. title: above it, or empty. text: read before the rest; see `words`."""

    kind: ClassVar[str]

    title: str = ""
    text: str = ""

    def fault(self) -> str:
        """What is wrong with the step as it stands, and the remedy; empty if nothing is."""
        return ""


@dataclass(frozen=True, kw_only=True)
class Text(Step):
    """A text to read."""

    kind: ClassVar[str] = "text"

    def fault(self) -> str:
        """A text without words."""
        return "" if self.text.strip() else "text is empty: write it"


@dataclass(frozen=True, kw_only=True)
class Explain(Text):
    """A short explanation. source: where it is from."""

    kind: ClassVar[str] = "explain"

    source: str


@dataclass(frozen=True, kw_only=True)
class Predict(Step):
    """A question that the reader answers before the next step shows the answer.

    choices: to choose from; () with no `between` is a word that the reader types. between: the
    bounds, in percent, of ranges to choose from. answer: one of the choices; empty where the next
    step gives it. row, model: whose first answer or number in it; by default the first's.
    """

    kind: ClassVar[str] = "predict"

    question: str
    choices: tuple[str, ...] = ()
    between: tuple[float, ...] = ()
    answer: str = ""
    row: str = ""
    model: str = ""

    @property
    def options(self) -> tuple[str, ...]:
        """What there is to choose from; () for a word that is typed."""
        if not self.between:
            return self.choices
        ends = [f"{end:g}" for end in self.between]
        middle = [f"{low} to {high} %" for low, high in pairwise(ends)]
        return (f"less than {ends[0]} %", *middle, f"{ends[-1]} % or more")

    def fault(self) -> str:
        """Choices that are none, or an answer that isn't among them."""
        if self.choices and self.between:
            return "it has both choices and between: keep one"
        if len(self.choices) == 1 or len(set(self.choices)) < len(self.choices):
            return "choices needs at least two, each once"
        if list(self.between) != sorted(set(self.between)):
            return "between must rise from number to number"
        if not all(0 < end < 100 for end in self.between):
            return "between needs numbers between 0 and 100, in percent"
        if self.between and self.answer:
            return "between takes its answer from the next step: leave answer out"
        if self.choices and self.answer and self.answer not in self.choices:
            return f"the answer {self.answer!r} is none of the choices"
        return ""


@dataclass(frozen=True, kw_only=True)
class Asking(Step):
    """A step about models. models: by name."""

    models: tuple[str, ...] = DEFAULT_MODELS


@dataclass(frozen=True, kw_only=True)
class Live(Asking):
    """A step that asks them now. context: what left-to-right models see, as on the Cloze page."""

    context: Context = "auto"


@dataclass(frozen=True, kw_only=True)
class Ask(Live):
    """A cloze query, each model's five best answers side by side. gold: or empty."""

    kind: ClassVar[str] = "ask"

    query: str
    gold: str = ""

    def fault(self) -> str:
        """A query that can't be asked."""
        return _of_queries([self.query])


@dataclass(frozen=True, kw_only=True)
class Compare(Live):
    """Several cloze queries, each model's first answers side by side.

    golds: one each, or one for all, or none.
    """

    kind: ClassVar[str] = "compare"

    queries: tuple[str, ...]
    golds: tuple[str, ...] = ()

    @property
    def gold_of(self) -> dict[str, str]:
        """Query -> its gold, or empty."""
        golds = self.golds or ("",)
        golds = golds * len(self.queries) if len(golds) == 1 else golds
        return dict(zip(self.queries, golds, strict=True))

    def fault(self) -> str:
        """Queries that can't be asked, or golds that aren't theirs."""
        if len(self.golds) not in (0, 1, len(self.queries)):
            return f"{len(self.golds)} golds stand with {len(self.queries)} queries: give one each"
        return _of_number("queries", self.queries) or _of_queries(self.queries)


@dataclass(frozen=True, kw_only=True)
class Analogy(Live):
    """Analogies, each model's first answer: A, B, C, and the gold D. template: a name."""

    kind: ClassVar[str] = "analogy"

    analogies: tuple[tuple[str, ...], ...]
    template: str = "to-as"

    @property
    def rows(self) -> tuple[str, ...]:
        """Each as a text without its answer: `Paris : France :: Rome : ?`."""
        return tuple(f"{a} : {b} :: {c} : ?" for a, b, c, _ in self.analogies)

    def fault(self) -> str:
        """Words that aren't four, or an unknown template."""
        if any(len(words) != 4 or not all(word.strip() for word in words)
               for words in self.analogies):  # fmt: skip
            return "each of analogies needs four words: A, B, C and the answer D"
        if self.template not in TEMPLATES:
            return f"unknown template {self.template!r}: choose {', '.join(TEMPLATES)}"
        return _of_number("analogies", self.analogies)


@dataclass(frozen=True, kw_only=True)
class ShowRun(Asking):
    """A chart of finished runs; see `figures`.

    relations: () is all. k: of P@k. by: the slicing of `slices`. of: whose mentions.
    """

    kind: ClassVar[str] = "run"

    figure: Figure
    data: str = "starter"
    prompts: str = "manual"
    relations: tuple[str, ...] = ()
    k: int = 1
    by: str = "gold in the subject"
    of: Of = "object"

    def fault(self) -> str:
        """Options that no figure has."""
        if not 1 <= self.k <= 100:
            return f"k is {self.k}: choose 1 to 100"
        known = (*SLICINGS, ORIGIN, DOMAIN, STATED)
        if self.by not in known:
            return (
                f"unknown by {self.by!r}{did_you_mean(self.by, known)}: choose {', '.join(known)}"
            )
        return ""


@dataclass(frozen=True, kw_only=True)
class Try(Live):
    """The reader's own query, and the way to a page that does more.

    query: what stands in the field at first. params: of the page's address.
    """

    kind: ClassVar[str] = "try"

    query: str = ""
    page: Page = "cloze"
    params: Mapping[str, str] = field(default_factory=dict)

    def fault(self) -> str:
        """A query that can't be asked."""
        return _of_queries([self.query]) if self.query else ""


STEPS: dict[str, type[Step]] = {
    step.kind: step for step in (Text, Predict, Ask, Compare, Analogy, ShowRun, Explain, Try)
}
SHOWING = (Ask, Compare, Analogy, ShowRun)  # what a prediction's answer can come from


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """A lesson. id: its file's name. own: it is the user's, and not the project's."""

    id: str
    own: bool
    title: str
    minutes: int
    question: str
    sources: tuple[str, ...]
    steps: tuple[Step, ...]


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
    steps = raw.pop("steps", None)
    if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
        raise UserError(f"{path} has no steps: begin each with [[steps]].")
    if not 1 <= len(steps) <= MAX_STEPS:
        raise UserError(f"{path} has {len(steps)} steps: write 1 to {MAX_STEPS}.")
    made = _made(Lesson, raw, str(path), given={"id", "own", "steps"})
    if not 1 <= made["minutes"] <= 120:
        raise UserError(f"{path}: minutes is {made['minutes']}: write 1 to 120.")
    read = [_read_step(step, f"{path}, step {at}") for at, step in enumerate(steps, start=1)]
    for at, (step, after) in enumerate(zip(read, [*read[1:], None], strict=True), start=1):
        fault = _fault_of_prediction(step, after) if isinstance(step, Predict) else ""
        if fault:
            raise UserError(f"{path}, step {at} (predict): {fault}.")
    return Lesson(id=name, own=own, steps=tuple(read), **made)


def _read_step(raw: dict[str, Any], where: str) -> Step:
    kind = raw.pop("kind", None)
    if not isinstance(kind, str) or kind not in STEPS:
        said = f"unknown kind {str(kind)[:40]!r}" if kind is not None else "it has no kind"
        hint = did_you_mean(str(kind), STEPS)
        raise UserError(f"{where}: {said}{hint}: choose {', '.join(STEPS)}.")
    where = f"{where} ({kind})"
    step = STEPS[kind](**_made(STEPS[kind], raw, where))
    fault = step.fault() or _fault_of_models(step)
    if fault:
        raise UserError(f"{where}: {fault}.")
    return step


def _made(
    kind: type, raw: Mapping[str, Any], where: str, *, given: Collection[str] = ()
) -> dict[str, Any]:
    """The fields of a dataclass that a table gives, checked. given: fields that others give."""
    known = {one.name: one for one in fields(kind) if one.name not in given}
    for name in raw:
        if name not in known:
            hint = did_you_mean(name, known)
            raise UserError(
                f"{where}: {name!r} means nothing here{hint}: it takes {', '.join(known)}."
            )
    made = {}
    for name, one in known.items():
        if name in raw:
            made[name] = _value(one, raw[name], where)
        elif one.default is MISSING and one.default_factory is MISSING:
            raise UserError(f"{where}: {name} is missing: write it.")
    return made


def _value(one: "Field[Any]", value: object, where: str) -> Any:
    """A field's value as its type has it: lists as tuples. Raises UserError for another type."""
    options = get_args(one.type) if get_origin(one.type) is Literal else ()
    if options:
        if value not in options:
            hint = did_you_mean(str(value), options)
            raise UserError(
                f"{where}: unknown {one.name} {str(value)[:40]!r}{hint}: choose "
                f"{', '.join(options)}."
            )
        return value
    for kind, wanted, fits, made in _TYPES:
        if one.type == kind:
            if not fits(value):
                raise UserError(f"{where}: {one.name} must be {wanted}.")
            return made(value)
    raise TypeError(f"{one.name} is of a type that no lesson holds: {one.type}")


def _is_text(value: object) -> bool:
    return isinstance(value, str) and len(value) <= MAX_TEXT


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


# Type -> how it is called for people, whether a value is of it, and the value as it is kept.
_TYPES: tuple[tuple[Any, str, Any, Any], ...] = (
    (str, f"a text in quotes, of at most {MAX_TEXT:,} characters", _is_text, str),
    (int, "a whole number", lambda value: _is_number(value) and isinstance(value, int), int),
    (tuple[str, ...], 'a list of texts, as ["one", "two"]', _are_texts, tuple),
    (
        tuple[float, ...],
        "a list of numbers, as [25, 50]",
        lambda value: isinstance(value, list) and all(map(_is_number, value)),
        tuple,
    ),
    (
        tuple[tuple[str, ...], ...],
        'a list of lists of texts, as [["one", "two"]]',
        lambda value: isinstance(value, list) and all(map(_are_texts, value)),
        lambda value: tuple(map(tuple, value)),
    ),
    (
        Mapping[str, str],
        'a table of texts, as {tab = "Slices"}',
        lambda value: isinstance(value, dict) and all(map(_is_text, value.values())),
        dict,
    ),
)


def _of_number(what: str, values: Sequence[object]) -> str:
    if not 1 <= len(values) <= MAX_QUERIES:
        return f"{len(values)} {what} are there: give 1 to {MAX_QUERIES}"
    return "" if len(set(values)) == len(values) else f"one of {what} stands there twice"


def _of_queries(queries: Sequence[str]) -> str:
    """Why a query can't be asked: it has no blank, or several."""
    for query in queries:
        try:
            parsed = parse_query(query)
        except UserError as error:
            return f"{query[:60]!r}: {str(error).rstrip('.')}"
        if parsed.n_blanks > 1:
            return f"{query[:60]!r} has {parsed.n_blanks} blanks: write one"
    return ""


def _fault_of_models(step: Step) -> str:
    if not isinstance(step, Asking):
        return ""
    if not 1 <= len(step.models) <= MAX_MODELS:
        return f"{len(step.models)} models are there: give 1 to {MAX_MODELS}"
    if len(set(step.models)) < len(step.models):
        return "a model stands there twice"
    for name in step.models:
        if not MODEL.fullmatch(name):
            return f"{name[:60]!r} can't be a model here: a lesson names one by its name alone"
    return ""


def _fault_of_prediction(step: Predict, after: Step | None) -> str:
    """Why the answer can't be had from the step after it."""
    if step.answer:
        return ""
    if not isinstance(after, SHOWING):
        kinds = ", ".join(one.kind for one in SHOWING)
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
