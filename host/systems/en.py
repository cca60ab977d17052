"""``en``: SmartNICs with GPUs whose host's thread is out of the loop."""

from dataclasses import replace

from host.devices.embedding_work import expanded_interaction
from host.devices.gpu_time import GpuTime
from host.systems.delivery import Delivery
from host.systems.dense import Dense
from host.systems.devices import Devices
from host.systems.en_tuning import EnTuning
from host.systems.nic_times import NicTimes
from host.systems.nic_use import NicUse
from host.systems.options import StepOptions
from host.systems.program import After, Program, Work
from host.systems.stage import Step
from host.systems.tables import INDEX, vector_bytes
from host.systems.workload import Workload
from host.wire.indices import check_share

__all__ = ["beside_ring", "en", "ring_of"]

def beside_ring(d: Devices) -> Devices:
    """Return devices whose GPU is without what a resident kernel keeps, at all times: its
    multiprocessors, and as large a share of the memory's rate. What ``gpu`` and ``gpu_memory`` then
    are, is what is left of them."""
    gpu = d.gpu.gpu
    left = gpu.multiprocessors - gpu.resident_multiprocessors
    if left < 1:
        raise ValueError(f"resident_multiprocessors must be below the {gpu.multiprocessors} of the "
                         f"GPU, not {gpu.resident_multiprocessors!r}")
    share = left / gpu.multiprocessors
    rest = replace(gpu, multiprocessors=left, float32_tflops=gpu.float32_tflops * share,
                   memory_bandwidth_gb_s=gpu.memory_bandwidth_gb_s * share)
    return replace(d, gpu=GpuTime(rest, d.software))


def ring_of(d: Devices) -> Devices:
    """Return devices as NICs see them whose lists a resident kernel serves.

    A list is followed by a flag, a short write of the card, which the kernel polls. It gathers at
    its multiprocessors' share of the memory's rate, and tells the NIC by a store, behind which the
    NIC reads the vectors: one way, and a round trip in which the vectors come. All that crosses
    PCIe is part of the times of NICs that have the rings.
    """
    gpu = d.gpu.gpu
    share = gpu.resident_multiprocessors / gpu.multiprocessors
    seen = replace(gpu, memory_bandwidth_gb_s=gpu.memory_bandwidth_gb_s * share,
                   poll_us=gpu.poll_us + d.pcie.write_us)
    return replace(d, gpu=GpuTime(seen, d.software))


def en(w: Workload, d: Devices, options: StepOptions, nic: NicTimes, delivery: Delivery,
       tuning: EnTuning) -> Step:
    """Return a step of a system with SmartNICs that needs the host's thread for a doorbell, a graph
    and one wait, with what ``tuning`` has of it.

    The thread tells the NIC where the queries are and launches the graph of the mini-batch: a
    packed copy of what the GPU needs, the bottom MLP, a wait for the NIC's word in GPU memory, the
    interaction with what NICs deliver, the top MLP, and the copy of the predictions. In training
    the graph goes on: the last kernel that makes gradients of bags tells the NIC of them, while the
    bottom MLP goes back and the gradients of the MLPs are summed.

    ``w``: the mini-batch under the plan of all systems. ``delivery``: what NICs deliver of it, and
    what the GPU looks up in copies. ``nic``: times of the NICs that deliver it so, to the last
    word that they write with completions.

    Raises ``ValueError`` for options that do not go together, and for more slots of a share than
    there are indices where each different vector comes once.
    """
    if not tuning.possible(options.training):
        raise ValueError(f"en must have options that go together, not {tuning.in_words()}")
    if tuning.deliver == "unique":
        check_share(delivery.slots)
    return _En(w, d, options, nic, delivery, tuning).build()


class _En:
    """A step under construction."""

    def __init__(self, w: Workload, d: Devices, options: StepOptions, nic: NicTimes,
                 delivery: Delivery, tuning: EnTuning):
        d = beside_ring(d) if tuning.ring else d
        self._w, self._d, self._options, self._nic = w, d, options, nic
        self._delivery, self._tuning = delivery, tuning
        self._samples = int(w.samples.max())
        self._program, self._dense = Program(d, tuning.relaunch), Dense(w, d.kernels)
        self._step = self._program.step
        self._use = NicUse(self._step, d, w, nic, tuning.ring, tuning.reads)

    def build(self) -> Step:
        """Return the step."""
        program, dense = self._program, self._dense
        rung = program.tell_nic(name="queries")
        # The NIC reads the queries in host memory; their way to it is part of its times.
        asked = (self._step.add("queries", "overhead", self._d.pcie.one_way_us, after=rung),)
        copied = program.copy("inputs", self._input_bytes(), ())
        bottom = program.kernels([dense.bottom()], copied)
        there = self._answers(asked, bottom)
        at = program.kernels([*self._interaction(), *dense.top(interact=False)], (*there, *bottom))
        if not self._options.training:
            dense.predictions(program, at)
            return self._step
        at = program.kernels(dense.backward(), at)
        told = (program.tell_from_gpu(at, "gradients are there") if self._tuning.completion else
                program.tell_nic(program.wait(at, "gradients"), "gradients are there"))
        rows = self._use.update(told)
        program.wait((*rows, *dense.learn(program, at, self._options)))
        return self._step

    def _input_bytes(self) -> float:
        """Return the bytes of the copy to the GPU: dense features, keys of its own tables, and
        what it needs to pool."""
        own = self._delivery
        return float(4 * self._w.model.dense * self._samples
                     + INDEX * (own.copied_slots + own.copied_bags)
                     + (own.bag_bytes if self._tuning.deliver == "unique" else 0))

    def _answers(self, asked: tuple[int, ...], bottom: After) -> tuple[int, ...]:
        """Add the NICs' work; return when the GPU may use what they delivered."""
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
        """Add what the NIC's word takes beyond the times of NICs, which include a flush and the
        word's bytes: a short write of the card. Return when it is in GPU memory."""
        pcie, more = self._d.pcie, self._d.gpu.gpu.flush_reads - 1
        at = tuple(answered)
        if more > 0:
            at = (self._step.add("flush", "overhead", 2 * more * pcie.one_way_us, after=at),)
        return (self._step.add("completion", "overhead", pcie.write_us, "pcie_in", after=at),)

    def _interaction(self) -> list[Work]:
        """Return the expansion of what was delivered, and the interaction."""
        w, own, deliver = self._w, self._delivery, self._tuning.deliver
        if deliver == "interaction":
            return []
        rows, bags, index = own.copied_slots, own.copied_bags, INDEX * (
            own.copied_slots + own.copied_bags)
        if deliver == "unique":
            rows, bags = rows + own.slots, bags + own.bags
            index += own.index_bytes + own.bag_bytes
        if not rows:
            return self._dense.top()[:1]
        return [("expand and interaction", "irregular", expanded_interaction(
            self._samples, w.model, rows, bags, index, self._d.kernels))]
