"""Lessons: read, check and write their TOML files; docs/lessons.md documents the format.

The project's lessons are `assets/lessons/*.toml`, the user's are `data_dir()/lessons/*.toml`. The
file name without its suffix is the lesson's name.
"""

import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta

from lama_core import plugins
from lama_core.datasets.library.installed import STARTER
from lama_core.errors import UserError, did_you_mean
from lama_core.files import format_bytes, read_error, read_file, write_text_atomically
from lama_core.metrics.slices import DOMAIN, ORIGIN, PAIR_SEEN, SLICINGS, WORDING_SEEN
from lama_core.models.protocols import Context
from lama_core.paths import ASSETS, data_dir
from lama_core.queries.analogy import SolveRequest
from lama_core.queries.analogy_templates import DEFAULT_TEMPLATE, TEMPLATES
from lama_core.queries.cloze import ClozeRequest
from lama_core.requests import RequestField, request_fields
from lama_core.scoring.blanks import parse_query
from lama_core.views.table import all_views

ENDING = ".toml"
NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,59}")
KEY = re.compile(r"[A-Za-z0-9_-]+")  # of TOML, without quotes
# A name in the catalogue or on the hub; no path and no server URL.
MODEL = re.compile(r"[\w][\w.-]*(/[\w][\w.-]*)?(@[\w.-]+)?")
MAX_FILE = 1 << 20  # bytes
MAX_LESSONS = 200
PERCENT = "\N{NO-BREAK SPACE}%"
N_BEST = 5  # words that the step `ask` shows
DEFAULT_MODELS = ("minilm-mlm", "smollm2-135m")

# Charts with names of their own for the rows (`lessons.charts`). A step can also name any view.
FIGURES = (
    "by relation",
    "curve",
    "ranks",
    "slices",
    "totals",
    "mentions",
    "rankings",
    "altered",
    "wordings",
    "ways",
    "training",
    "readings",
    "analogies",
)
SLICED_BY = (*SLICINGS, ORIGIN, DOMAIN, PAIR_SEEN, WORDING_SEEN)  # of the figure `slices`
# All but the first two are page names of version 0.1; their parameters open the matching screens.
Page = Literal["ask", "results", "cloze", "analogy", "facts", "prompts"]
LessonText = Annotated[str, Meta(max_length=20_000)]
Texts = tuple[LessonText, ...]
AtMost12 = Meta(min_length=1, max_length=12)


def figure_names() -> tuple[str, ...]:
    """Return the names of all charts that a step `run` can show."""
    views = (one.view.name for one in all_views() if one.view.has_figure)
    return tuple(dict.fromkeys((*FIGURES, *views)))


