"""Dense vectors that a host sends to its NIC, with hand-made packets."""

from dataclasses import replace

import numpy as np
import pytest

from host.dlrm.dlrm import pooled_reference
from host.dlrm.interaction import ResultLayout, interaction
from host.model import MODELS, Model
from host.samples import Samples
from host.timing.gpu import GpuProfile
from host.wire.packets import header_beat, pack_records, parse_header, records_to_beats
from rtl.config import preset
from rtl.formats import DenseRecord, Opcode
from sim.job.fit import check_fit, config_to_build
from sim.job.settings import Runtime, apply_settings
from sim.job.workload import Workload
from sim.node.dense_vectors import DenseVectors, bottom_operations
from sim.node.events import EventQueue
from sim.node.step import Step, StepResult

GPU = GpuProfile("g", 4.0, 64.0, 64, 1, 1.0, kernel_us=0.0)
"""Launches of 1,000 cycles; 256 bytes and 4,000 operations per cycle."""

DENSE = np.arange(6 * 16, dtype=np.float32).reshape(6, 16)
"""Dense vectors of the samples of a step."""


def _step(samples: int = 6, nodes: int = 2, first: int = 100) -> Step:
    part = Samples(np.zeros((samples, 1), np.float32), np.zeros(samples, np.float32),
                   np.ones((samples, 1), np.int32), np.zeros(samples, np.int32),
                   np.zeros(samples, np.int64))
    return Step.of(3, first, part, nodes, (3, 16), DENSE[:samples])


class _Host:
    """A host that records its packets and their times."""

    def __init__(self, step: Step, node: int = 1, operations: int = 4_000_000):
        self.step, self.events, self.sent = step, EventQueue(), []
        self.silent_after = float("inf")
        self.dense = DenseVectors(
            node, GPU, operations, 24, self.events, find=self._find,
            send=lambda packet, now: self.sent.append((now, packet)),
            awake=lambda end: end if end < self.silent_after else float("inf"))

    def _find(self, sample: int):
        at = sample - self.step.first & 0xFFFFFFFF
        return (self.step, at) if at < len(self.step.samples) else None

    def ask(self, samples, landings, now: float) -> None:
        records = pack_records(DenseRecord, sample=np.array(samples, np.uint64),
                               landing=np.array(landings, np.uint64))
        head = header_beat(Opcode.DENSE_REQUESTS, node=1, step=3, count=len(samples))
        self.dense.take_requests(np.concatenate((head, records_to_beats(records))),
                         parse_header(head[0]), now)

    def run(self) -> None:
        for time, action in self.events.until(float("inf")):
            action(time)


def test_vectors_are_sent_when_the_mlp_has_run():
    step = _step()
    host = _Host(step)
    host.dense.begin(step, 50)  # three samples: ready at 50 + 1000 + 3 * 1000
    host.ask([103, 105], [9, 65535], 60)
    assert host.dense.waiting == 2
    host.run()
    [(time, packet)] = host.sent
    assert time == 4050
    head = parse_header(packet[0])
    assert (head.opcode, head.step, head.count) == (Opcode.DENSE_VECTORS, 3, 2)
    assert packet[1:2].view(np.uint16).reshape(-1)[:2].tolist() == [9, 65535]
    assert packet[2:].view(np.float32).tolist() == DENSE[[3, 5]].tolist()
    assert (host.dense.waiting, host.dense.rows) == (0, 2)


def test_computed_vectors_are_read_at_once():
    step = _step()
    host = _Host(step)
    host.dense.begin(step, 0)
    host.ask([104], [1], 10_000)
    host.run()
    assert host.sent[0][0] == 10_000


def test_sample_numbers_wrap():
    step = _step(first=(1 << 32) - 4)
    host = _Host(step)
    host.dense.begin(step, 0)
    host.ask([1], [7], 0)
    host.run()
    assert host.sent[0][1][2].view(np.float32).tolist() == DENSE[5].tolist()


def test_a_gpu_that_is_silent_sends_nothing():
    step = _step()
    host = _Host(step)
    host.silent_after = 0
    host.dense.begin(step, 0)
    host.ask([103], [1], 0)
    host.run()
    assert not host.sent and host.dense.waiting == 1


@pytest.mark.parametrize(("samples", "message"), [
    ([103, 102], "dense vector of sample 102 was requested by a node that does not hold"),
    ([106], "dense vectors were requested of 1 samples, the first of which is not in flight")])
