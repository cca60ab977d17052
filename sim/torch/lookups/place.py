"""Source position in a PyTorch program: the innermost line outside EmberNIC, PyTorch and its
embedding libraries."""

import contextlib
import sys
from functools import lru_cache
from os.path import dirname, join, realpath

import torch

__all__ = ["place"]

_OURS = dirname(dirname(realpath(__file__)))
_THEIRS = dirname(dirname(realpath(str(torch.__file__))))
_FOLDERS = (realpath(contextlib.__file__), join(_OURS, ""), *(
    join(_THEIRS, library, "") for library in ("torch", "torchrec", "fbgemm_gpu")))


@lru_cache(maxsize=1024)
def _of_user(file: str) -> bool:
    """Return True if ``file`` belongs to the user; text that was never in a file does not."""
    return not file.startswith("<") and not realpath(file).startswith(_FOLDERS)


def place() -> str:
    """Return ``file:line`` of the user's innermost line; ``?`` if the stack contains no such line.
    """
    frame = sys._getframe(1)
    while frame is not None and not _of_user(frame.f_code.co_filename):
        frame = frame.f_back
    return "?" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"