class Step(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    tag_field="kind",
):
    """The fields of every step.

    Subclasses override `check`, which raises ValueError for values that don't fit together.

    Attributes:
        title: Heading of the step; may be empty.
        text: Text above the step's content; see `markup`.
    """

    title: LessonText = ""
    text: LessonText = ""

    @property
    def kind(self) -> str:
        """The kind's name in the file."""
        return str(self.__struct_config__.tag)

    @property
    def requests(self) -> Mapping[str, ClozeRequest | SolveRequest]:
        """Query or analogy, as a text -> its request, with the number of answers to show."""
        return {}

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Do nothing; subclasses check their fields here."""


class Text(Step, frozen=True, kw_only=True, tag="text"):
    """A text to read."""

    def check(self) -> None:
        """Raise ValueError for an empty text."""
        _require(bool(self.text.strip()), "text is empty: write one")


class Explain(Text, frozen=True, kw_only=True, tag="explain"):
    """A short explanation with its source."""

    source: LessonText


class Predict(Step, frozen=True, kw_only=True, tag="predict"):
    """A question that the reader answers before the next step shows the answer.

    Attributes:
        question: The question.
        choices: The choices; without `choices` and `between` the reader types a word.
        between: Bounds of the ranges to choose from, in percent.
        answer: The right choice or word; empty if the next step shows it.
        row: Row of the next step that has the answer; by default the first.
        model: Model of the next step that has the answer; by default the first.
    """

    question: LessonText
    choices: Texts = ()
    between: tuple[float, ...] = ()
    answer: LessonText = ""
    row: LessonText = ""
    model: LessonText = ""

    @property
    def options(self) -> tuple[str, ...]:
        """The choices or ranges; () if the reader types a word."""
        if not self.between:
            return self.choices
        ends = [f"{end:g}" for end in self.between]
        middle = [f"{low} to {high}{PERCENT}" for low, high in pairwise(ends)]
        return (f"less than {ends[0]}{PERCENT}", *middle, f"{ends[-1]}{PERCENT} or more")

    def check(self) -> None:
        """Raise ValueError for invalid choices, or an answer that isn't one of them."""
        choices, between, answer = self.choices, self.between, self.answer
        distinct = len(choices) != 1 and len(set(choices)) == len(choices)
        _require(not (choices and between), "it has both choices and between: keep one")
        _require(distinct, "choices needs at least two, each once")
        _require(list(between) == sorted(set(between)), "the numbers of between must increase")
        _require(
            all(0 < end < 100 for end in between),
            "between needs numbers between 0 and 100, in percent",
        )
        _require(
            not (between and answer),
            "between takes its answer from the next step: remove answer",
        )
        _require(
            not (choices and answer) or answer in choices,
            f"the answer {answer!r} is not one of the choices",
        )


class ModelStep(Step, frozen=True, kw_only=True):
    """A step that shows models; `models` has their names."""

    models: Annotated[tuple[str, ...], Meta(min_length=1, max_length=4)] = DEFAULT_MODELS

    def __post_init__(self) -> None:
        _each_once("models", self.models)
        for name in self.models:
            _require(
                MODEL.fullmatch(name) is not None,
                f"{name[:60]!r} is not a model name: paths and URLs aren't allowed in a lesson",
            )
        self.check()


class Live(ModelStep, frozen=True, kw_only=True):
    """A step that queries models now; context: What causal models see, as on the page Ask."""

    context: Literal["auto", "left", "both"] = "auto"

    @property
    def known_context(self) -> Context | None:
        """The context of the requests; None if each model has its own."""
        return None if self.context == "auto" else self.context

    def cloze_request(self, text: str, gold: str = "", top_k: int = 1) -> ClozeRequest:
        """Return a cloze query to the step's models. gold: "" without a gold answer."""
        return ClozeRequest(
            text, models=self.models, context=self.known_context, gold=gold or None, top_k=top_k
        )


class Ask(Live, frozen=True, kw_only=True, tag="ask"):
    """A cloze query: shows each model's five best answers; the gold answer may be empty."""

    query: LessonText
    gold: LessonText = ""

    @property
    def request(self) -> ClozeRequest:
        """The query."""
        return self.cloze_request(self.query, self.gold, N_BEST)

    @property
    def requests(self) -> dict[str, ClozeRequest]:
        return {self.query: self.request}

    def check(self) -> None:
        """Raise ValueError unless the query has exactly one blank."""
        _check_queries([self.query])


class Compare(Live, frozen=True, kw_only=True, tag="compare"):
    """Several cloze queries: shows each model's first answer to each of them.

    Attributes:
        queries: The queries.
        golds: Gold answers: one for each query, one for all, or none.
        wrong: For each query, the answer that its negation rules out, or ""; () if there are none.
    """

    queries: Annotated[Texts, AtMost12]
    golds: Texts = ()
    wrong: Texts = ()

    @property
    def requests(self) -> dict[str, ClozeRequest]:
        return {text: self.cloze_request(text, gold) for text, gold in self.gold_of.items()}

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
        """Raise ValueError for queries without one blank, or a wrong number of answers."""
        n_golds, n = len(self.golds), len(self.queries)
        _require(
            n_golds in (0, 1, n), f"golds has {n_golds} answers for {n} queries: write one for each"
        )
        _require(
            len(self.wrong) in (0, n),
            f"wrong has {len(self.wrong)} answers for {n} queries: write one for each",
        )
        _each_once("queries", self.queries)
        _check_queries(self.queries)


