"""The sentence forms that the corpus's sources write, read from their programs.

Every sentence of a source is an f-string of the functions that its `passages` calls in its own
module. A name in it that can only be one of some fixed texts (`verb = "flows through" if is_river
else "is in"`) gives a form for each; every other value is a slot (see `metrics.sentence_forms`).
Texts that a source copies (definitions, articles) have no form.
"""

import ast
import inspect
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import product
from types import FunctionType, ModuleType
from typing import Any

from lama_core.corpus.source_list import SOURCES
from lama_core.corpus.source_passages import Source
from lama_core.metrics.sentence_forms import SLOT, SentenceForms, form_of

Values = dict[str, set[str | None]]
"""Name -> the fixed texts that it can be; None among them for any other value."""


def corpus_forms(sources: Sequence[Source] = SOURCES) -> SentenceForms:
    """Return the sentence forms of the sources; those that write none are left out."""
    found = {source.name: source_forms(source.passages) for source in sources}
    return SentenceForms({name: forms for name, forms in found.items() if forms})


@cache
def source_forms(passages: Callable[..., Any]) -> frozenset[str]:
    """Return the sentence forms of a function that gives passages."""
    start = _unwrapped(passages)
    module = inspect.getmodule(start)
    if module is None:
        raise ValueError(f"{start} belongs to no module, so its sentences can't be read.")
    functions = _functions(module)
    reached, waiting = {start.__name__}, [start.__name__]
    while waiting:
        for node in ast.walk(functions[waiting.pop()]):
            if isinstance(node, ast.Name) and node.id in functions.keys() - reached:
                reached.add(node.id)
                waiting.append(node.id)
    return frozenset(form for name in reached for form in _forms(functions[name]))


def _unwrapped(passages: Callable[..., Any]) -> FunctionType:
    """The function that makes the sentences, where another one only prepares its arguments."""
    inner = [
        value
        for value in inspect.getclosurevars(passages).nonlocals.values()
        if isinstance(value, FunctionType)
    ]
    found = inner[0] if inner else passages
    if not isinstance(found, FunctionType):
        raise ValueError(f"{found} isn't a function, so its sentences can't be read.")
    return found


def _functions(module: ModuleType) -> dict[str, ast.FunctionDef]:
    tree = ast.parse(inspect.getsource(module))
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


def _forms(function: ast.FunctionDef) -> Iterator[str]:
    values = _values(function)
    for node in ast.walk(function):
        if isinstance(node, ast.JoinedStr) and not _is_path(node):
            for parts in product(*(_choices(part, values) for part in node.values)):
                form = form_of(parts)
                if SLOT in form and form != SLOT:
                    yield form


def _is_path(text: ast.JoinedStr) -> bool:
    """Whether an f-string names a file or a key and isn't a sentence."""
    fixed = [part.value for part in text.values if isinstance(part, ast.Constant)]
    return any("/" in str(part) for part in fixed)


def _choices(part: ast.expr, values: Values) -> list[str | None]:
    """What a part of an f-string can be: fixed texts, or None for a slot."""
    if isinstance(part, ast.Constant):
        return [str(part.value)]
    if isinstance(part, ast.FormattedValue) and isinstance(part.value, ast.Name):
        known = values.get(part.value.id, {None})
        if None not in known:
            return sorted(known, key=str)
    return [None]


def _values(function: ast.FunctionDef) -> Values:
    """The fixed texts that the function's own names can be."""
    found: Values = defaultdict(set)
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                _assign(found, target, _texts(node.value))
        elif isinstance(node, ast.For) and isinstance(node.iter, ast.Tuple):
            for one in node.iter.elts:
                if isinstance(node.target, ast.Tuple) and isinstance(one, ast.Tuple):
                    pairs = zip(node.target.elts, one.elts, strict=True)
                else:
                    pairs = zip([node.target], [one], strict=True)
                for target, value in pairs:
                    _assign(found, target, _texts(value))
        elif isinstance(node, (ast.For, ast.comprehension)):
            for name in ast.walk(node.target):
                _assign(found, name, {None})
    return found


def _assign(found: Values, target: ast.AST, texts: set[str | None]) -> None:
    if isinstance(target, ast.Name):
        found[target.id] |= texts
    elif isinstance(target, ast.Tuple):
        for one in target.elts:
            _assign(found, one, {None})


def _texts(value: ast.expr) -> set[str | None]:
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return {value.value}
    if isinstance(value, ast.IfExp):
        return _texts(value.body) | _texts(value.orelse)
    return {None}
