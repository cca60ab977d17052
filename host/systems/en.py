"""``en``: SmartNICs and GPUs without the host thread in the critical path."""

from dataclasses import replace

from host.devices.dense_work import cast
from host.devices.embedding_work import (
    WEIGHT_BYTES,
    expanded_interaction,
    gather,
    narrowed,
    segment_sum,
)
from host.devices.gpu_time import GpuTime
from host.dlrm.codecs import CODECS
from host.dlrm.formats import gradients_beside
from host.systems.delivery import Delivery
from host.systems.dense import Dense
from host.systems.devices import Devices
from host.systems.en_tuning import EnTuning
from host.systems.nic_times import NicTimes
from host.systems.nic_use import NicUse, own_bags
from host.systems.options import StepOptions
from host.systems.program import After, Program, Work
from host.systems.stage import Step
from host.systems.tables import bytes_of, in_shares, value_bits, vector_bytes
from host.systems.workload import Workload
from host.wire.indices import check_share

__all__ = ["beside_ring", "en", "ring_of"]

def beside_ring(d: Devices) -> Devices:
    """Return ``d`` with the part of the GPU that a resident kernel leaves free."""
    return replace(d, gpu=d.gpu.beside_resident)


def ring_of(d: Devices) -> Devices:
    """Return the devices that NICs see if a resident kernel serves their request lists.

    The NIC writes a list and a flag (a short PCIe write), which the kernel polls. The kernel
    gathers with its multiprocessors' share of the memory bandwidth and stores a doorbell to the
    NIC. The NIC then reads the vectors, which takes one way and a round trip. Times of NICs with
    rings include all PCIe traffic.
    """
    gpu = d.gpu.gpu
    share = gpu.resident_multiprocessors / gpu.multiprocessors
    seen = replace(gpu, memory_bandwidth_gb_s=gpu.memory_bandwidth_gb_s * share,
                   poll_us=gpu.poll_us + d.pcie.write_us)
    return replace(d, gpu=GpuTime(seen, d.software))


def en(w: Workload, d: Devices, options: StepOptions, nic: NicTimes, delivery: Delivery,
       tuning: EnTuning) -> Step:
    """Return a step in which the host thread rings a doorbell, launches a graph and waits once.

    The doorbell gives the NIC the address of the queries. The graph contains: a packed copy of the
    GPU's inputs, the bottom MLP, a wait for the NIC's word in GPU memory, the interaction, the top
    MLP, and the copy of the predictions. In training, the graph continues: the last kernel that
    computes bag gradients notifies the NIC, while the bottom MLP runs backward and the gradients of
    the MLPs are all-reduced.

    With another format than float32 between nodes, the kernels that gather rows and pool bags
    convert a value before they write it, and the kernel that expands vectors converts a value that
    it has read. The kernels belong to EN: no kernel only converts. In ``bl-tuned``, the operators
    of a framework write and read float32, and kernels beside them convert. In training, a kernel
    converts the gradients of bags, as in ``bl-tuned``; the row update reads them as if they were
    float32.

    w: mini-batch under the common plan.
    nic: times of NICs with this delivery, up to the last completion word.
    delivery: vectors that NICs deliver, and lookups that the GPU does in copied tables.
    tuning: options of EN.

    Raises ``ValueError`` for contradictory options, and with ``unique`` for a share with more slots
    than indices.
    """
    if not tuning.possible(options.training):
        raise ValueError(f"en must have consistent options, not {tuning.in_words()}")
    if tuning.deliver == "unique":
        check_share(delivery.most("slots"))
    return _En(w, d, options, nic, delivery, tuning).build()


