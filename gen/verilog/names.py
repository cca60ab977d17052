"""Names of signals, the same for every version of Python.

Amaranth names a signal after the variable or attribute that it is assigned to, and reads the name
from the caller's bytecode. Versions of Python compile a statement to different instructions, and
Amaranth supports only some of them. This module uses the syntax tree of the source instead:
:func:`variable_name` replaces ``amaranth.tracer.get_var_name`` in every process that imports this
module.

The names equal those of Amaranth 0.5 on CPython 3.11, so caches, reports and constraints stay
valid. They include two limits of its compiler. In ``a, b = Signal(), Signal()`` only the last
variable names a signal. A variable that an inner function reads names no signal of a tuple.
"""

import ast
import linecache
import sys
from collections.abc import Iterator
from functools import cache
from itertools import islice
from types import CodeType

from amaranth import tracer

__all__ = ["variable_name"]

_REQUIRED = object()
_COMPREHENSIONS = ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp
_FUNCTIONS = ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda


def variable_name(depth: int = 2, default: object = _REQUIRED) -> object:
    """Return the name of the variable or attribute to which a call's result is assigned.

    depth: number of frames from here to the frame with the call.
    default: result if the call is not the value of an assignment to one name, or if the source is
        missing; ``NameNotFound`` if left out.
    """
    frame = sys._getframe(depth)
    name = _name(frame.f_code, frame.f_lasti)
    if name is not None:
        return name
    if default is _REQUIRED:
        raise tracer.NameNotFound
    return default


tracer.get_var_name = variable_name


@cache
def _name(code: CodeType, instruction: int) -> str | None:
    # A code unit has two bytes. Versions differ in the begin of a method call, not in its end.
    _, line, _, column = next(islice(code.co_positions(), instruction // 2, None))
    return _names(code.co_filename).get((line, column))


@cache
def _names(file: str) -> dict[tuple[int | None, int | None], str]:
    """Return the assigned name of each call in ``file``, by the end of the call."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:  # the file is not Python, for example a template
        return {}
    names: dict[tuple[int | None, int | None], str] = {}

    def visit(node: ast.AST, captured: set[str]) -> None:
        if isinstance(node, _FUNCTIONS):
            captured = _captured(node)
        for name, value in _assignments(node, captured):
            for call in _results(value):
                names[call.end_lineno, call.end_col_offset] = name
        for child in ast.iter_child_nodes(node):
            visit(child, captured)

    visit(tree, set())
    return names


def _captured(function: ast.AST) -> set[str]:
    """Return the variables that inner functions and comprehensions of ``function`` use."""
    found: set[str] = set()

    def visit(node: ast.AST, inside: bool) -> None:
        if inside and isinstance(node, ast.Name):
            found.add(node.id)
        if isinstance(node, _COMPREHENSIONS):
            first, *more = node.generators
            visit(first.iter, inside)  # evaluated outside
            results = (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)
            for part in (first.target, *first.ifs, *more, *results):
                visit(part, True)
            return
        inside |= isinstance(node, _FUNCTIONS) and node is not function
        for child in ast.iter_child_nodes(node):
            visit(child, inside)

    visit(function, False)
    return found


def _assignments(node: ast.AST, captured: set[str]) -> Iterator[tuple[str, ast.expr]]:
    match node:
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
            names = {target.id for target in targets if isinstance(target, ast.Name)} - captured
            if len(targets) == len(values) == len(names) and len(names) in (2, 3):
                yield from _of_tuple(targets[-1].id, values)
        case ast.Assign(targets=[ast.Name(id=name) | ast.Attribute(attr=name), *_], value=value):
            yield name, value
        case (ast.AnnAssign(target=ast.Name(id=name) | ast.Attribute(attr=name),
                            value=ast.expr() as value)
              | ast.NamedExpr(target=ast.Name(id=name), value=value)):
            yield name, value


def _of_tuple(name: str, values: list[ast.expr]) -> Iterator[tuple[str, ast.expr]]:
    for value in reversed(values):
        yield name, value
        if not _is_load(value):
            return


def _is_load(value: ast.expr) -> bool:
    return isinstance(value, ast.Name) or (
        isinstance(value, ast.Attribute) and _is_load(value.value))


def _results(value: ast.expr) -> Iterator[ast.Call]:
    """Yield the call whose result is ``value``, also as the last item of a list."""
    match value:
        case ast.Call():
            yield value
        case ast.List(elts=[*_, last]) | ast.IfExp(orelse=last) | ast.Attribute(value=last):
            yield from _results(last)
