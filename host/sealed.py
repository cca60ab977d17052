"""Archives of arrays (``.npz``) with a seal: a SHA-256 of every byte of the file but its own.

The seal is the zip archive's comment, which :func:`numpy.load` and other tools pass over. What was
changed, cut off or written by halves is refused before anything in it is looked at.
"""

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import numpy as np

from host.errors import InputError

__all__ = ["read_sealed", "write_sealed"]

_FORM = re.compile(rb"sha256 ([0-9a-f]{64})")
_LENGTH = 71
_BLOCK = 1 << 20


def write_sealed(file: BinaryIO, arrays: Mapping[str, np.ndarray]) -> None:
    """Write ``arrays`` to the empty ``file``, open for reading too. The same arrays give the same
    bytes."""
    np.savez(file, **arrays)  # type: ignore[arg-type]
    # The archive ends with the length of its comment.
    file.seek(-2, 2)
    file.write(_LENGTH.to_bytes(2, "little"))
    file.seek(0)
    seal = _digest(file, None)
    file.seek(0, 2)
    file.write(b"sha256 " + seal.encode())


def read_sealed(path: str | Path, what: str) -> dict[str, np.ndarray]:
    """Return the arrays of ``path`` by name; `InputError` if it is not ``what`` or is damaged."""
    try:
        with Path(path).open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _LENGTH))
            found = _FORM.fullmatch(file.read(_LENGTH))
            if found is None:
                raise InputError(path, 0, 0, f"is not {what}: it does not end with its SHA-256")
            file.seek(0)
            if _digest(file, size - _LENGTH) != found[1].decode():
                raise InputError(path, 0, 0, f"is not {what}, or is damaged: its SHA-256 is "
                                             f"another than at its end")
            file.seek(0)
            with np.load(file, allow_pickle=False) as archive:
                return dict(archive)
    except InputError:
        raise
    except OSError as error:
        raise InputError(path, 0, 0, error.strerror or str(error)) from None
    except (Exception, RecursionError):
        # A right seal on a wrong archive: NumPy's header parser raises whatever Python's does.
        raise InputError(path, 0, 0, f"is not {what}") from None


def _digest(file: BinaryIO, size: int | None) -> str:
    """Return the SHA-256 of the next ``size`` bytes, or of the rest."""
    total = hashlib.sha256()
    while (size is None or size) and (
            part := file.read(_BLOCK if size is None else min(size, _BLOCK))):
        total.update(part)
        size = None if size is None else size - len(part)
    return total.hexdigest()
