"""InputError: an error in an input file, with its position."""

from os import PathLike, fspath

__all__ = ["InputError", "shown"]

_MOST = 60
"""Maximum characters of a value in a message."""


def shown(value: object) -> str:
    """Return ``value`` as a single line for a message; the middle of a long value is omitted."""
    try:
        text = repr(value)
    except ValueError:  # Python limits the digits of printed integers
        text = f"{type(value).__name__} of very many digits"
    except RecursionError:
        text = f"{type(value).__name__} nested very deeply"
    return text if len(text) <= _MOST else f"{text[:_MOST // 2]}...{text[-_MOST // 4:]}"


class InputError(ValueError):
    """An input file is malformed or unreadable.

    Parameters
    ----------
    path: the file.
    line, column: position, counted from 1, the column in bytes; 0 if unknown.
    message: the error; white space is collapsed to fit on a single line.

    ``str`` is ``file:line:column: message``, or ``file: message`` without a position.
    """

    def __init__(self, path: str | PathLike, line: int, column: int, message: str) -> None:
        self.path = fspath(path)
        self.line = line
        self.column = column
        self.message = " ".join(message.split())
        place = f"{self.path}:{line}:{column}" if line else self.path
        super().__init__(f"{place}: {self.message}")

    def __reduce__(self):
        # Without this, pickling between processes would rebuild the error from its message alone.
        return type(self), (self.path, self.line, self.column, self.message)