class Analogy(Live, frozen=True, kw_only=True, tag="analogy"):
    """Analogies of words A, B, C and the gold answer D: shows each model's first answer.

    template: The name of an analogy template.
    """

    analogies: Annotated[tuple[Texts, ...], AtMost12]
    template: LessonText = DEFAULT_TEMPLATE

    @property
    def requests(self) -> dict[str, SolveRequest]:
        """Each analogy without its answer, as `Paris : France :: Rome : ?` -> its request."""
        return {
            f"{a} : {b} :: {c} : ?": SolveRequest(
                (a, b, c, "___"),
                models=self.models,
                context=self.known_context,
                template=self.template,
                gold=d,
                top_k=1,
            )
            for a, b, c, d in self.analogies
        }

    def check(self) -> None:
        """Raise ValueError unless each analogy has four words and the template is known."""
        _require(
            all(len(words) == 4 and all(map(str.strip, words)) for words in self.analogies),
            "each of analogies needs four words: A, B, C and the answer D",
        )
        _require_known("template", self.template, TEMPLATES)
        _each_once("analogies", self.analogies)


class ShowRun(ModelStep, frozen=True, kw_only=True, tag="run"):
    """A chart of finished runs; see `lessons.charts`.

    Attributes:
        figure: One of `FIGURES`, or the name of a view with a chart, such as `known-by`.
        data: Name of the dataset.
        prompts: Name of the prompt set.
        relations: The relations; () is all.
        k: The k of P@k.
        by: The slicing of the figure `slices`.
        of: Whether the figure `mentions` counts mentions of objects or of subjects.
        options: Further fields of the view's request.
    """

    figure: LessonText
    data: LessonText = STARTER
    prompts: LessonText = "manual"
    relations: Texts = ()
    k: Annotated[int, Meta(ge=1, le=100)] = 1
    by: LessonText = "gold in the subject"
    of: Literal["object", "subject"] = "object"
    options: dict[str, LessonText | int | float | bool] = {}

    def check(self) -> None:
        """Raise ValueError for an unknown figure, option or slicing."""
        known: Sequence[RequestField] = ()
        _require_known("figure", self.figure, figure_names())
        if self.figure not in FIGURES:
            (request,) = (one.request for one in all_views() if one.view.name == self.figure)
            known = request_fields(request)
        for name in self.options:
            _require_known("options", name, tuple(one.name for one in known))
        _require_known("by", self.by, SLICED_BY)


class Try(Live, frozen=True, kw_only=True, tag="try"):
    """A field for the reader's own query, or two, with a link to a page.

    Attributes:
        query: The initial content of the field.
        other: The initial content of a second field, to compare two queries.
        page: The page of the link.
        params: The parameters of the link.
    """

    query: LessonText = ""
    other: LessonText = ""
    page: Page = "ask"
    params: dict[str, LessonText] = {}

    def check(self) -> None:
        """Raise ValueError for a query that doesn't have exactly one blank."""
        _check_queries(self.queries)

    @property
    def queries(self) -> tuple[str, ...]:
        """The initial contents of the fields."""
        return tuple(filter(None, (self.query, self.other)))

    @property
    def requests(self) -> dict[str, ClozeRequest]:
        return {query: self.cloze_request(query, top_k=N_BEST) for query in self.queries}


AnyStep = Text | Predict | Ask | Compare | Analogy | ShowRun | Explain | Try
STEPS: dict[str, type[Step]] = {str(step.__struct_config__.tag): step for step in get_args(AnyStep)}
SHOWING = (Ask, Compare, Analogy, ShowRun)  # steps that can show the answer of a prediction


