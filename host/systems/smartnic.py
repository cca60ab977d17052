"""Systems with a SmartNIC between each host, its GPU and the network (paper, section 4)."""

from collections.abc import Sequence
from math import ceil

from host.devices.cost import Cost
from host.devices.embedding_work import gather
from host.systems.charge import charge
from host.systems.dense import Dense
from host.systems.devices import Devices
from host.systems.nic_times import NicTimes
from host.systems.options import StepOptions
from host.systems.program import Program
from host.systems.stage import Part, Step
from host.systems.tables import row_updates, vector_bytes
from host.systems.workload import Workload

__all__ = ["smartnic"]

_TURNS = 8
"""Parts, of a microsecond or more, in which the NIC uses a link."""
_LIST_RECORD = 8
"""Bytes of a row in a request list (``rtl.formats.LookupRecord``)."""


def smartnic(w: Workload, d: Devices, options: StepOptions, nic: NicTimes,
             computation: bool = False, local_cache: bool = False) -> Step:
    """Return a step of a system with SmartNICs.

    The host's thread rings a doorbell, and its NIC fetches the queries. NICs exchange lookups and
    vectors; GPUs gather the rows that no cache holds, by launches of the NIC's driver, which has a
    thread of its own. Meanwhile the GPU gets the dense features and runs the bottom MLP. Pooled
    vectors land in GPU memory, and the host is notified as at the end of a kernel.

    ``computation``: in inference, NICs do the interaction once the bottom MLP is done: the host
    waits for the GPU and rings, and the NIC fetches the dense vectors by DMA. In training, they
    reduce gradients, exchange them and update rows. Without it in training, NICs carry gradients of
    bags from GPU to GPU as bytes (analytical), and GPUs work as in ``bl-paper``; updated rows are
    then written to the ``local_cache``, if there is one. ``nic``: times of the simulated NICs; the
    step holds the resource ``nic`` for its interval.
    """
    return _SmartNic(w, d, options, nic, computation, local_cache).build()


