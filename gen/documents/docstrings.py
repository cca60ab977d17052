"""Reader of docstrings: of a module's assignments, and sections and sentences of a class's."""

import ast
import inspect
import re
import sys
from functools import cache
from types import ModuleType

__all__ = ["attribute_docs", "counters_text", "latency_text", "members_text"]

_DATA = re.compile(r":data:`~?(?:[\w.]*\.)?(\w+)`")
_CLASS = re.compile(r":class:`~?(?:[\w.]*\.)?(\w+)`")


@cache
def attribute_docs(module: ModuleType) -> dict[str, str]:
    """Return the docstrings after assignments in ``module``, by name, including those in its
    classes: ``Class.MEMBER``, and ``Class`` for the class's own."""
    docs: dict[str, str] = {}

    def visit(body: list[ast.stmt], prefix: str) -> None:
        for statement, following in zip(body, [*body[1:], None]):
            if isinstance(statement, ast.ClassDef):
                docs[prefix + statement.name] = ast.get_docstring(statement) or ""
                visit(statement.body, f"{prefix}{statement.name}.")
            if (isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)
                    and isinstance(following, ast.Expr)
                    and isinstance(following.value, ast.Constant)
                    and isinstance(following.value.value, str)):
                docs[prefix + statement.targets[0].id] = inspect.cleandoc(following.value.value)

    visit(ast.parse(inspect.getsource(module)).body, "")
    return docs


def latency_text(kind: type) -> str:
    """Return the sentences of the docstring of ``kind`` that give its latency or throughput.

    If they only refer to other classes, the sentences of these follow, by name; "" if there are
    none. Named constants are replaced by their values.
    """
    return " ".join(_latency(kind, ()))


def _latency(kind: type, seen: tuple[type, ...]) -> list[str]:
    module = sys.modules[kind.__module__]
    doc = inspect.getdoc(kind) or ""
    found = [s for s in _sentences(doc) if re.search(r"\b(latency|throughput)\b", s, re.I)]
    found = [_DATA.sub(lambda m: str(getattr(module, m[1], m[1])), s) for s in found]
    if found and not any(re.search(r"\d", s) for s in found):
        for name in dict.fromkeys(_CLASS.findall(" ".join(found)) or _CLASS.findall(doc)):
            other = getattr(module, name, None)
            if isinstance(other, type) and other not in seen:
                more = _latency(other, (*seen, kind))
                if more:
                    found.append(f"{name}: {' '.join(more)}")
    return found


def _sentences(doc: str) -> list[str]:
    prose = doc.split("\nParameters")[0].split("\nPorts")[0]
    return [sentence for paragraph in re.split(r"\n\s*\n", prose)
            for sentence in re.split(r"(?<=[.:])\s+(?=[A-Z])", " ".join(paragraph.split()))]


def counters_text(kind: type) -> str:
    """Return the description of the port ``counters`` in the docstring of ``kind``, or ""."""
    found = re.search(r"^counters: (.*(?:\n +.*)*)", inspect.getdoc(kind) or "", re.MULTILINE)
    text = " ".join(found[1].split()) if found else ""
    return text.removesuffix(" idle.")


def members_text(kind: type) -> dict[str, str]:
    """Return the section Members of the docstring of ``kind``: descriptions by name."""
    section = (inspect.getdoc(kind) or "").split("Members\n-------\n")[-1].split("\n\n")[0]
    return {name: " ".join(text.split())
            for name, text in re.findall(r"^(\w+): (.*(?:\n +.*)*)", section, re.MULTILINE)}
