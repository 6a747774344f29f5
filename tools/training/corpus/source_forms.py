"""The sentence forms of the corpus's sources, read from their program code.

Every sentence that a source writes is an f-string in `passages` or a function of the same module
that `passages` calls. A variable with a fixed set of texts (`verb = "flows through" if is_river
else "is in"`) gives a form for each text; any other value is a slot (see `metrics.sentence_forms`).
Texts that a source copies (definitions, articles) have no form.
"""

import ast
import inspect
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from lama_core.metrics.sentence_forms import SLOT, SentenceForms, form_of
from tools.training.corpus.source_list import SOURCES
from tools.training.corpus.source_passages import CorpusSource

VariableTexts = dict[str, set[str | None]]
"""Variable -> its possible fixed texts; None among them means any other value."""


def corpus_forms(sources: Sequence[CorpusSource] = SOURCES) -> SentenceForms:
    """Return the sentence forms of the sources; sources without forms are excluded."""
    found = {source.name: source_forms(source.passages) for source in sources}
    return SentenceForms({name: forms for name, forms in found.items() if forms})


@cache
def source_forms(passages: Callable[..., Any]) -> frozenset[str]:
    """Return the sentence forms of a function that yields passages."""
    tree = ast.parse(Path(inspect.getfile(passages)).read_text(encoding="utf-8"))
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    reached = [passages.__name__]
    for name in reached:
        called = (node.id for node in ast.walk(functions[name]) if isinstance(node, ast.Name))
        reached += {one for one in called if one in functions}.difference(reached)
    return frozenset(form for name in reached for form in _forms(functions[name]))


def _forms(function: ast.FunctionDef) -> Iterator[str]:
    values = _values(function)
    for node in ast.walk(function):
        if isinstance(node, ast.JoinedStr):
            fixed = [part.value for part in node.values if isinstance(part, ast.Constant)]
            if any("/" in str(text) for text in fixed):
                continue  # a path or a key
            for parts in product(*(_choices(part, values) for part in node.values)):
                form = form_of(parts)
                if SLOT in form and form != SLOT:
                    yield form


def _choices(part: ast.expr, values: VariableTexts) -> list[str | None]:
    """Return the possible texts of a part of an f-string; None is a slot."""
    if isinstance(part, ast.Constant):
        return [str(part.value)]
    if isinstance(part, ast.FormattedValue) and isinstance(part.value, ast.Name):
        known = values.get(part.value.id, {None})
        if None not in known:
            return sorted(known, key=str)
    return [None]


def _values(function: ast.FunctionDef) -> VariableTexts:
    """Return the possible fixed texts of the function's local variables."""
    found: VariableTexts = defaultdict(set)
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                _assign(found, target, _texts(node.value))
        elif isinstance(node, ast.For) and isinstance(node.iter, ast.Tuple):
            for item in node.iter.elts:
                if isinstance(node.target, ast.Tuple) and isinstance(item, ast.Tuple):
                    pairs = zip(node.target.elts, item.elts, strict=True)
                else:
                    pairs = zip([node.target], [item], strict=True)
                for target, value in pairs:
                    _assign(found, target, _texts(value))
        elif isinstance(node, (ast.For, ast.comprehension)):
            for name in ast.walk(node.target):
                _assign(found, name, {None})
    return found


def _assign(found: VariableTexts, target: ast.AST, texts: set[str | None]) -> None:
    if isinstance(target, ast.Name):
        found[target.id] |= texts
    elif isinstance(target, ast.Tuple):
        for element in target.elts:
            _assign(found, element, {None})


def _texts(value: ast.expr) -> set[str | None]:
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return {value.value}
    if isinstance(value, ast.IfExp):
        return _texts(value.body) | _texts(value.orelse)
    return {None}