class _SmartNic:
    """A step under construction."""

    def __init__(self, w: Workload, d: Devices, options: StepOptions, nic: NicTimes,
                 computation: bool, local_cache: bool):
        self._w, self._d, self._options, self._nic = w, d, options, nic
        self._computation, self._local_cache = computation, local_cache
        self._interacts = computation and not options.training
        self._program, self._dense = Program(d), Dense(w, d.kernels)
        self._step = self._program.step

    def build(self) -> Step:
        """Return the step."""
        program, dense = self._program, self._dense
        answered, hold = self._lookups()
        share = float(4 * self._w.model.dense * self._w.samples.max())
        bottom = program.kernels([dense.bottom()], program.copy("dense features", share, ()))
        if self._interacts:
            told = program.tell_nic(program.wait(bottom), "dense vectors are there")
            # Either lookups or dense vectors come last; the rest is done behind them.
            streamed = self._held("interaction on the NIC", "irregular",
                                  self._nic.phases.get("irregular", 0.0), hold, answered)
            behind = self._step.add("interaction on the NIC", "irregular",
                                    self._nic.interaction_us, after=told)
            answered = (*streamed, behind)
        at = program.wait(answered, "answers")
        at = program.kernels(dense.top(not self._interacts), (*at, *bottom))
        if not self._options.training:
            dense.predictions(program, at)
            return self._step
        at = program.kernels(dense.backward(), at)
        ready = program.wait(at, "gradients")
        rows = self._nic_update(ready) if self._computation else self._gpu_update(ready)
        weights = dense.learn(program, at, self._options)
        program.wait((*rows, *weights))
        return self._step

    def _lookups(self) -> tuple[tuple[int, ...], float]:
        """Add the forward pass of the NICs, and what it needs of other resources meanwhile; return
        also for how much longer the NIC is held."""
        nic, step = self._nic, self._step
        rung = self._program.tell_nic(name="queries")
        # The NIC reads the queries in host memory; their way to it is part of its times.
        asked = (step.add("queries", "overhead", self._d.pcie.one_way_us, after=rung),)
        phases = {name: us for name, us in nic.phases.items()
                  if not (self._interacts and name == "irregular")}
        hold, at, beside = nic.interval_us, asked, list(self._beside(asked))
        for phase, us in phases.items():
            if phase == "embedding_lookup":
                beside.append(step.add("gathers", "overhead", us, *self._gathers(us), after=at))
            at = self._held(phase, phase, us, hold, at)
            hold = max(0.0, hold - us)
        return (*at, *beside), hold

    def _held(self, name: str, phase: str, us: float, hold: float,
              after: tuple[int, ...]) -> tuple[int, ...]:
        """Add ``us`` of the NIC, which holds it for the first ``hold`` of them."""
        held = min(us, hold)
        for part, resources in ((held, ("nic",)), (us - held, ())):
            if part > 0:
                after = (self._step.add(name, phase, part, *resources, after=after),)
        return after

    def _gathers(self, us: float) -> tuple[Part, ...]:
        """Return what the gathers occupy of the GPU, spread over the ``us`` that they are part of.
        """
        nic, d = self._nic, self._d
        if not nic.gathers or not us:
            return ()
        rows = max(1, round(nic.gathered / nic.gathers))
        each = d.gpu.kernels(gather(rows, rows, self._w.model.dimension))
        part = nic.gathers * each.us / us
        return (Part("gpu", min(1.0, part * each.share)),
                Part("gpu_memory", min(1.0, part * each.memory_share)))

    def _beside(self, after: Sequence[int]) -> tuple[int, ...]:
        """Add launches, PCIe and the network, whose times the NIC's own include."""
        nic, d, size = self._nic, self._d, vector_bytes(self._w)
        most = int(self._w.samples.max())
        results = 4 * most * (self._w.model.interaction_width if self._interacts
                              else self._w.model.tables * self._w.model.dimension)
        dense = size * most if self._interacts else 0
        link = nic.sent_bytes / (d.network.bandwidth_gbit_s / 8 * 1e3)
        used = {"driver": nic.launches * d.software.launch_call_us,
                "pcie_in": d.copies.moving_us(_LIST_RECORD * nic.gathered + results),
                "pcie_out": d.copies.moving_us(size * nic.gathered + dense), "link": link}
        return tuple(self._in_turns(f"NIC's use of {name}", us, name, after)
                     for name, us in used.items() if us)

    def _in_turns(self, name: str, us: float, resource: str, after: Sequence[int]) -> int:
        """Hold a resource for ``us`` in parts, between which others may have it, as links take
        packets of several senders in turn."""
        parts = min(_TURNS, ceil(us))
        at = tuple(after)
        for _ in range(parts):
            at = (self._step.add(name, "overhead", us / parts, resource, after=at),)
        return at[0]

    def _nic_update(self, after: Sequence[int]) -> tuple[int, ...]:
        """Add the NIC's update: gradients are fetched, reduced, exchanged and applied."""
        nic, w = self._nic, self._w
        at = self._program.tell_nic(after, "gradients are there")
        moving = min(nic.update_us, self._link_us(w.requested))
        return (charge(self._step, "rows", "backward_all_to_all",
                       Cost(nic.update_us, 0.0, {"nic": nic.update_us, "link": moving}), at),)

    def _gpu_update(self, after: Sequence[int]) -> tuple[int, ...]:
        """Add the GPUs' update: NICs carry bag gradients to the owners' GPUs, which apply them."""
        w, d, program = self._w, self._d, self._program
        at, size = program.tell_nic(after, "gradients are there"), vector_bytes(w)
        if w.nodes > 1:
            link = self._link_us(w.bags)
            # The slowest of three consecutive links: PCIe at either end, the network between.
            crossing = max(link, d.copies.moving_us(float(size * max(
                w.bags.sum(axis=1).max(), w.bags.sum(axis=0).max()))))
            latency = 2 * d.pcie.one_way_us + d.network.one_way_us
            at = (charge(self._step, "gradients", "backward_all_to_all",
                         Cost(latency + crossing, 0.0, {"nic": crossing, "link": link}), at),)
            at = program.wait(at, "gradients of bags")
        at = program.kernels([("row update", "backward_all_to_all", row_updates(
            w, d.gpu, d.software.fused_embedding))], at)
        if not self._local_cache:
            return at
        at = program.tell_nic(program.wait(at, "rows are there"), "rows to the cache")
        return (self._step.add("rows to the cache", "backward_all_to_all",
                               d.pcie.one_way_us + d.copies.moving_us(float(size * w.unique.max())),
                               "pcie_out", after=at),)

    def _link_us(self, vectors) -> float:
        """Return the time of the busiest link for ``vectors`` ``[nodes, nodes]``."""
        return float(self._d.host_mpi.topology.link_us(vector_bytes(self._w) * vectors).max())
