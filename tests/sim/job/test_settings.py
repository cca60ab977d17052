"""Settings of delivery, and the registers that they set."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from host.data.generator import generate
from host.model import MODELS
from host.samples import concatenate
from host.wire.packets import vectors_that_fit
from rtl.config import preset
from rtl.nic import SmartNic
from sim.job.fit import check_fit
from sim.job.rings import rings_of
from sim.job.settings import COMPLETION_BASE, Runtime, apply_settings
from sim.job.workload import Workload
from sim.nic.build import register_values
from sim.node.step import Step

TINY, MODEL = preset("tiny"), MODELS["kaggle"]


@pytest.mark.parametrize(("settings", "message"), [
    (["deliver=both"], "deliver must be pooled or unique, not 'both'"),
    (["deliver=unique", "interaction=true"], "deliver must be pooled with interaction, not "
                                             "'unique'"),
    (["deliver=unique", "unique_keys=0"], "unique_keys must be above 0 to deliver unique vectors"),
    (["completions=maybe"], "completions must be true or false, not 'maybe'"),
    (["step_timeout=-1"], "step_timeout must be between 0 and 4294967295, not -1"),
    (["step_timeout=4294967296"], "step_timeout must be between 0 and .*, not 4294967296"),
    (["gpu_rings=on-gpu"], "gpu_rings must be true or false, not 'on-gpu'"),
    (["index_timeout=65536"], "index_timeout must be between 0 and 65535, not 65536")])
def test_settings_that_cannot_be(settings, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        apply_settings(TINY, settings)


def test_registers_of_the_delivery():
    """Registers of default settings keep their reset values, and are not written."""
    def values(*settings: str) -> dict[str, int]:
        _, runtime = apply_settings(TINY, list(settings))
        written = register_values(TINY, runtime, MODEL, node=0, nodes=1)
        known = {register.name: register for register in SmartNic(TINY).registers}
        assert all(known[name].low <= value <= known[name].high for name, value in written.items())
        return {name: value for name, value in written.items() if name not in plain}

    plain = register_values(TINY, Runtime(), MODEL, node=0, nodes=1)
    assert values("index_timeout=9", "step_timeout=9", "completion_flush=false") == {}
    assert values("output_queues=true") == {"output_queues": 1}
    assert values("deliver=unique", "index_timeout=9") == {
        "unique_delivery": 1, "index_timeout": 9}
    assert values("completions=true", "completion_flush=false", "step_timeout=9") == {
        "completion_flush": 0, "completion_base_low": COMPLETION_BASE & 0xFFFF_FFFF,
        "completion_base_high": COMPLETION_BASE >> 32, "step_timeout": 9}
    assert COMPLETION_BASE % (4 * 128) == 0


def test_registers_of_the_rings():
    """A list has at most as many requests as a packet has vectors, and fits a slot."""
    known = {register.name: register for register in SmartNic(TINY).registers}
    for dimension in (4, 16, 64):
        model = replace(MODEL, dimension=dimension, bottom=(dimension,))
        plain, *others = (register_values(TINY, apply_settings(TINY, list(settings))[1], model,
                                          node=0, nodes=1)
                          for settings in ((), ("gpu_rings=true",),
                                           ("gpu_rings=true", "request_batch=2")))
        assert plain["request_batch"] == 128 and "gpu_rings" not in plain
        assert [values["request_batch"] for values in others] == [
            min(128, vectors_that_fit(dimension, TINY.host_payload_beats)), 2]
        for values in others:
            assert all(known[name].low <= value <= known[name].high
                       for name, value in values.items())
            assert values["gpu_rings"] == 1
    lists, vectors = rings_of(TINY)
    for name, ring in (("list", lists), ("vector", vectors)):
        assert ring.base == (values[f"{name}_ring_high"] << 32 | values[f"{name}_ring_low"])
        assert ring.index == (values[f"{name}_ring_high"] << 32 | values[f"{name}_index_low"])
        assert ring.slots == 1 << values[f"{name}_ring_shift"]
        assert ring.slot_bytes == 1 << values[f"{name}_slot_shift"]
    assert lists.slot_bytes >= 64 * (1 + TINY.net_payload_beats)
    assert vectors.slot_bytes >= 64 * TINY.host_payload_beats
    ends = sorted((at, at + size) for ring in (lists, vectors) for at, size in (
        (ring.base, ring.slots * ring.slot_bytes), (ring.index, 4)))
    assert all(end <= begin for (_, end), (begin, _) in pairwise(ends))


def test_no_more_steps_than_slots():
    config, on = TINY.with_fields(completion_slots=4), Runtime(completions=True)
    check_fit(config, MODEL, on, Workload(in_flight=4))
    check_fit(config, MODEL, Runtime(), Workload(in_flight=5))
    with pytest.raises(ValueError, match=r"^in_flight must be at most 4, the completion_slots of "
                                         r"the NIC, not 5$"):
        check_fit(config, MODEL, on, Workload(in_flight=5))


def test_no_more_slots_in_a_share_than_indices():
    samples = concatenate(generate(MODEL, 2 * 2520 + 2, 1))
    Step.of(0, 0, samples.slice(0, 2 * 2520), 2, (26, 16), unique=True)
    Step.of(0, 0, samples, 2, (26, 16))
    with pytest.raises(ValueError, match=r"^slots of a share must be at most 65534 .*, not 65546"):
        Step.of(0, 0, samples, 2, (26, 16), unique=True)


def test_queries_of_a_unique_step_end():
    samples = next(generate(MODEL, 5, 1))
    plain, unique = (Step.of(0, 0, samples, 2, (26, 16), unique=on) for on in (False, True))
    for node in range(2):
        assert np.array_equal(unique.queries(node)[:-2], plain.queries(node))