class LessonFile(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """The contents of a lesson's file. takeaway: what the reader learns; may be empty."""

    title: LessonText
    minutes: Annotated[int, Meta(ge=1, le=120)]
    question: LessonText
    takeaway: LessonText = ""
    sources: Texts
    steps: Annotated[tuple[AnyStep, ...], Meta(min_length=1, max_length=60)]


class Lesson(LessonFile, frozen=True, kw_only=True):
    """A lesson. id: name of its file, without suffix. own: whether it is in the user's folder."""

    id: str
    own: bool


@dataclass(frozen=True, slots=True)
class LessonListing:
    """All lessons, bundled ones before the user's, and the errors of invalid files."""

    lessons: tuple[Lesson, ...]
    problems: tuple[str, ...] = ()

    def find(self, name: str) -> Lesson | None:
        """Return the lesson with this name; None if there is none."""
        return next((lesson for lesson in self.lessons if lesson.id == name), None)


def bundled_lessons() -> Path:
    """Return the folder of the project's lessons."""
    return ASSETS / "lessons"


def own_lessons() -> Path:
    """Return the folder of the user's lessons, which may not exist."""
    return data_dir() / "lessons"


def lesson_file(name: str) -> Path:
    """Return the file of the user's lesson with this name."""
    return own_lessons() / f"{name}{ENDING}"


def _place(path: Path) -> tuple[int, str]:
    """Return the number at the start of a file name, for sorting, and the name."""
    number = path.name.partition("-")[0]
    return (int(number) if number.isdecimal() and len(number) <= 4 else 10_000, path.name)


def list_lessons() -> LessonListing:
    """Return all lessons, and the errors of invalid files.

    The bundled ones come first, by file name, then those of plug-ins, then the user's.
    """
    found: dict[str, Lesson] = {}
    problems: list[str] = []
    for folder, own in ((bundled_lessons(), False), (own_lessons(), True)):
        try:
            paths = sorted((path for path in folder.iterdir() if path.suffix == ENDING), key=_place)
            paths += [] if own else plugins.rows("lessons").values()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            problems.append(str(read_error(folder, error)))
            continue
        if len(paths) > MAX_LESSONS:
            problems.append(
                f"{folder} has {len(paths)} lessons; only the first {MAX_LESSONS} are read."
            )
        for path in paths[:MAX_LESSONS]:
            try:
                lesson = read_lesson(path, own=own)
                if lesson.id in found:
                    raise UserError(f"{path}: another lesson has this name: rename the file.")
                found[lesson.id] = lesson
            except UserError as error:
                problems.append(str(error))
    return LessonListing(tuple(found.values()), tuple(problems))


def read_lesson(path: Path, *, own: bool = True) -> Lesson:
    """Return the lesson in a file.

    Raises:
        UserError: If the file isn't a valid lesson; names the file, the step and the error.
    """
    name = path.name.removesuffix(ENDING)
    if not NAME.fullmatch(name):
        raise UserError(
            f"{path}: a lesson's name may contain only lower-case letters, digits and hyphens: "
            "rename the file."
        )
    return parse_lesson(read_file(path, MAX_FILE), name, own=own, source=str(path))


def parse_lesson(
    content: bytes | Mapping[str, Any], name: str, *, own: bool = True, source: str = "This lesson"
) -> Lesson:
    """Return a lesson.

    Args:
        content: A lesson's file, or its fields as in `lesson_fields`.
        name: The lesson's name.
        own: Whether it is the user's.
        source: Where it is from, for errors.

    Raises:
        UserError: If the content isn't a valid lesson; names the source, the step and the error.
    """
    try:
        raw = tomllib.loads(content.decode()) if isinstance(content, bytes) else dict(content)
    except UnicodeDecodeError as error:
        raise UserError(f"{source} is not UTF-8: save it as text in UTF-8.") from error
    except ValueError as error:  # also raised for a number with too many digits
        raise UserError(f"{source}: invalid TOML: {error}.") from error
    except RecursionError as error:
        raise UserError(f"{source}: invalid TOML: nesting too deep.") from error
    try:
        lesson = msgspec.convert(raw, LessonFile)
    except msgspec.ValidationError as error:
        raise UserError(f"{source}{_readable(str(error), raw)}.") from error
    steps = lesson.steps
    for number, (step, after) in enumerate(zip(steps, [*steps[1:], None], strict=True), start=1):
        fault = _prediction_fault(step, after) if isinstance(step, Predict) else ""
        if fault:
            raise UserError(f"{source}, step {number} (predict): {fault}.")
    return Lesson(id=name, own=own, **msgspec.structs.asdict(lesson))


def lesson_fields(lesson: Lesson) -> dict[str, Any]:
    """Return the fields of a lesson's file, without those that have their default."""
    found: dict[str, Any] = json.loads(msgspec.json.encode(lesson))
    return {name: found[name] for name in LessonFile.__struct_fields__ if name in found}


def lesson_text(lesson: Lesson) -> str:
    """Return a lesson's file."""
    fields = lesson_fields(lesson)
    steps = fields.pop("steps")
    tables = [
        "\n".join(f"{name} = {toml_value(one[name])}" for name in one) for one in (fields, *steps)
    ]
    return "\n\n[[steps]]\n".join(tables) + "\n"


def toml_value(value: Any) -> str:
    """Return a value as TOML; a text with line breaks in several lines."""
    if isinstance(value, str):
        lines = [json.dumps(one, ensure_ascii=False)[1:-1] for one in value.split("\n")]
        quotes = '"""\n' if lines[1:] else '"'
        return quotes + "\n".join(lines).replace("\x7f", "\\u007F") + quotes.strip()
    if isinstance(value, Mapping):
        keys = {name: name if KEY.fullmatch(name) else toml_value(name) for name in value}
        return f"{{ {', '.join(f'{keys[name]} = {toml_value(value[name])}' for name in value)} }}"
    if isinstance(value, Sequence):
        return f"[{', '.join(map(toml_value, value))}]"
    return json.dumps(value)


def free_name(wanted: str, listing: LessonListing) -> str:
    """Return a name for a new lesson that no lesson and no file of the user's has."""
    taken = {lesson.id for lesson in listing.lessons}
    taken |= {path.stem for path in own_lessons().glob(f"*{ENDING}")}
    name = re.sub("[^a-z0-9]+", "-", wanted.lower()).strip("-")[:50].rstrip("-") or "lesson"
    return next(
        one for one in (name, *(f"{name}-{n}" for n in range(2, 10_000))) if one not in taken
    )


def save_lesson(lesson: Lesson) -> None:
    """Write a lesson's file into the user's folder.

    Raises:
        UserError: If the lesson is too large, or the folder is full.
    """
    path, text = lesson_file(lesson.id), lesson_text(lesson)
    check_size(text)
    if not path.exists() and len(list(path.parent.glob(f"*{ENDING}"))) >= MAX_LESSONS:
        raise UserError(f"{path.parent} has {MAX_LESSONS} lessons, the most: delete one first.")
    write_text_atomically(path, text)


def check_size(text: str) -> None:
    """Raise UserError if a lesson's file would be too large to be read."""
    if len(text.encode()) > MAX_FILE:
        raise UserError(f"The lesson is larger than {format_bytes(MAX_FILE)}: shorten its texts.")


# The names of a file's types, and hints on missing fields, for users.
_TYPES = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text in quotes",
    "array": 'a list, as ["one", "two"]',
    "object": 'a table, as {tab = "Slices"}',
}
_MISSING = {"kind": f"choose {', '.join(STEPS)}", "steps": "start each with [[steps]]"}


