"""How often the CPU time of a quantum is measured."""

__all__ = ["TIMED"]

TIMED = 8
"""One of so many quanta is timed: the clock of a thread is slow."""
