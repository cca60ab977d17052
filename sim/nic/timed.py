"""The sampling interval of CPU time measurements."""

__all__ = ["TIMED"]

TIMED = 8
"""One in this many quanta is timed, because reading a thread's CPU clock is slow."""