def _readable(message: str, raw: dict[str, Any]) -> str:
    """Return an error of msgspec as a text for users, preceded by the step and its kind."""
    problem, _, place = message.partition(" - at `$")
    where = ""
    kind: type[msgspec.Struct] = LessonFile
    if found := re.match(r"\.steps\[(\d+)\]", place):
        step, place = raw["steps"][int(found[1])], place[found.end() :]
        where = f", step {int(found[1]) + 1}"
        if isinstance(step, dict) and step.get("kind") in STEPS:
            where, kind = f"{where} ({step['kind']})", STEPS[step["kind"]]
    name, inside, _ = place.strip(".`").partition("[")
    what = f"each of {name}" if inside else name or "it"
    fields = {field.name: field.type for field in msgspec.structs.fields(kind)}
    quoted = re.findall("[`'](.*?)[`']", problem)
    if problem.startswith("Object missing"):
        fault = f"{quoted[0]} is missing: {_MISSING.get(quoted[0], 'add it')}"
    elif problem.startswith("Object contains unknown"):
        hint = did_you_mean(quoted[0], fields)
        fault = f"unknown field {quoted[0]!r}{hint}: the fields are {', '.join(fields)}"
    elif problem.startswith("Invalid"):
        fault = _unknown(name, quoted[0], STEPS if name == "kind" else get_args(fields[name]))
    elif found := re.search("(of length )?([<>])= ([0-9]+)", problem):
        number = {"str": "the number of characters of ", "array": "the number of "}
        what = number[quoted[0]] + what if found[1] else what
        bound = "least" if found[2] == ">" else "most"
        fault = f"{what} must be at {bound} {int(found[3]):,}"
    elif problem.startswith("Expected"):
        fault = f"{what} must be {_TYPES[quoted[0].split()[0]]}"
    else:
        fault = problem
    return f"{where}: {fault}"


