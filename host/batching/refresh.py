"""Policy of refilling a window."""

from dataclasses import dataclass

__all__ = ["Refresh"]


@dataclass(frozen=True)
class Refresh:
    """Refill policy of a window (paper, section 3.2).

    By default a window is loaded, drained to its last sample, and loaded again. A ``sliding``
    window replaces the samples of each mini-batch by new samples. A refresh ends this: the window
    is drained and loaded again.

    Members
    -------
    sliding: whether the window takes new samples while it is in use.
    downgrade: lower bound of a mini-batch's similarity relative to the first mini-batch of the
        window; a lower similarity causes a refresh. A window that is already being drained then
        yields its remaining samples in arrival order. 0 disables it.
    wait: mini-batches that the oldest sample of a sliding window may wait before a refresh. None
        means twice the mini-batches of a window.

    Raises
    ------
    ValueError
        A value is out of range.
    """

    sliding: bool = False
    downgrade: float = 0.0
    wait: int | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.downgrade <= 1:
            raise ValueError(f"downgrade must be between 0 and 1, not {self.downgrade!r}")
        if self.wait is not None and not self.sliding:
            raise ValueError(f"wait must go with a sliding window, not {self.wait!r} alone")
        if self.wait is not None and self.wait < 1:
            raise ValueError(f"wait must be at least 1, not {self.wait!r}")
