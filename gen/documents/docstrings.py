"""Reader of the docstrings of assignments, counters and members."""

import ast
import inspect
import re
from functools import cache
from types import ModuleType

__all__ = ["attribute_docs", "counters_text", "members_text"]


@cache
def attribute_docs(module: ModuleType) -> dict[str, str]:
    """Return the docstrings of the assignments and classes in ``module``, by name.

    The name of an assignment in a class is ``Class.MEMBER``.
    """
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


def counters_text(kind: type) -> str:
    """Return the description of port ``counters`` in the docstring of ``kind``; "" if missing."""
    found = re.search(r"^counters: (.*(?:\n +.*)*)", inspect.getdoc(kind) or "", re.MULTILINE)
    text = " ".join(found[1].split()) if found else ""
    return text.removesuffix(" idle.")


def members_text(kind: type) -> dict[str, str]:
    """Return the descriptions in section Members of the docstring of ``kind``, by name."""
    section = (inspect.getdoc(kind) or "").split("Members\n-------\n")[-1].split("\n\n")[0]
    return {name: " ".join(text.split())
            for name, text in re.findall(r"^(\w+): (.*(?:\n +.*)*)", section, re.MULTILINE)}
