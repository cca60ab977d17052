"""Systems with a SmartNIC between each host, its GPU and the network (paper, section 4)."""

from collections.abc import Sequence

from host.devices.cost import Cost
from host.devices.embedding_work import WEIGHT_BYTES
from host.systems.charge import charge
from host.systems.dense import Dense
from host.systems.devices import Devices
from host.systems.nic_times import NicTimes
from host.systems.nic_use import NicUse, link_us, own_bags
from host.systems.options import KEY_BYTES, StepOptions
from host.systems.program import Program
from host.systems.stage import Step
from host.systems.tables import row_updates, vector_bytes
from host.systems.workload import Workload

__all__ = ["smartnic"]


def smartnic(w: Workload, d: Devices, options: StepOptions, nic: NicTimes,
             computation: bool = False, local_cache: bool = False) -> Step:
    """Return a step of a system with SmartNICs.

    The host thread rings a doorbell, and its NIC fetches the queries. NICs exchange lookups and
    vectors. GPUs gather rows that miss in the caches; the NIC's driver launches these gathers in
    its own thread. Meanwhile the GPU receives the dense features and runs the bottom MLP. Pooled
    vectors arrive in GPU memory, and the host is notified as at the end of a kernel.

    computation: in inference, NICs compute the interaction after the bottom MLP: the host waits for
    the GPU and rings, and the NIC fetches the dense vectors by DMA. In training, NICs reduce
    gradients, exchange them and update rows. Without it, NICs carry bag gradients between GPUs as
    bytes (analytical), and GPUs work as in ``bl-paper``.
    local_cache: whether rows that GPUs updated are written to a local cache.
    nic: times of the simulated NICs. The GPU pools the node's own bags of owner-pooled tables
        behind the input copy. The step holds the resource ``nic`` for its interval.
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
        self._use = NicUse(self._step, d, w, nic)

    def build(self) -> Step:
        """Return the step."""
        program, dense = self._program, self._dense
        answered, hold = self._lookups()
        share = float(4 * self._w.model.dense * self._w.samples.max())
        share += (KEY_BYTES[0] * (self._nic.own_rows + self._nic.own_bags)
                  + WEIGHT_BYTES * self._nic.own_weights)
        copied = program.copy("dense features", share, ())
        bottom = program.kernels([dense.bottom()], copied)
        own = program.kernels(own_bags(self._nic, self._w), copied) if self._nic.own_bags else ()
        if self._interacts:
            told = program.tell_nic(program.wait(bottom), "dense vectors are there")
            # The rest starts after the later of lookups and dense vectors.
            streamed = self._use.held("interaction on the NIC", "irregular",
                                      self._nic.phases.get("irregular", 0.0), hold, answered)
            behind = self._step.add("interaction on the NIC", "irregular",
                                    self._nic.interaction_us, after=told)
            answered = (*streamed, behind)
        at = program.wait(answered, "answers")
        at = program.kernels(dense.top(not self._interacts), (*at, *bottom, *own))
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
        """Add the forward pass of the NICs and its use of other resources.

        Return the last stages, and the further microseconds for which the NIC is held.
        """
        nic, step = self._nic, self._step
        rung = self._program.tell_nic(name="queries")
        # The NIC reads the queries in host memory; its times include this read.
        asked = (step.add("queries", "overhead", self._d.pcie.one_way_us, after=rung),)
        phases = {name: us for name, us in nic.phases.items()
                  if not (self._interacts and name == "irregular")}
        dense = vector_bytes(self._w) * int(self._w.samples.max()) if self._interacts else 0
        return self._use.forward(asked, phases, nic.delivered_bytes, dense)

    def _nic_update(self, after: Sequence[int]) -> tuple[int, ...]:
        """Add the NIC's update: fetch, reduce, exchange and apply gradients."""
        return self._use.update(self._program.tell_nic(after, "gradients are there"))

    def _gpu_update(self, after: Sequence[int]) -> tuple[int, ...]:
        """Add the GPUs' update: NICs carry bag gradients to the owners' GPUs, which apply them."""
        w, d, program = self._w, self._d, self._program
        at, size = program.tell_nic(after, "gradients are there"), vector_bytes(w)
        if w.nodes > 1:
            link = link_us(d, w, w.bags)
            # The slowest of consecutive links: the GPU's, the NIC's, the network, and back.
            out, back = (float(size * w.bags.sum(axis=axis).max()) for axis in (1, 0))
            crossing = max(link, self._nic_moving_us(max(out, back)))
            latency = 2 * d.pcie.one_way_us + d.network.one_way_us
            at = (charge(self._step, "gradients", "backward_all_to_all", Cost(
                latency + crossing, 0.0, {
                    "nic": crossing, "link": link, "pcie_out": d.copies.moving_us(out),
                    "pcie_in": d.copies.moving_us(back)}), at),)
            at = program.wait(at, "gradients of bags")
        at = program.kernels([("row update", "backward_all_to_all", row_updates(
            w, d.gpu, d.software.fused_embedding))], at)
        if not self._local_cache:
            return at
        at = program.tell_nic(program.wait(at, "rows are there"), "rows to the cache")
        moved = float(size * w.unique.max())
        return (charge(self._step, "rows to the cache", "backward_all_to_all", Cost(
            d.pcie.one_way_us + self._nic_moving_us(moved), 0.0, {
                "nic": self._nic_moving_us(moved), "pcie_out": d.copies.moving_us(moved)}), at),)

    def _nic_moving_us(self, size: float) -> float:
        """Return the time of ``size`` bytes between GPU memory and the NIC, on the slower link."""
        d = self._d
        return max(d.copies.moving_us(size), size / (d.pcie.bandwidth_gb_s * 1e3))
