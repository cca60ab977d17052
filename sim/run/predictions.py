"""Prediction file of a run: a CSV table with a line per sample, valid at every moment.

Lines ``sample,prediction`` follow the order of the input: the sample's number in the input, and the
float32 prediction in nine digits, which restore its exact bits; ``nan`` for a sample that the NIC
rejected. Each mini-batch is appended with a single write as soon as all earlier ones are written.
Text after the last line end, left by a power cut or a full disk, is ignored.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from os import PathLike

import numpy as np

from gen.base.files import open_output

__all__ = ["PredictionFile"]

_HEADER = b"sample,prediction\n"
_MOST_LINE = 100
"""Upper bound on the bytes of a line."""


class PredictionFile:
    """Appends predictions; called with the predictions of the next samples, float32 ``[n]``.

    Parameters
    ----------
    path: path of the file.
    first: the next sample. 0 replaces the file; otherwise lines of earlier samples are kept, and
        lines from ``first`` on are replaced.
    expected: returns the prediction of sample ``first - 1``, which the file must contain, or None
        if its bits are unknown.

    Raises
    ------
    ValueError
        The file is not a prediction file, ends before ``first``, or belongs to another run.
    OSError
        The file cannot be written.
    """

    def __init__(self, path: str | PathLike[str], first: int = 0,
                 expected: Callable[[], float | None] = lambda: None):
        self._path = str(path)
        self._next = first
        # A FIFO, a device or a missing file has no line to resume after.
        if first == 0 or not os.path.isfile(path):
            self._file = open_output(path)
            self._append(_HEADER)
            return
        self._file = open(path, "r+b")  # noqa: SIM115
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
        """Truncate the file after the line of sample ``first - 1``."""
        header = self._file.readline(_MOST_LINE)
        if not header:
            self._append(_HEADER)
            return
        if header != _HEADER:
            raise ValueError(f"predictions {self._path}:1: is not the line 'sample,prediction'")
        end, last, value = len(header), None, b""
        for line in iter(lambda: self._file.readline(_MOST_LINE), b""):
            if not line.endswith(b"\n"):
                break
            number, _, rest = line.partition(b",")
            if not number.isdigit() or (last is not None and int(number) != last + 1):
                raise ValueError(f"predictions {self._path}: samples must follow one another, "
                                 f"not {number.decode(errors='replace')!r} after {last}")
            if int(number) >= first:
                break
            end, last, value = end + len(line), int(number), rest
        if last != first - 1:
            held = "no earlier sample" if last is None else f"samples up to {last} only"
            raise ValueError(f"predictions {self._path} cannot continue at sample {first}: "
                             f"it holds {held}")
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
            raise ValueError(f"predictions {self._path} belongs to another run: sample {sample} is "
                             f"{held:.9g} in the file and {wanted:.9g} in this run")

    def _append(self, data: bytes) -> None:
        try:
            self._file.write(data)
            self._file.flush()
        except OSError as error:
            raise OSError(error.errno, error.strerror, self._path) from None

    def close(self) -> None:
        """Close the file; a second call has no effect."""
        # A failed write has already raised its error; closing would only raise it again.
        with suppress(OSError):
            self._file.close()

    def __enter__(self) -> "PredictionFile":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
