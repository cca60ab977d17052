"""InputError: what is wrong with an input file, and where."""

from os import PathLike, fspath

__all__ = ["InputError", "shown"]

_MOST = 60
"""Characters of a value in a message."""


def shown(value: object) -> str:
    """Return ``value`` as a message shows it: on one line, its middle left out if it is long."""
    try:
        text = repr(value)
    except ValueError:  # an integer of more digits than Python writes
        text = f"{type(value).__name__} of very many digits"
    return text if len(text) <= _MOST else f"{text[:_MOST // 2]}...{text[-_MOST // 4:]}"


class InputError(ValueError):
    """A file cannot be read as what it is said to be.

    Parameters
    ----------
    path: the file.
    line, column: the place, both counted from 1, the column in bytes; 0 where there is none.
    message: what is wrong; made to fit one line.

    ``str`` is one line, ``file:line:column: message``, or ``file: message`` without a place.
    """

    def __init__(self, path: str | PathLike, line: int, column: int, message: str) -> None:
        self.path = fspath(path)
        self.line = line
        self.column = column
        self.message = " ".join(message.split())
        place = f"{self.path}:{line}:{column}" if line else self.path
        super().__init__(f"{place}: {self.message}")

    def __reduce__(self):
        # Between processes: an exception is otherwise made anew from its message alone.
        return type(self), (self.path, self.line, self.column, self.message)
