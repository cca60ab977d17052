"""Messages of a command on standard error, with or without compilation before."""

import re

__all__ = ["complaints", "messages"]


def complaints(text: str) -> list[str]:
    """Return the lines of ``text`` except reports of compilation.

    Which test compiles a model first depends on earlier tests.
    """
    return [line for line in text.splitlines() if not line.startswith("compiling ")]


def messages(text: str) -> list[str]:
    """Return the messages that begin with ``sim: ``.

    PyTorch may have begun the line, from another thread.
    """
    return re.findall(r"\bsim: .*", text)
