"""``swept`` of the blocks of a NIC, and ``swept`` and ``working`` of a NIC under foreign
traffic."""

import numpy as np
import pytest
from amaranth.hdl import Module, Signal

from rtl.config import preset
from rtl.nic import SmartNic
from rtl.reset import LEAVES, ResetBranch
from sim.nic.build import nic_model
from tests.support import simulate

CONFIG = preset("tiny").with_fields(dot_units=0)
NIC = SmartNic(preset("tiny").with_fields(training=True, link=True))
HELD = 2
"""Most cycles from the end of a sweep to ``swept``: registers of the report and the branch."""
STARTS = {"gpu_rings": 5}
"""Cycles that a block needs after reset for another reason than a sweep, here for its pipeline."""
FAST = ("net_receiver", "query_checker", "lookup_receiver", "vector_packager", "request_packager")


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=[] if name in FAST else [pytest.mark.slow]) for name in NIC.blocks])
def test_a_block_that_is_not_idle_after_reset_sweeps(name):
    """A block that is busy without input for longer than ``swept`` is 0 hides a sweep."""
    block, m = NIC.blocks[name], Module()
    m.submodules.branch = branch = ResetBranch(block, Signal(LEAVES))
    used, found = Signal(), {}
    m.d.sync += used.eq(~used)

    async def bench(ctx):
        cycle = 0
        while len(found) < 2:
            for what, signal in (("idle", block.idle), ("swept", branch.swept)):
                if ctx.get(signal):
                    found.setdefault(what, cycle)
            await ctx.tick()
            cycle += 1

    simulate(m, bench, limit=2000)
    idle = found["idle"] if found["idle"] > STARTS.get(name, 0) else 0
    assert idle - 1 <= found["swept"] <= idle + HELD


def foreign(beats: int, gap: int, cycles: int):
    """Return broadcast ARP frames of ``beats`` beats with ``gap`` cycles between them."""
    words, starts = [], np.arange(0, cycles, beats + gap)
    first = 0xFFFFFFFFFFFF | 0x0608 << 96
    for beat in range(beats):
        value = (beat or first) | ((1 << 64) - 1) << 512 | (beat == beats - 1) << 576
        words.append(np.frombuffer(value.to_bytes(76, "little"), "<u4"))
    times = (starts[:, None] + np.arange(beats)).reshape(-1)
    return np.tile(np.array(words), (len(starts), 1)), times.astype(np.uint64)


@pytest.mark.parametrize("beats, gap", [(1, 0), (1, 1), (1, 5), (24, 0), (24, 3)])
def test_foreign_frames_do_not_delay_the_end_of_a_reset(beats, gap):
    """``idle`` stays 0 in this traffic."""
    signals = ("swept", "working", "idle")
    risen = []
    for frames in (None, foreign(beats, gap, 3000)):
        engine, registers = nic_model(CONFIG, "verilator").instance(skip=False)
        if frames is not None:
            engine.push("net_rx", *frames)
        seen = []
        for cycle in range(1, 1000):
            engine.run(cycle)
            seen.append([engine.get_signal(name) for name in signals])
        swept, working, idle = np.array(seen).T
        risen.append((swept.argmax(), working.argmin()))
        assert (np.diff(swept) >= 0).all() and (np.diff(working) <= 0).all()
        assert idle.any() == (frames is None)
    assert risen[0] == risen[1] and 0 < risen[0][0] <= risen[0][1]
    counters = registers.counters()
    assert counters["net_receiver.foreign"] > 0


def test_work_of_the_host_counts():
    """A packet of the host is work until its answer, an error, has left."""
    engine, _ = nic_model(CONFIG, "verilator").instance(skip=False)
    engine.push("net_rx", *foreign(1, 2, 4000))
    engine.run(500)
    assert engine.get_signal("swept") and not engine.get_signal("working")
    beats = np.zeros((2, 19), np.uint32)
    beats[:, 16:18], beats[1, 18] = 0xFFFFFFFF, 1
    engine.push("host_rx", beats)
    working, left = [], None
    for cycle in range(501, 2500):
        engine.run(cycle)
        working.append(engine.get_signal("working"))
        cycles = engine.pop("host_tx")[1]
        left = cycles[-1] if len(cycles) else left
    assert left is not None
    end = 501 + int(np.flatnonzero(working)[-1])
    assert working[0] == 1 and not working[-1]
    # Between the packet and its answer the NIC may wait for a timeout, without any movement.
    assert end >= left
