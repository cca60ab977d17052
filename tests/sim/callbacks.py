"""Errors in Python functions that C++ calls, raised where a test sees them."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["nothing_if_raised", "raised_in_callbacks"]

_raised: list[BaseException] = []
"""Errors in callbacks since the outermost block of `raised_in_callbacks` began."""


def nothing_if_raised(function: Callable) -> Callable:
    """Return ``function`` for C++ that uses its result as a size: 0 if it raises an error.

    ctypes would return the contents of a register.
    """
    def call(*given):
        try:
            return function(*given)
        except BaseException as error:
            _raised.append(error)
            return 0

    return call


@contextmanager
def raised_in_callbacks() -> Iterator[None]:
    """Raise errors of functions that C++ called in this block, in any thread.

    C++ ignores exceptions: ctypes reports them to ``sys.unraisablehook`` and continues. Later
    errors in the block may be consequences of the first, which is raised.
    """
    others = sys.unraisablehook

    def hook(told) -> None:
        if told.exc_value is not None and "ctypes callback" in (told.err_msg or ""):
            _raised.append(told.exc_value)
        else:
            others(told)

    before = len(_raised)  # of an enclosing block
    sys.unraisablehook = hook
    try:
        yield
    except BaseException as error:
        if len(_raised) == before:
            raise
        raise _raised[before] from error
    else:
        if len(_raised) > before:
            raise _raised[before]
    finally:
        sys.unraisablehook = others
        del _raised[before:]
