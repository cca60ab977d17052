"""What the timing models say of the GPU's halves of EN and ``bl-tuned`` as graphs."""

from collections.abc import Sequence
from dataclasses import dataclass

from host.calibrate.gpu.items.en import ANSWER_US, CASES, HALVES, IN_FLIGHT, PER_GRAPH
from host.calibrate.gpu.profiles import Profiles
from host.calibrate.reading import Book
from host.devices import dense_work, embedding_work
from host.devices.copies import CopyTime
from host.devices.gpu_time import GpuTime
from host.devices.operation import Operation
from host.model import MODELS, Model

__all__ = ["GraphModel", "halves"]


def halves(found: Profiles, book: Book) -> list[tuple[str, str, float]]:
    """Return name, reading and modelled microseconds of all that the item ``en`` measures.

    What a kernel that polls takes is another reading of ``book``; without it, what follows from it
    is left out.
    """
    polled = book.readings.get("release.poll_us")
    seen, said = polled and polled.value, []
    for name, samples, _ in CASES:
        for kind in HALVES:
            half = GraphModel(found, MODELS[name], samples, kind == "en", seen)
            for each in PER_GRAPH:
                times = {"call": half.call_us(each), "replay": half.replay_us(each),
                         "interval": half.interval_us(each), "alone": half.alone_us(),
                         "latency": half.latency_us()}
                said += [(f"{kind} {name} {samples} {what}, {each} a graph",
                          f"en.{name}.{samples}.{kind}.{each}.{what}_us", us)
                         for what, us in times.items() if us is not None]
    return said


@dataclass(frozen=True)
class GraphModel:
    """Graphs of the GPU's half of a mini-batch, with kernels as :mod:`host.systems` charges them.

    Members: ``found``, profiles; ``model``, ``samples``; ``waits``: EN, not ``bl-tuned``;
    ``seen_us``, from the host's store of a word until it sees the store of a kernel behind one that
    polls, None where that is not known. All results are microseconds.
    """

    found: Profiles
    model: Model
    samples: int
    waits: bool
    seen_us: float | None

    @property
    def _keys(self) -> int:
        return self.samples * self.model.tables

    @property
    def _bottom(self) -> tuple[Operation, ...]:
        return dense_work.mlp(self.samples, self.model.bottom_layers, 1)

    @property
    def _lookup(self) -> tuple[Operation, ...]:
        keys, model = self._keys, self.model
        return () if self.waits else (embedding_work.gather(
            keys, keys, model.dimension, model.tables, fused=True),)

    @property
    def _behind(self) -> tuple[Operation, ...]:
        """What comes behind bottom MLP and vectors, but for the predictions' stores."""
        interaction = (embedding_work.expanded_interaction(
            self.samples, self.model, self._keys, self._keys, 2 * self._keys, 2) if self.waits else
            dense_work.interaction(self.samples, self.model, 2))
        return (*interaction, *dense_work.mlp(self.samples, self.model.top_layers, 1),
                dense_work.elementwise(self.samples, name="sigmoid"))

    @property
    def _stores(self) -> Operation:
        return dense_work.elementwise(self.samples, name="stores")

    @property
    def _kernels(self) -> tuple[Operation, ...]:
        return (*self._bottom, *self._lookup, *self._behind, self._stores)

    def _us(self, operations: Sequence[Operation]) -> float:
        return sum(map(self._gpu.work_us, operations))

    @property
    def _gpu(self) -> GpuTime:
        return GpuTime(self.found.gpu, self.found.tuned)

    @property
    def _path(self) -> float:
        """A branch alone, from its copy's begin to its stores, if words are there."""
        copies = CopyTime(self.found.pcie, self.found.tuned)
        size = 4 * self.samples * self.model.dense + (0 if self.waits else 8 * self._keys)
        return (copies.latency_us(to_gpu=True) + copies.moving_us(size)
                + max(self._us(self._bottom), self._us(self._lookup))
                + self._us((*self._behind, self._stores)))

    @property
    def _fill(self) -> float:
        """A branch where all kernels of all branches fit side by side as their shares say."""
        gpu = self._gpu
        return max(sum(gpu.share(work) * gpu.work_us(work) for work in self._kernels),
                   sum(map(gpu.memory_us, self._kernels)))

    def call_us(self, each: int) -> float:
        """Return the host's time of a graph of ``each`` mini-batches."""
        nodes = len(self._kernels) + 1 + self.waits  # a copy and a wait
        return (self.found.tuned.graph_us
                + self.found.tuned.graph_node_us * nodes * (each - 1))

    def replay_us(self, each: int) -> float:
        """Return a mini-batch's part of graphs one behind the other, if words are there."""
        return max(self._path / each, self._fill)

    def alone_us(self) -> float:
        """Return the time from a graph's launch to the sight of its done word."""
        return (self.call_us(1) + self.found.gpu.launch_us + self._path
                + self.found.pcie.one_way_us)

    def latency_us(self) -> float | None:
        """Return the time from the store of the word to the sight of the done word."""
        if self.seen_us is None or not self.waits:
            return None
        return self.seen_us + self._us(self._behind)

    def interval_us(self, each: int) -> float:
        """Return the time from one mini-batch to the next: that of what is busiest."""
        answered = self.latency_us()
        alone = max(self.alone_us(), 0.0 if answered is None else
                    self.call_us(1) + ANSWER_US + answered)
        return max(self.call_us(each) / each, self._fill, alone / IN_FLIGHT)
