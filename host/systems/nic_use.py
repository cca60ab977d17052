"""A step's use of the NICs, and of the resources that the NIC times already contain.

NIC times contain the NIC's own PCIe link; here the GPU's link is charged as well."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil

from host.devices.cost import Cost
from host.devices.embedding_work import gather
from host.devices.operation import Operation
from host.systems.charge import charge
from host.systems.devices import Devices
from host.systems.nic_times import NicTimes, OwnerUpdates
from host.systems.program import Work
from host.systems.stage import Part, Step
from host.systems.tables import value_bits, vector_bytes
from host.systems.workload import Workload
from host.timing.row_reads import answer_bytes

__all__ = ["NicUse", "link_us", "own_bags"]

_TURNS = 8
"""Maximum number of parts into which a NIC's use of a link is divided."""
_LIST_RECORD = 8
"""Bytes of a row in a request list (``rtl.formats.LookupRecord``)."""


class NicUse:
    """Adds the NICs' part to ``step``.

    Parameters
    ----------
    step, d: step and devices of the busiest node.
    w: mini-batch.
    nic: times of its NICs.
    resident: whether a resident kernel gathers. Its multiprocessors and memory bandwidth are
        reserved, and its ring writes are charged.
    reads: whether the NIC reads rows itself: each row is a PCIe completion, without a kernel.
    wire: format of vectors between nodes, in which GPUs write gathered rows and pooled bags.
    """

    def __init__(self, step: Step, d: Devices, w: Workload, nic: NicTimes, resident: bool = False,
                 reads: bool = False, wire: str = "float32"):
        self._step, self._d, self._w, self._nic = step, d, w, nic
        self._resident, self._reads = resident, reads
        self._wire = wire

    def forward(self, after: tuple[int, ...], phases: Mapping[str, float], written: float,
                dense: float = 0.0) -> tuple[tuple[int, ...], float]:
        """Add the forward pass: ``phases``, in microseconds, in sequence, and their use of other
        resources.

        Return the last stages, and the further microseconds for which the NIC is held.

        written: bytes that the NIC writes to GPU memory.
        dense: bytes that the NIC reads from GPU memory, besides rows.
        """
        nic, hold, at = self._nic, self._nic.interval_us, after
        beside = list(self._beside(after, nic.launches, nic.gathers, written, dense, nic.gathered,
                                   nic.sent_bytes, nic.pooled_bags))
        if nic.pooled_launches:  # from the first bags on, while requesters still send bags
            beside.append(self._step.add("bags of other nodes", "overhead", *self._kernels(
                sum(phases.values()), nic.pooled_launches, nic.pooled_rows, nic.pooled_bags,
                nic.pooled_weights, nic.pooled_values),
                after=after))
        for phase, us in phases.items():
            if phase == "embedding_lookup":
                beside.append(self._step.add("gathers", "overhead", *self._gathers(
                    us, nic.gathers, nic.gathered, self._reads), after=at))
            at = self.held(phase, phase, us, hold, at)
            hold = max(0.0, hold - us)
        return (*at, *beside), hold

    def held(self, name: str, phase: str, us: float, hold: float,
             after: tuple[int, ...]) -> tuple[int, ...]:
        """Add ``us`` microseconds of NIC work that hold the NIC for the first ``hold``
        microseconds.
        """
        held = min(us, hold)
        for part, resources in ((held, ("nic",)), (us - held, ())):
            if part > 0:
                after = (self._step.add(name, phase, part, *resources, after=after),)
        return after

    def update(self, told: Sequence[int]) -> tuple[int, ...]:
        """Add the NICs' row update: fetch, reduce, exchange and apply gradients.

        Bags with gradients precede: GPUs update their rows.
        """
        nic, w, size = self._nic, self._nic.reduced or self._w, vector_bytes(self._w)
        after, ends, us = tuple(told), (), nic.update_us
        if nic.owner_updates is not None:
            after, ends = self._owner_updates(told, nic.owner_updates)
            us = max(0.0, us - nic.owner_updates.held_us)
        if nic.reduced is not None and not nic.update_us:
            return ends
        moving = min(us, link_us(self._d, w, w.requested))
        rows = charge(self._step, "rows", "backward_all_to_all",
                      Cost(us, 0.0, {"nic": us, "link": moving}), after)
        kernels, moved = nic.update_launches, nic.updated + nic.missed
        gradients = size * w.bags.sum(axis=1) + _LIST_RECORD * w.lookups.sum(axis=1)
        return (rows, self._step.add("row updates", "overhead", *self._gathers(
            us, kernels, moved), after=after), *self._beside(
            after, 0.0 if self._resident else kernels, kernels,
            (size + _LIST_RECORD) * nic.updated + _LIST_RECORD * nic.missed,
            float(gradients.max()) + size * nic.missed), *ends)

    def _owner_updates(self, told: Sequence[int],
                       gpus: OwnerUpdates) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Add the updates by GPUs; return the stage at which the bags have left the NIC, and the
        last stages.

        The NIC's driver launches the kernel when all bags have arrived.
        """
        step, d, phase, name = self._step, self._d, "backward_all_to_all", "bags with gradients"
        moving = min(gpus.held_us, gpus.link_us)
        sent = charge(step, name, phase, Cost(
            gpus.held_us, 0.0, {"nic": gpus.held_us, "link": moving}), told)
        there = step.add(name, phase, gpus.bags_us - gpus.held_us, after=(sent,))
        at = step.add("row update", "overhead", gpus.call_us(d), "driver", after=(there,))
        at = step.add("row update", "overhead", d.gpu.gpu.launch_us, after=(at,))
        for operation in gpus.kernels:
            each = d.gpu.kernels(operation)
            at = step.add("row update", phase, operation.operators * each.us,
                          Part("gpu", each.share), Part("gpu_memory", each.memory_share),
                          after=(at,))
        end = step.add("rows are written", "overhead", gpus.told_us, after=(at,))
        return (sent,), (end, *self._beside(told, 0.0, 0.0, gpus.written, gpus.read))

    def _gathers(self, us: float, kernels: float, rows: float,
                 reads: bool = False) -> tuple[float, *tuple[Part, ...]]:
        """Return the time in which ``kernels`` that read or write ``rows`` use the GPU, at most
        ``us``, and the shares that they occupy; ``reads``: the NIC reads the rows itself."""
        d = self._d
        if reads and us:
            moved = rows * max(vector_bytes(self._w), d.gpu.gpu.access_bytes)
            return us, Part("gpu_memory", min(1.0, moved / (
                us * d.gpu.gpu.memory_bandwidth_gb_s * 1e3)))
        if not kernels or not us or self._resident:
            return (0.0,)
        return self._kernels(us, kernels, rows, rows)

    def _kernels(self, us: float, kernels: float, rows: float, bags: float,
                 weights: float = 0.0, values: float = 0.0) -> tuple[float, *tuple[Part, ...]]:
        """Return the time in which ``kernels`` that pool ``rows`` of ``values`` to ``bags``, with
        ``weights``, use the GPU, at most ``us``, and the shares that they occupy."""
        width = self._w.model.width
        each = self._d.gpu.kernels(_pooling(
            *(max(1, round(count / kernels)) for count in (rows, bags)), width,
            round(values / rows) if values else width, weights=round(weights / kernels),
            written=value_bits(self._w, self._wire)))
        total = kernels * each.us
        held = min(us, total)
        return held, Part("gpu", min(1.0, total * each.share / held)), Part(
            "gpu_memory", min(1.0, total * each.memory_share / held))

    def _beside(self, after: Sequence[int], launches: float, kernels: float, written: float,
                read: float, rows: float = 0.0, sent: float = 0.0,
                bags: float = 0.0) -> tuple[int, ...]:
        """Add the use of the driver, of the GPU's link and of the network; the NIC times already
        include its duration.

        launches: calls of the driver. kernels: gathers and scatters. written, read: bytes to GPU
        memory and from it. rows: further rows that are read. sent: bytes on the network. bags:
        pooled vectors that are read.
        """
        d, size = self._d, vector_bytes(self._w, self._wire)
        flags = d.pcie.write_us * kernels if self._resident else 0.0
        row = answer_bytes(d.pcie, int(size)) if self._reads else size
        used = {"driver": launches * d.software.launch_call_us,
                "pcie_in": d.copies.moving_us(written) + flags,
                "pcie_out": d.copies.moving_us(row * rows + size * bags + read),
                "link": sent / (d.network.bandwidth_gbit_s / 8 * 1e3)}
        return tuple(self._in_turns(f"NIC's use of {name}", us, name, after)
                     for name, us in used.items() if us)

    def _in_turns(self, name: str, us: float, resource: str, after: Sequence[int]) -> int:
        """Hold a resource for ``us`` in parts, so that other stages can use it in between.

        Links alternate between packets of several senders in this way.
        """
        parts = min(_TURNS, ceil(us))
        at = tuple(after)
        for _ in range(parts):
            at = (self._step.add(name, "overhead", us / parts, resource, after=at),)
        return at[0]


def own_bags(nic: NicTimes, w: Workload, rows: int = 0, bags: int = 0,
             weights: int = 0) -> list[Work]:
    """Return the kernel that pools the node's own bags of owner-pooled tables, and ``bags`` of
    ``rows`` with ``weights`` in other tables on the GPU; empty without own bags.
    """
    if not nic.own_bags:
        return []
    width = w.model.width
    values = (nic.own_values or width * nic.own_rows) + width * rows
    return [("own bags", "embedding_lookup", [_pooling(
        ceil(nic.own_rows) + rows, ceil(nic.own_bags) + bags, width,
        round(values / (nic.own_rows + rows)), fused=True,
        weights=ceil(nic.own_weights) + weights)])]


def _pooling(rows: int, bags: int, width: int, mean: int, written: int = 32,
             **more: int) -> Operation:
    """Return the gather of ``rows`` with ``mean`` values to ``bags``, vectors of ``width`` values.
    """
    found = gather(rows, bags, mean, written=written, **more)
    padding = written * (width - mean) * bags // 8
    return replace(found, streamed_bytes=found.streamed_bytes + padding)


def link_us(d: Devices, w: Workload, vectors) -> float:
    """Return the time of the busiest link for ``vectors``, counts ``[nodes, nodes]``."""
    return float(d.nic_links.link_us(vector_bytes(w) * vectors).max())
