"""What goes wrong in Python that C++ calls, raised where a test sees it."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["nothing_if_raised", "raised_in_callbacks"]

_raised: list[BaseException] = []
"""By callbacks since the outermost block of `raised_in_callbacks` began."""


def nothing_if_raised(function: Callable) -> Callable:
    """Return ``function`` for C++ that takes what it returns for a size: where it raises, 0.

    ctypes would return whatever is in a register.
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
    """Raise what functions raised that C++ called in this block, in whatever thread.

    C++ has no use for an exception: ctypes tells ``sys.unraisablehook`` of it and goes on. What
    else goes wrong in the block may follow from it: the first of them comes out.
    """
    others = sys.unraisablehook

    def hook(told) -> None:
        if told.exc_value is not None and "ctypes callback" in (told.err_msg or ""):
            _raised.append(told.exc_value)
        else:
            others(told)

    before = len(_raised)  # of a block around this one
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
