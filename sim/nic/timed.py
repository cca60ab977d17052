"""The sampling interval of CPU time measurements."""

__all__ = ["TIMED"]

TIMED = 8
"""Every ``TIMED``-th quantum is timed, because reading a thread's CPU clock is slow."""