def _unknown(what: str, value: str, known: Iterable[str]) -> str:
    names = list(known)
    return f"unknown {what} {value[:40]!r}{did_you_mean(value, names)}: choose {', '.join(names)}"


def _require(condition: bool, fault: str) -> None:
    if not condition:
        raise ValueError(fault)


def _require_known(what: str, value: str, known: Iterable[str]) -> None:
    _require(value in known, _unknown(what, value, known))


def _each_once(what: str, values: Sequence[object]) -> None:
    _require(len(set(values)) == len(values), f"{what} contains a duplicate: remove it")


def _check_queries(queries: Iterable[str]) -> None:
    """Raise ValueError for a query that doesn't have exactly one blank."""
    for query in queries:
        try:
            n_blanks = parse_query(query).n_blanks
        except UserError as error:
            raise ValueError(f"{query[:60]!r}: {str(error).rstrip('.')}") from error
        _require(n_blanks == 1, f"{query[:60]!r} has {n_blanks} blanks: write one")


def _prediction_fault(step: Predict, after: Step | None) -> str:
    """Return why the next step can't show the answer of a prediction; empty if it can."""
    if step.answer:
        return ""
    if not isinstance(after, SHOWING):
        kinds = ", ".join(name for name, kind in STEPS.items() if kind in SHOWING)
        return f"the answer is missing: add answer, or a next step of kind {kinds}"
    if isinstance(after, ShowRun):
        if not step.between and not step.choices:
            return "the next step is a run: add between, or choices that are rows of its chart"
    elif step.between:
        return "between needs a run as the next step"
    if step.model and step.model not in after.models:
        return f"the next step doesn't show the model {step.model!r}"
    if isinstance(after, ShowRun) or not step.row:
        return ""  # the rows of a chart are known only after it is drawn
    if step.row not in after.requests:
        hint = did_you_mean(step.row, tuple(after.requests))
        return f"row {step.row[:60]!r} is not one of the next step's queries{hint}"
    return ""
