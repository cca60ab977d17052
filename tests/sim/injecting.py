"""Frames and messages added to a run's own traffic."""

from collections.abc import Callable, Sequence

import numpy as np

from sim.node.node import Node
from sim.run.run import Run
from tests.rtl.network.frames import Frame


def push(node: Node, stream: str, frame: Frame, cycle: int, cut: int = 0) -> None:
    """Offer ``frame`` without its last ``cut`` beats to input ``stream`` of a node's NIC."""
    beats = frame.beats()
    if cut:
        beats = beats[:-cut]
        beats[-1]["last"] = 1
    words = [np.frombuffer((b["data"] | b["keep"] << 512 | b["last"] << 576 | b["err"] << 577)
                           .to_bytes(76, "little"), "<u4") for b in beats]
    node.engine.push(stream, np.array(words, np.uint32), cycle)


def run_with(job: Run, actions: Sequence[Callable[[Run, int], object]]) -> dict:
    """Return the result of ``job``, calling ``actions[k](run, cycle)`` in the k-th quantum."""
    waiting = list(actions)
    original = job._after_quantum

    def after(cycle: int) -> None:
        original(cycle)
        if waiting:
            waiting.pop(0)(job, cycle)

    job._after_quantum = after
    result = job.execute()
    assert not waiting, "the run ended before everything was injected"
    return result
