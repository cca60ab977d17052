"""EN with values of 16 bits between nodes: the kernels that convert, and bytes over PCIe."""

from dataclasses import replace

import pytest

from host.devices.embedding_work import expanded_interaction, gather, narrowed
from host.devices.gpu_time import GpuTime
from host.model import Model
from host.systems import Delivery, EnTuning, NicTimes, StepOptions, en, schedule
from host.systems.tables import vector_bytes
from tests.host.systems.simple import TUNED, devices, workload
from tests.host.systems.test_en import slow_pcie

WIDE = Model((10, 10), 32, 2, (32,), (1,))
NIC = NicTimes({"embedding_lookup": 5.0}, interval_us=6.0, launches=2.0, gathers=2.0, gathered=8.0,
               pooled_launches=1.0, pooled_rows=6.0, pooled_bags=2.0)
OWN = Delivery(slots=6, bags=2, vectors=6, copied_slots=3, copied_bags=1)


def busy(wire: str, own: Delivery = OWN, **gpu: float) -> dict:
    d = slow_pcie(devices(software=TUNED))
    d = replace(d, gpu=GpuTime(replace(d.gpu.gpu, **gpu), TUNED))
    tuning = EnTuning(ring=False, pool="owner", wire=wire, copied_rows=10)
    return schedule([en(workload(model=WIDE), d, StepOptions(), NIC, own, tuning)]).busy


def test_a_gather_writes_half_the_bytes_and_an_expansion_reads_half():
    wide, narrow = gather(5, 2, 32), gather(5, 2, 32, written=16)
    assert wide.streamed_bytes - narrow.streamed_bytes == 2 * 2 * 32
    assert (narrow.rows, narrow.row_bytes) == (wide.rows, wide.row_bytes)
    assert narrow.flops - wide.flops == 2 * 32
    read = narrowed(wide, 4, 16)
    assert (read.rows, read.more_rows) == (1, ((4, 64),))
    assert read.flops - wide.flops == 4 * 32
    assert wide.row_traffic(32) - read.row_traffic(32) == 4 * 64
    assert narrowed(wide, 4, 32) is narrowed(wide, 0, 16) is wide
    for level in (0, 2):
        first, *_ = expanded_interaction(4, WIDE, 9, 3, 18, level)
        assert narrowed(first, 6, 16).row_traffic(1) == 3 * 128 + 6 * 64


def test_gathered_rows_and_pooled_bags_cross_pcie_with_half_the_bytes():
    wide, narrow = busy("float32"), busy("float16")
    assert wide["pcie_out"] - narrow["pcie_out"] == pytest.approx(64 * (8 + 2))
    for name in ("cpu", "driver", "pcie_in", "nic"):
        assert narrow[name] == pytest.approx(wide[name]), name
    w = workload(model=WIDE)
    assert (vector_bytes(w), vector_bytes(w, "float16")) == (128, 64)
    # Vectors of a NIC have 4 lanes at least.
    assert vector_bytes(workload(), "float16") == vector_bytes(workload()) == 16


def test_kernels_move_fewer_bytes_of_gpu_memory():
    slow = {"memory_bandwidth_gb_s": 1e-2, "access_bytes": 32}
    wide, narrow = busy("float32", **slow), busy("float16", **slow)
    # Written: 8 rows and 2 bags; read: 6 vectors. Rows are read whole, as are copied tables.
    assert wide["gpu_memory"] > narrow["gpu_memory"]
    copied = Delivery(slots=0, bags=0, vectors=0, copied_slots=9, copied_bags=3)
    saved = [busy("float32", own, **slow)["gpu_memory"] - busy("float16", own, **slow)["gpu_memory"]
             for own in (OWN, copied)]
    assert saved[0] - saved[1] == pytest.approx(6 * 64 / 10)


def test_training_converts_the_gradients_of_all_bags():
    d, w = devices(software=TUNED), workload(model=WIDE)
    nic, tuning = NicTimes(), EnTuning(ring=False, pool="owner")
    found = [en(w, d, StepOptions(training=True), nic, OWN, replace(tuning, wire=wire))
             for wire in ("float32", "float16")]
    wide, narrow = ([stage.name for stage in step.stages] for step in found)
    assert "to the format between nodes" not in wide
    assert narrow.index("to the format between nodes") < narrow.index("gradients are there")


def test_options_with_the_format():
    own = EnTuning(wire="float16")
    assert own.possible() and not own.possible(training=True)
    at_owner = replace(own, ring=False, pool="owner")
    assert at_owner.possible(training=True)
    assert not replace(at_owner, update="nic").possible(training=True)
    assert not replace(own, ring=False, reads=True).possible()
    assert not any(replace(own, deliver=each).possible() for each in ("pooled", "interaction"))
    assert "float16 between nodes" in own.words() and "float32 between" not in EnTuning().in_words()
    with pytest.raises(ValueError, match="wire must be one of float32, float16, int8, not"):
        EnTuning(wire="bfloat16")
