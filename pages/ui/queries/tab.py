"""A tab of the page Ask: what its kind of query leaves to the page."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic

from streamlit.delta_generator import DeltaGenerator

from lama_core.lessons.stored_answers import Stored
from lama_core.models.protocols import KINDS
from lama_core.queries.kind import Answer, Asked, One, QueryKind, R, S
from lama_core.scoring.model_info import AboutModel
from pages.ui.queries.form import Form
from pages.ui.shared import predictions, screens
from pages.ui.shared.model_columns import ModelColumn


def describe_kind(one: AboutModel) -> str:
    """A model's kind; precision and device unless they are fp32 on the CPU."""
    return predictions.join_details(one, KINDS[one.kind].title)


def describe_tokens(one: AboutModel) -> str:
    """A model's kind, and how it scores a token."""
    kind = KINDS[one.kind]
    how = "each token hidden in turn" if kind.sees_both else "each token given those before it"
    return predictions.join_details(one, kind.title, how)


def describe_sums(models: Sequence[AboutModel]) -> str:
    """What the sum of a text's log-probabilities is in models that see both sides, if any do."""
    if not any(KINDS[one.kind].sees_both for one in models):
        return ""
    return (
        " For a model that hides each token in turn, the sum is a pseudo-log-likelihood: it isn't "
        "the log-probability of the whole sentence."
    )


@dataclass(frozen=True, kw_only=True)
class Tab(Generic[R, S, One]):
    """A tab, or a view in one.

    Attributes:
        kind: The kind of query.
        name: Its name in the history.
        opens: The URL parameters that open it.
        caption: What to type, and what the models answer.
        help: The help text of the caption.
        form: The form.
        draw: Draws one model's answer.
        describe: A model's answer -> the line under its name.
        can_answer: Whether a model can answer, by its name; other models are named, not queried.
        cannot: Why those models can't answer, and which models can.
        since: The request and a model -> `since` of `cache.answer`.
        per_row: The largest number of columns side by side.
        language_of: The request -> the texts whose language is checked.
        above: Draws what is above the answers. May return placeholders for lines about them.
        stored: Makes the answers of models that aren't installed, from finished runs; None for a
            model whose runs don't have the query.
        calls: Makes the callbacks of a query from the model's colour; drawn in its column.
        below: Draws what is below the answers, and into the placeholders of `above`. Gets each
            chosen model's stored answers, too; None for models without.
        after: Draws what is below the export.
        exported: The name of exported files.
        has_details: Whether the cards have details, which a switch shows.
    """

    kind: QueryKind[R, S, One]
    name: str
    opens: screens.Params
    caption: str
    form: Form[R]
    draw: Callable[[Asked[R, S], ModelColumn[One]], object]
    describe: Callable[[One], str] = describe_kind
    can_answer: Callable[[str], bool] = lambda _: True
    cannot: str = ""
    since: Callable[[R, str], float] = lambda *_: 0.0
    per_row: int = 4
    language_of: Callable[[R], str] = lambda _: ""
    above: Callable[[Asked[R, S]], Sequence[DeltaGenerator] | None] = lambda _: None
    stored: Callable[[Asked[R, S]], Mapping[str, Stored | None]] = lambda _: {}
    calls: Callable[[str], dict[str, Any]] = lambda _: {}
    below: Callable[
        [Answer[R, S, One], Sequence[DeltaGenerator], Mapping[str, Stored | None]], object
    ] = lambda *_: None
    after: Callable[[Answer[R, S, One]], object] = lambda _: None
    exported: str
    help: str | None = None
    has_details: bool = False
