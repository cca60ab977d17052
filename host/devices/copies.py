"""Timing model of copies between host and GPU memory."""

from host.devices.software import SoftwareProfile
from host.timing.pcie import PcieProfile

__all__ = ["CopyTime"]


class CopyTime:
    """Copies over a node's PCIe link, from or to page-locked memory.

    The host's thread spends the software's ``copy_us`` on each call and goes on. The copy itself
    crosses the link: to the GPU, whose copy engine reads host memory, it takes a round trip and the
    bytes at the link's rate, from the GPU one way and the bytes. Each direction of the link carries
    its bytes by itself. Parameters: ``pcie``, ``software``.
    """

    def __init__(self, pcie: PcieProfile, software: SoftwareProfile):
        self.pcie = pcie
        self.software = software

    @property
    def call_us(self) -> float:
        """Host time of the call of a copy."""
        return self.software.copy_us

    def latency_us(self, to_gpu: bool) -> float:
        """Return the time until the first byte of a copy arrives."""
        return self.pcie.one_way_us * (2 if to_gpu else 1)

    def moving_us(self, size: float) -> float:
        """Return the time of ``size`` bytes on the link; ``ValueError`` for less than none."""
        if not size >= 0:
            raise ValueError(f"size must be at least 0, not {size!r}")
        return size / (self.pcie.bandwidth_gb_s * 1e3)
