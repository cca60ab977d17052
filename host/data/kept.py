"""Samples of a stream that is read once, for several passes."""

from collections.abc import Iterator
from tempfile import SpooledTemporaryFile, gettempdir

import numpy as np

from host.samples import Samples

__all__ = ["MEMORY", "KeptSamples"]

MEMORY = 1 << 26
"""Bytes of kept samples in memory; more go to a temporary file in the folder ``TMPDIR``."""


class KeptSamples:
    """A stream of samples, read once, whose first samples are kept for further passes.

    Kept numbers have the fewest bytes that hold them, such as 186 bytes per sample of Criteo with
    16-bit rows. The temporary file has no name and ends with this object.

    stream: chunks of samples, read as far as the longest pass.
    """

    def __init__(self, stream: Iterator[Samples]):
        self._stream = stream
        self._file = SpooledTemporaryFile(MEMORY)  # noqa: SIM115
        self._end = 0

    def chunks(self, again: bool) -> Iterator[Samples]:
        """Yield the chunks from the first on.

        again: whether to keep them for another pass. A pass that keeps nothing is the last.

        Raises as the stream does, and ``OSError`` if the temporary file cannot be written.
        """
        at = 0
        while True:
            if at < self._end:
                self._file.seek(at)
                chunk = self._load()
                at = self._file.tell()
            elif (chunk := next(self._stream, None)) is None:
                return
            elif again:
                at = self._keep(chunk)
            yield chunk

    def _keep(self, chunk: Samples) -> int:
        """Write a chunk behind the last, and return the end."""
        self._file.seek(self._end)
        try:
            for values in (chunk.dense, chunk.labels, _narrow(chunk.bag_lengths),
                           _narrow(chunk.rows),
                           np.zeros(0) if chunk.weights is None else chunk.weights):
                np.save(self._file, values)
        except OSError as error:
            raise OSError(error.errno, f"{error.strerror}: set TMPDIR to a folder with more space",
                          gettempdir()) from None
        self._end = self._file.tell()
        return self._end

    def _load(self) -> Samples:
        dense, labels, lengths, rows, weights = (np.load(self._file) for _ in range(5))
        tables = np.tile(np.arange(lengths.shape[1], dtype=np.int32), len(lengths))
        return Samples(dense, labels, lengths.astype(np.int32),
                       np.repeat(tables, lengths.reshape(-1)), rows.astype(np.int64),
                       None if weights.dtype != np.float32 else weights)


def _narrow(values: np.ndarray) -> np.ndarray:
    return values.astype(np.min_scalar_type(values.max(initial=0)))
