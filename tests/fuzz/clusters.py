"""Clusters for storms: the configuration of their NICs, their work, and the expected results."""

import random
from dataclasses import dataclass, replace
from functools import cache

from rtl.config import preset
from rtl.formats import Opcode
from rtl.network.frame_check import EPOCH, VERDICTS
from sim.job.options import RunOptions
from sim.nic.ports import Observer
from sim.node.errors import ProtocolError
from sim.run.backend import choose
from sim.run.report import failures as run_failures
from sim.run.run import Run
from sim.run.simulation import Simulation
from sim.training.options import TrainOptions
from sim.training.report import failures as training_failures
from sim.training.train import Training
from tests.fuzz.frames import Frames
from tests.fuzz.storms import Storm, stormy
from tests.sim.linked import LINKED
from tests.sim.training.compiled_nics import NIC

__all__ = ["CLUSTERS", "NODES", "Case", "Ended", "drained", "recorded", "storm_of",
           "with_storm"]

NODES = 3
LONGEST = preset("tiny").net_payload_beats
_CYCLES = 5
"""Mean cycles of a storm's frame."""


@dataclass(frozen=True)
class Case:
    """Configuration and work of a cluster's NICs. ``cycles``: approximate cycles of a run per
    sample."""

    settings: tuple[str, ...] = ()
    training: bool = False
    cycles: int = 200

    @property
    def link(self) -> bool:
        """Whether packets are acknowledged."""
        return "link=true" in self.settings


CLUSTERS = {
    "pooled": Case(),
    "link": Case(LINKED),
    "rings": Case((*LINKED, "gpu_rings=true", "deliver=unique", "completions=true")),
    "row reads": Case(("row_reads=true",), cycles=60),
    "training": Case(NIC, training=True, cycles=1000),
    "training, link": Case((*NIC, "link=true"), training=True, cycles=1000),
}
"""Their model, and so their builds, are those of :func:`tests.sim.training.compiled_nics.write`."""


@dataclass(frozen=True)
class Ended:
    """End of a run. ``said``: its errors; ``counters`` of each node."""

    said: list[str]
    counters: list[dict[str, int]]

    def counted(self, node: int) -> int:
        """Return the frames that ``node`` rejected and counted."""
        return sum(self.counters[node].get(f"net_receiver.{name}", 0)
                   for name in (*VERDICTS, EPOCH))

    def taken(self, node: int) -> int:
        """Return the frames that ``node`` took, dropped for lack of room, or recognised as
        duplicates."""
        counters = self.counters[node]
        return counters["net_receiver.packets"] + counters["net_receiver.overruns"] + sum(
            counters.get(f"link_receiver.{name}", 0) for name in ("duplicates", "outside"))


def _execute(case: Case, path: str, samples: int, storm: Storm | None,
             observer: Observer | None = None, **options) -> Ended:
    exchange = None if storm is None else stormy(storm)
    given = {"config": "tiny", "model": path, "nodes": NODES, "samples": samples,
             "mini_batch": 12, "placement": "row", "threads": 1, "settings": case.settings,
             "patience": 50_000} | options
    if case.training:
        learning = TrainOptions.of(**given)
        job = Training(learning, replace(choose(learning.run), exchange=exchange))
        assert job.nics is not None
        simulation, failures = job.nics.simulation, training_failures
    else:
        wanted = RunOptions.of(**{"in_flight": 4} | given)
        job = Run(wanted, replace(choose(wanted), exchange=exchange))
        simulation, failures = job.simulation, run_failures
    try:
        result = job.execute(observer=observer)
        said = failures(result)
        if not result["stuck"] and (storm is None or not any(storm.left.values())):
            return Ended(said, result["counters"])
    except (ProtocolError, ValueError) as error:
        said = [f"its host gave up: {error}"]
    if storm is not None:
        storm.rest([node.engine for node in simulation.cluster.nodes])
    return Ended(said, drained(simulation, "net_rx"))


def drained(simulation: Simulation, stream: str) -> list[dict[str, int]]:
    """Return the counters of NICs after they took all beats of a stream; `AssertionError` if they
    do not."""
    for node in simulation.cluster.nodes:
        for _ in range(1_000):
            if not node.engine.waiting(stream):
                break
            node.engine.run(node.engine.cycle + 1_000)
        assert not node.engine.waiting(stream), f"node {node.number} takes nothing from {stream}"
        node.engine.run(node.engine.cycle + 100)
    return [registers.counters() for registers in simulation.registers]


@cache
def recorded(case: Case, path: str) -> tuple[bytes, ...]:
    """Return the frames between the nodes of an undisturbed run."""
    frames: list[bytes] = []
    ended = _execute(case, path, 60, None, lambda seen: frames.extend(
        frame.tobytes() for *_, frame in seen))
    assert not ended.said and {frame[43] for frame in frames} >= {Opcode.LOOKUPS, Opcode.VECTORS}
    return tuple(frames)


def storm_of(case: Case, path: str, seed: int, frames: int, peer: int | None = None) -> Storm:
    """Return a storm of about ``frames`` frames: of strangers to every node, or of ``peer`` to the
    others."""
    chance = random.Random(seed)
    nodes = [node for node in range(NODES) if node != peer]
    return Storm({node: Frames(recorded(case, path), node, NODES, LONGEST, chance, peer)
                  for node in nodes}, -(-frames // len(nodes)))


def with_storm(case: Case, path: str, storm: Storm, **options) -> Ended:
    """Run a cluster in a storm, about as long as the storm."""
    samples = max(24, _CYCLES * storm.limit // case.cycles)
    return _execute(case, path, samples, storm, **options)