class _En:
    """A step under construction."""

    def __init__(self, w: Workload, d: Devices, options: StepOptions, nic: NicTimes,
                 delivery: Delivery, tuning: EnTuning):
        d = tuning.devices(beside_ring(d) if tuning.ring else d)
        self._w, self._d, self._options, self._nic = w, d, options, nic
        self._delivery, self._tuning = delivery, tuning
        self._samples = int(w.samples.max())
        self._program, self._dense = Program(d, tuning.relaunch), Dense(w, d.kernels)
        self._step = self._program.step
        self._use = NicUse(self._step, d, w, nic, tuning.ring, tuning.reads, tuning.wire)

    def build(self) -> Step:
        """Return the step."""
        program, dense = self._program, self._dense
        rung = program.tell_nic(name="queries")
        # The NIC reads the queries in host memory; its times include this read.
        asked = (self._step.add("queries", "overhead", self._d.pcie.one_way_us, after=rung),)
        copied = program.copy("inputs", self._input_bytes(), ())
        bottom = program.kernels([dense.bottom()], copied)
        own = program.kernels(own_bags(self._nic, self._w, *self._beside_own()), copied)
        there = self._answers(asked, bottom)
        at = program.kernels([*self._interaction(), *dense.top(interact=False)],
                             (*there, *bottom, *own))
        if not self._options.training:
            dense.predictions(program, at)
            return self._step
        at = program.kernels(dense.backward(), at)
        added = at if not self._tuning.bags_once else program.kernels([
            ("gradients of equal bags", "backward_all_to_all", [
                in_shares(self._w, segment_sum, "whole", "distinct_bags")])], at)
        added = self._narrowed(added)
        told = (program.tell_from_gpu(added, "gradients are there") if self._tuning.completion else
                program.tell_nic(program.wait(added, "gradients"), "gradients are there"))
        rows = self._use.update(told)
        program.wait((*rows, *dense.learn(program, at, self._options)))
        return self._step

    def _narrowed(self, after: After) -> After:
        """Convert the gradients of bags to the format between nodes, also those of own bags."""
        bits = CODECS[gradients_beside(self._tuning.wire)].bits
        if self._tuning.wire == "float32":
            return after
        w = self._w.once if self._tuning.bags_once else self._w
        values = int(bytes_of(w, "bags").sum(axis=1).max()) // 4
        return self._program.kernels([("to the format between nodes", "backward_all_to_all", [
            cast(values, CODECS["float32"].bits, bits)])], after)

    def _input_bytes(self) -> float:
        """Return the bytes copied to the GPU: dense features, keys of copied tables and of own
        bags, bag offsets, and the indices of repeated bags.
        """
        own = self._delivery
        return float(4 * self._w.model.dense * self._samples
                     + self._tuning.key_bytes * (own.most("copied_slots", "copied_bags")
                                                 + self._nic.own_rows + self._nic.own_bags
                                                 + self._w.whole.max() * self._tuning.bags_once)
                     + WEIGHT_BYTES * (own.most(*self._weights()) + self._nic.own_weights)
                     + (own.bag_bytes if self._tuning.deliver == "unique" else 0))

    def _weights(self, gathered: bool = True) -> tuple[str, ...]:
        """Return the members of `Delivery` with weights that the GPU reads to pool delivered
        vectors, and rows that it ``gathered`` beside."""
        return (*["copied_weights"] * gathered, *["weights"] * (self._tuning.deliver == "unique"))

    def _answers(self, asked: tuple[int, ...], bottom: After) -> tuple[int, ...]:
        """Add the NICs' work; return the stages after which the GPU may use the delivered data."""
        nic, tuning, program = self._nic, self._tuning, self._program
        interacts = tuning.deliver == "interaction"
        phases = {name: us for name, us in nic.phases.items()
                  if not (interacts and name == "irregular")}
        dense = vector_bytes(self._w) * self._samples if interacts else 0
        answered, hold = self._use.forward(asked, phases, nic.delivered_bytes, dense)
        if interacts:
            name = "dense vectors are there"
            told = (program.tell_from_gpu(bottom, name) if tuning.dense and tuning.completion else
                    program.tell_nic(program.wait(bottom), name))
            streamed = self._use.held("interaction on the NIC", "irregular",
                                      nic.phases.get("irregular", 0.0), hold, answered)
            behind = self._step.add("interaction on the NIC", "irregular", nic.interaction_us,
                                    after=told)
            answered = (*streamed, behind)
        if not tuning.completion:
            return program.wait(answered, "answers")
        return program.wait_for_flag(self._completed(answered))

    def _completed(self, answered: After) -> tuple[int, ...]:
        """Add the completion word and return the stage at which it is in GPU memory.

        Times of NICs already include one flush and the bytes of the word; this adds further flushes
        and the short PCIe write.
        """
        pcie, more = self._d.pcie, self._d.gpu.gpu.flush_reads - 1
        at = tuple(answered)
        if more > 0:
            at = (self._step.add("flush", "overhead", 2 * more * pcie.one_way_us, after=at),)
        return (self._step.add("completion", "overhead", pcie.write_us, "pcie_in", after=at),)

    def _beside_own(self) -> tuple[int, int, int]:
        """Return the rows, bags and weights in copied tables that the kernel of own bags pools as
        well.

        Neither needs the NIC. A fused dot interaction pools bags without a further kernel.
        """
        w, tuning = self._w, self._tuning
        fused = self._d.kernels >= 2 and w.model.interaction == "dot" and not tuning.bags_once
        if not self._nic.own_bags or tuning.deliver != "pooled" or fused:
            return 0, 0, 0
        slots, bags, weights = (self._delivery.most(f"copied_{of}")
                                for of in ("slots", "bags", "weights"))
        return slots, bags, weights

    def _interaction(self) -> list[Work]:
        """Return the kernels that expand delivered vectors and compute the interaction."""
        w, own, deliver = self._w, self._delivery, self._tuning.deliver
        if deliver == "interaction":
            return []
        gathered = not any(self._beside_own())
        index = self._tuning.key_bytes * own.most("copied_slots", "copied_bags") * gathered
        weights = own.most(*self._weights(gathered))
        index += WEIGHT_BYTES * weights
        read = [*["copied_"] * gathered, *[""] * (deliver == "unique")]
        rows, bags = (own.most(*(kind + name for kind in read)) for name in ("slots", "bags"))
        if deliver == "unique":
            index += own.index_bytes + own.bag_bytes
        # Every row that does not come from copied tables has the format between nodes.
        narrow = rows - own.most("copied_slots"), value_bits(w, self._tuning.wire)
        if self._tuning.bags_once:
            new = [narrowed(gather(rows, bags, w.model.width, weights=weights), *narrow)]
            copies = [in_shares(w, gather, "whole", "whole")]
            return [*[("expand", "irregular", new)] * (rows > 0),
                    ("vectors of equal bags", "irregular", copies), *self._dense.top()[:1]]
        if not rows:
            return self._dense.top()[:1]
        first, *others = expanded_interaction(
            self._samples, w.model, rows, bags, index, self._d.kernels)
        return [("expand and interaction", "irregular", (narrowed(first, *narrow), *others))]
