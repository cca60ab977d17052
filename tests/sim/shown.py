"""What a command said on standard error, whether or not it had to compile something first."""

import re

__all__ = ["complaints", "messages"]


def complaints(text: str) -> list[str]:
    """Return the lines of ``text`` but those that say that something is being compiled.

    Which test is the first that needs a compiled model depends on what ran before it.
    """
    return [line for line in text.splitlines() if not line.startswith("compiling ")]


def messages(text: str) -> list[str]:
    """Return the messages that begin with ``sim: ``.

    PyTorch may have begun the line, from another thread.
    """
    return re.findall(r"\bsim: .*", text)