def test_requests_for_samples_of_other_nodes(samples, message):
    step = _step()
    host = _Host(step)
    host.dense.begin(step, 0)
    with pytest.raises(ValueError, match=message):
        host.ask(samples, [0] * len(samples), 0)


def test_answers_in_parts():
    step = _step()
    beats = np.arange(48, dtype=np.float32).reshape(3, 16)
    assert not step.place(1, 3, 0, beats[:2])
    with pytest.raises(ValueError, match="sample 103 got beats 1 to 2 after 2 beats"):
        step.place(1, 3, 1, beats[1:])
    assert step.place(1, 3, 2, beats[2:])
    assert step.answers[3].tolist() == beats.tolist() and step.left.tolist() == [3, 2]


@pytest.mark.parametrize(("kind", "place"), [("dot", (0, 3)), ("dot", (1, 0)), ("dot", (1, 5)),
                                             ("cat", (0, 3)), ("cat", (1, 15))])
def test_one_bit_is_a_difference(kind, place):
    """Flip one bit in the dense vector, in the rest, or in the zeros after the last value."""
    model = Model((1,), 16, 1, (16,), (1,), interaction=kind)
    step = replace(_step(2, 1), answers=np.zeros((2, 2, 16), np.float32), filled=np.full(2, 2))
    pooled = pooled_reference(step.samples, model, 1)
    step.answers[:] = ResultLayout.of(model).to_beats(interaction(model, DENSE[:2], pooled))
    assert StepResult.judge(step, model, 1) == StepResult(2, 0, 0)
    bits = step.answers.view(np.uint32)
    bits[1, place[0], place[1]] ^= 1
    assert StepResult.judge(step, model, 1) == StepResult(1, 1, 0)


def test_operations_of_the_bottom_mlp():
    assert bottom_operations(MODELS["kaggle"]) == 2 * (13 * 512 + 512 * 256 + 256 * 64 + 64 * 16)


def test_dot_units_are_built_only_if_used():
    config, dot, cat = preset("kaggle"), MODELS["kaggle"], replace(
        MODELS["kaggle"], interaction="cat")
    asked = Workload(settings=("dot_units=4",))
    assert config_to_build(config, dot, Runtime(), Workload()).dot_units == 0
    assert config_to_build(config, dot, Runtime(interaction=True), Workload()) == config
    assert config_to_build(config, cat, Runtime(interaction=True), Workload()).dot_units == 0
    assert config_to_build(config.with_fields(dot_units=4), dot, Runtime(), asked).dot_units == 4


def test_more_than_the_dots_of_a_nic():
    config, on = preset("avazu"), Runtime(interaction=True)
    avazu, kaggle = MODELS["avazu"], MODELS["kaggle"]
    check_fit(config, avazu, on, Workload())
    check_fit(config, kaggle, Runtime(), Workload())
    check_fit(config, replace(kaggle, interaction="cat"), on, Workload())
    with pytest.raises(ValueError, match=r"^interaction_vectors must be at least 27, .* of 26 "
                                         r"tables, not 22$"):
        check_fit(config, kaggle, on, Workload())
    with pytest.raises(ValueError, match=r"^dot_units must be at least 1 for .* dot, not 0$"):
        check_fit(config.with_fields(dot_units=0), avazu, on, Workload())


def test_settings():
    _, runtime = apply_settings(preset("tiny"), ["interaction=true", "interaction_itself=true",
                                                 "result_timeout=0"])
    assert runtime.interaction and runtime.result_timeout == 0
    model = runtime.of_model(MODELS["kaggle"])
    assert (model.interaction_itself, model.interaction_width) == (True, 16 + 378)
    assert Runtime(interaction_itself="false").of_model(model) == MODELS["kaggle"]
    assert Runtime().of_model(model) == model
    for setting, message in (
            ("interaction_itself=1", "interaction_itself must be true, false or model, not '1'"),
            ("interaction=dot", "interaction must be true or false, not 'dot'"),
            ("result_timeout=65536", "result_timeout must be between 0 and 65535, not 65536")):
        with pytest.raises(ValueError, match=message):
            apply_settings(preset("tiny"), [setting])
    with pytest.raises(ValueError, match="interaction_itself must go with the interaction dot"):
        runtime.of_model(replace(MODELS["kaggle"], interaction="cat"))
