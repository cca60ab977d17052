"""Frames of a run as a packet capture, which Wireshark, tshark and scapy read.

A capture in the classic pcap format with nanosecond timestamps (magic number 0xA1B23C4D,
draft-ietf-opsawg-pcap). The time of a frame is the simulated time at which its last beat left the
NIC, from 1 January 1970 on, where cycle 0 of the run is.
"""

import io
from collections.abc import Iterable
from contextlib import suppress
from decimal import Decimal
from os import PathLike

import dpkt
import numpy as np

from host.timing.clock import CYCLE_NS

__all__ = ["PcapFile"]

_SNAPLEN = 65535
_NS = Decimal("1e-9")


class PcapFile:
    """A capture that grows while the run goes on; a :data:`sim.nic.ports.Observer`.

    Each call appends whole frames with a single write and leaves nothing in memory, so that
    a run that ends early, by whatever means, leaves a capture that can be read.

    Parameters: ``path``, of the file, which is replaced. ``OSError`` when it cannot be written.
    """

    def __init__(self, path: str | PathLike[str]):
        self._path = path
        # dpkt writes header and frame record by record; they are collected and written at once.
        self._records = io.BytesIO()
        self._writer = dpkt.pcap.Writer(self._records, snaplen=_SNAPLEN, nano=True)
        self._file = open(path, "wb")  # noqa: SIM115
        self._write()

    def __call__(self, frames: Iterable[tuple[int, int, np.ndarray]]) -> None:
        """Append ``frames``: cycle, sender and data (uint32 ``[n, 16]``), in time order."""
        for cycle, _, data in frames:
            # dpkt takes seconds; a float of them is exact to the nanosecond for 104 days only.
            self._writer.writepkt(data.astype("<u4").tobytes(), round(cycle * CYCLE_NS) * _NS)
        if self._records.tell():
            self._write()

    def _write(self) -> None:
        try:
            self._file.write(self._records.getvalue())
            self._file.flush()
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self._path)) from None
        self._records.seek(0)
        self._records.truncate()

    def close(self) -> None:
        """Close the file; a second time does nothing."""
        # Everything was written or complained of: only what could not be is left.
        with suppress(OSError):
            self._file.close()

    def __enter__(self) -> "PcapFile":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
