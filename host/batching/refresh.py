"""When a window is filled again."""

from dataclasses import dataclass

__all__ = ["Refresh"]


@dataclass(frozen=True)
class Refresh:
    """How a window is refilled (paper, section 3.2).

    By default a window is loaded, drained to its last sample, and loaded again. A ``sliding`` one
    gets new samples for those of each mini-batch; a refresh ends this, and it is drained and loaded
    again.

    Members
    -------
    sliding: whether a window gets new samples while it is used.
    downgrade: a refresh is due when a mini-batch's similarity, relative to that of the first after
        the window was loaded, falls below this. A window that is being drained then gives its
        left-over samples in the order in which they arrived. 0 for never.
    wait: a refresh of a sliding window is due when its oldest sample has waited for so many
        mini-batches. None for twice those of a window.

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
