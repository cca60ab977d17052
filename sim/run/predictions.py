"""Predictions of a run as a table, one line a sample, that is right at every moment.

``sample,prediction`` in the order of the input: the sample's number in the input, and the float32
prediction in nine digits, which give its bits back; ``nan`` for a sample that the NIC refused. A
mini-batch is appended with a single write as soon as all before it are there. What is behind the
last line end, after a power cut or a full disk, is no line.
"""

from collections.abc import Callable
from contextlib import suppress
from os import PathLike
from typing import BinaryIO

import numpy as np

__all__ = ["PredictionFile"]

_HEADER = b"sample,prediction\n"


class PredictionFile:
    """Appends predictions; called with float32 ``[n]``, the next samples in the input's order.

    Parameters
    ----------
    path: of the file.
    first: the sample that is next. From 0, the file is made anew. Otherwise what it holds of the
        samples before stays, and what it holds from there on is replaced.
    expected: returns the prediction of sample ``first - 1``, or None where it is not known to the
        bit; what the file holds there must be equal.

    Raises
    ------
    ValueError
        The file is not such a table, ends before ``first``, or was made by another run.
    OSError
        The file cannot be written.
    """

    def __init__(self, path: str | PathLike[str], first: int = 0,
                 expected: Callable[[], float | None] = lambda: None):
        self._path = str(path)
        self._next = first
        if first == 0:
            self._file = open(path, "wb")  # noqa: SIM115
            self._append(_HEADER)
            return
        self._file = _open_for_both(self._path)
        try:
            self._keep_before(first, expected)
        except BaseException:
            self._file.close()
            raise

    def __call__(self, predictions: np.ndarray) -> None:
        """Append the predictions of the next samples."""
        numbers = range(self._next, self._next + len(predictions))
        self._append("".join(f"{number},{value:.9g}\n" for number, value in zip(
            numbers, predictions.tolist())).encode())
        self._next = numbers.stop

    def _keep_before(self, first: int, expected: Callable[[], float | None]) -> None:
        """Cut the file behind the line of sample ``first - 1``."""
        header = self._file.readline()
        if not header:
            self._append(_HEADER)
            return
        if header != _HEADER:
            raise ValueError(f"predictions {self._path}:1: is not the line 'sample,prediction'")
        end, last, value = len(header), None, b""
        for line in self._file:
            if not line.endswith(b"\n"):
                break
            number, _, rest = line.partition(b",")
            if not number.isdigit() or (last is not None and int(number) != last + 1):
                raise ValueError(f"predictions {self._path}: samples must follow one another, "
                                 f"not {number.decode(errors='replace')!r} on {last}")
            if int(number) >= first:
                break
            end, last, value = end + len(line), int(number), rest
        if last != first - 1:
            held = "no sample before it" if last is None else f"samples up to {last} only"
            raise ValueError(f"predictions {self._path} cannot go on with sample {first}: it holds "
                             f"{held}")
        self._compare(last, value, expected())
        self._file.seek(end)
        self._file.truncate()

    def _compare(self, sample: int, text: bytes, wanted: float | None) -> None:
        try:
            held = np.float32(text)
        except ValueError:
            raise ValueError(f"predictions {self._path}: sample {sample} must have a number, not "
                             f"{text.decode(errors='replace').strip()!r}") from None
        if wanted is not None and not np.isnan(held) and held != np.float32(wanted):
            raise ValueError(f"predictions {self._path} is of another run: sample {sample} is "
                             f"{held:.9g} there and {wanted:.9g} here")

    def _append(self, data: bytes) -> None:
        try:
            self._file.write(data)
            self._file.flush()
        except OSError as error:
            raise OSError(error.errno, error.strerror, self._path) from None

    def close(self) -> None:
        """Close the file; a second time does nothing."""
        # Everything was written or complained of: only what could not be is left.
        with suppress(OSError):
            self._file.close()

    def __enter__(self) -> "PredictionFile":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _open_for_both(path: str) -> BinaryIO:
    try:
        return open(path, "r+b")
    except FileNotFoundError:
        return open(path, "w+b")
