"""Timing model of copies between host and GPU memory."""

from host.devices.software import SoftwareProfile
from host.timing.pcie import PcieProfile

__all__ = ["CopyTime"]


class CopyTime:
    """Copies over a node's PCIe link, from or to page-locked memory.

    The host thread spends ``copy_us`` of the software profile on each call and continues. A copy to
    the GPU takes a round trip, because its copy engine reads host memory, plus the bytes at the
    link's rate. A copy from the GPU takes one way plus the bytes. The directions of the link are
    independent.

    Parameters: ``pcie``, ``software``.
    """

    def __init__(self, pcie: PcieProfile, software: SoftwareProfile):
        self.pcie = pcie
        self.software = software

    @property
    def call_us(self) -> float:
        """Host time of a copy's call."""
        return self.software.copy_us

    def latency_us(self, to_gpu: bool) -> float:
        """Return the time until the first byte of a copy arrives."""
        return self.pcie.one_way_us * (2 if to_gpu else 1)

    def moving_us(self, size: float) -> float:
        """Return the time of ``size`` bytes on the link; raise ``ValueError`` for a negative size.
        """
        if not size >= 0:
            raise ValueError(f"size must be at least 0, not {size!r}")
        return size / (self.pcie.bandwidth_gb_s * 1e3)
