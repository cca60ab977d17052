"""Packet capture of a run, for Wireshark, tshark and scapy.

The file has the classic pcap format with nanosecond timestamps (magic number 0xA1B23C4D,
draft-ietf-opsawg-pcap). The timestamp of a frame is the simulated time at which its last beat left
the NIC; cycle 0 of the run is 1 January 1970.
"""

import io
from collections.abc import Iterable
from contextlib import suppress
from decimal import Decimal
from os import PathLike

import dpkt
import numpy as np

from gen.base.files import open_output
from host.timing.clock import CYCLE_NS

__all__ = ["PcapFile"]

_SNAPLEN = 65535
_NS = Decimal("1e-9")


class PcapFile:
    """Capture file that is written during the run; a :data:`sim.nic.ports.Observer`.

    Each call appends whole frames with a single write, without buffering. A run that ends early
    therefore leaves a readable capture.

    Parameters: ``path``, the file, which is replaced. ``OSError`` when it cannot be written.
    """

    def __init__(self, path: str | PathLike[str]):
        self._path = path
        # dpkt writes each record in parts; they are collected here and written at once.
        self._records = io.BytesIO()
        self._writer = dpkt.pcap.Writer(self._records, snaplen=_SNAPLEN, nano=True)
        self._file = open_output(path)
        self._write()

    def __call__(self, frames: Iterable[tuple[int, int, np.ndarray]]) -> None:
        """Append ``frames``: cycle, sender and data (uint32 ``[n, 16]``), in time order."""
        for cycle, _, data in frames:
            # dpkt takes seconds; a float would be exact to the nanosecond for 104 days only.
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
        """Close the file; a second call has no effect."""
        # A failed write has already raised its error; closing would only raise it again.
        with suppress(OSError):
            self._file.close()

    def __enter__(self) -> "PcapFile":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
