"""The engines: equal stimuli give equal beats in equal cycles on all of them."""

import itertools
import os
import signal
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from rtl.stream import SkidBuffer
from sim.engines import ENGINES, RegisterError, load
from sim.engines.engine import RESET_CYCLES
from tests.sim.engine_designs import BEATS, TIMEOUT, UNMAPPED, VERSION, Grouper

COMPILED = ("verilator", "cxxrtl")


@pytest.fixture(scope="module", params=ENGINES)
def grouper(request):
    return load(Grouper(), "grouper", request.param)


def fifo_traffic(count, span, seed=1):
    rng = np.random.default_rng(seed)
    payloads = rng.integers(0, 1 << 32, (count, 17), dtype=np.uint32)
    payloads[:, -1] &= 3
    return payloads, np.sort(rng.integers(0, span, count)).astype(np.uint64)


def run_fifo(engine, traffic, stall, until=3000):
    engine.set_stall("i", 5, stall)
    engine.set_stall("o", 6, stall)
    engine.push("i", *traffic)
    engine.run(until)
    return engine.pop("o")


@pytest.mark.few(2)
@pytest.mark.parametrize("stall", [0.0, 0.4, 0.9])
def test_fifo_agrees(stall):
    traffic = fifo_traffic(120, 300)
    outcomes = []
    for name in ENGINES:
        engine = load(Grouper(), "grouper", name).instance()
        payloads, cycles = run_fifo(engine, traffic, stall)
        assert np.array_equal(payloads, traffic[0])
        assert (cycles >= traffic[1]).all()
        assert engine.cycle == engine.cycles_run + engine.cycles_skipped == 3000
        outcomes.append((cycles.tolist(), engine.cycles_run))
    assert outcomes[0] == outcomes[1] == outcomes[2]


def test_fifo_throughput_and_latency(grouper):
    engine = grouper.instance()
    _, cycles = run_fifo(engine, fifo_traffic(100, 1), 0.0)
    assert np.array_equal(cycles, np.arange(2, 102, dtype=np.uint64))


def test_stalls_differ_by_stream_and_seed(grouper):
    traffic = fifo_traffic(50, 1)
    runs = []
    for seed in (1, 1, 2):
        engine = grouper.instance()
        engine.set_stall("o", seed, 0.5)
        engine.push("i", *traffic)
        engine.run(1000)
        runs.append(engine.pop("o")[1].tolist())
    assert runs[0] == runs[1] != runs[2]
    assert 60 < runs[0][-1] < 200


def test_rate_is_that_of_a_link(grouper):
    payloads, _ = fifo_traffic(64, 1)
    payloads[:, 0] &= ~np.uint32(1)
    payloads[7::8, 0] |= 1  # every eighth beat ends a packet
    engine = grouper.instance()
    engine.set_rate("o", cycles_per_beat=1.5, cycles_per_packet=4.0, last_bit=0)
    engine.push("i", payloads, 0)
    engine.run(2000)
    _, cycles = engine.pop("o")
    starts = 2 + np.array([1.5 * i + 4.0 * (i // 8) for i in range(64)])
    assert np.array_equal(cycles, np.floor(starts).astype(np.uint64))


def test_burst_waits_before_the_link(grouper):
    payloads, _ = fifo_traffic(30, 1)
    engine = grouper.instance()
    engine.set_rate("o", cycles_per_beat=10.0, burst=50.0)
    engine.push("i", payloads, 0)
    engine.run(1000)
    _, cycles = engine.pop("o")
    assert cycles[:6].tolist() == [2, 3, 4, 5, 6, 7]
    assert (np.diff(cycles[7:].astype(np.int64)) == 10).all()
    engine.set_rate("o")
    engine.push("i", payloads, 1000)
    engine.run(2000)
    assert np.array_equal(engine.pop("o")[1], np.arange(1002, 1032, dtype=np.uint64))


def test_a_held_output_gives_nothing_until_it_is_let_go(grouper):
    payloads, _ = fifo_traffic(30, 1)
    engine = grouper.instance()
    engine.push("i", payloads, 0)
    engine.run(10)
    engine.hold("o", 500)
    engine.run(1000)
    beats, cycles = engine.pop("o")
    assert np.array_equal(beats, payloads)
    assert cycles.tolist() == [*range(2, 10), *range(500, 522)]


def test_channels_are_counted_alike():
    """Compare beats, their last cycle, and the state of the streams, on every engine."""
    seen = []
    for name in ENGINES:
        engine = load(Grouper(), "grouper", name).instance()
        assert engine.last_beat is None
        assert engine.channels().last.tolist() == [-1] * 4
        payloads, cycles = fifo_traffic(60, 200)
        engine.push("i", payloads, cycles)
        engine.push("items", np.arange(9, dtype=np.uint32)[:, None], 20)
        engine.hold("o", 150)
        engine.run(140)
        held = engine.channels()
        first = len(engine.pop("groups")[1])
        engine.run(5000)
        end, taken = engine.channels(), engine.pop("o")[1]
        assert end.beats.tolist() == [9, first + len(engine.pop("groups")[1]), 60, 60]
        assert end.last[3] == taken[-1] == engine.last_beat
        assert held.beats[3] == 0 and held.last[3] == -1
        assert (bool(held.valid[3]), bool(held.ready[3])) == (True, False)
        assert not held.valid[2] or not held.ready[2]  # the FIFO of nine is full
        assert not end.valid.any()
        seen.append([part.tolist() for part in (*held, *end)])
    assert seen[0] == seen[1] == seen[2]


def grouper_scenario(engine, quantum):
    rng = np.random.default_rng(7)
    cycles = np.cumsum(rng.choice([1, 2, 5, 90, 700], 120)).astype(np.uint64)
    engine.set_stall("groups", 3, 0.3)
    engine.set_stall("items", 4, 0.3)
    engine.set_rate("groups", 2.25, 6.5, last_bit=78, burst=4)
    engine.push("items", rng.integers(0, 128, (120, 1), dtype=np.uint32), cycles)
    for step in range(20):
        engine.write(TIMEOUT, 5 + 3 * step, 1000 * step)
        engine.read(BEATS, 1000 * step + 400)
    end = int(cycles[-1]) + 1000
    for until in itertools.chain(range(quantum, end, quantum), [end]):
        engine.run(until)
    payloads, taken = engine.pop("groups")
    return payloads.tolist(), taken.tolist(), engine.read_results(), engine.get_signal("beats")


@pytest.mark.thorough
def test_skipping_changes_nothing():
    runs = {}
    for name in ENGINES:
        model = load(Grouper(), "grouper", name)
        for skip, quantum in ((False, 100_000), (True, 100_000), (True, 128), (True, 7)):
            engine = model.instance(skip=skip)
            runs[name, skip, quantum] = grouper_scenario(engine, quantum)
            assert engine.cycles_run + engine.cycles_skipped == engine.cycle
            assert (engine.cycles_skipped > engine.cycle // 2) == skip
    first = runs["pysim", False, 100_000]
    assert len(first[0]) > 20 and first[3] == 120 and len(first[2]) == 20
    assert any(row[2] >> 6 & 0xFF for row in first[0])
    for key, run in runs.items():
        assert run == first, key


@pytest.mark.thorough
@pytest.mark.parametrize("held", [1, 9])
def test_a_reset_in_the_middle_is_alike(held):
    """The reset clears the inside; waiting beats enter afterwards, in the same cycles."""
    seen = []
    for name in ENGINES:
        for skip in (False, True):
            engine = load(Grouper(), "grouper", name).instance(skip=skip)
            engine.push("items", np.arange(60, dtype=np.uint32)[:, None], np.arange(0, 600, 10))
            engine.push("i", *fifo_traffic(60, 400))
            engine.hold("o", 150)
            engine.run(200)
            beats = engine.get_signal("beats")
            engine.reset(True)
            engine.run(200 + held)
            engine.reset(False)
            assert engine.cycle == 200 + max(held, RESET_CYCLES)
            engine.run(engine.cycle + 1)
            assert engine.get_signal("beats") < beats
            engine.run(5000)
            assert (engine.cycles_skipped > 0) == skip
            seen.append([part.tolist() for port in ("groups", "o") for part in engine.pop(port)]
                        + [engine.get_signal("beats")])
    assert seen == seen[:1] * len(seen)


def test_groups_are_right(grouper):
    engine = grouper.instance()
    items = np.arange(1, 7, dtype=np.uint32).reshape(-1, 1)
    engine.push("items", items, np.array([0, 0, 0, 0, 100, 101], dtype=np.uint64))
    engine.run(1000)
    payloads, cycles = engine.pop("groups")
    sums = [int.from_bytes(row.tobytes(), "little") for row in payloads]
    bias = 3
    full = sum((i << 60) + i + bias for i in (1, 2, 3, 4)) | 4 << 70
    late = sum((i << 60) + i + bias for i in (5, 6)) | 2 << 70 | 1 << 78
    assert sums == [full, late]
    # Full: valid after the cycle of the fourth beat. Late: ten cycles after its first beat.
    assert cycles.tolist() == [5, 111]


def test_registers_in_order_and_in_band(grouper):
    engine = grouper.instance()
    engine.read(VERSION)
    engine.write(TIMEOUT, 77, 50)
    engine.read(TIMEOUT, 50)  # after the write, which was queued first
    engine.read(BEATS, 500)
    assert engine.registers_pending == 4
    engine.run(300)
    assert engine.registers_pending == 1
    engine.run(600)
    results = engine.read_results()
    assert [(r.addr, r.data) for r in results] == [(VERSION, 0xE3B00001), (TIMEOUT, 77), (BEATS, 0)]
    assert results[0].cycle == 1 and 50 < results[1].cycle < 60 and results[2].cycle == 501
    assert engine.read_results() == []


def test_a_register_access_is_done_in_its_cycle(grouper):
    """It waits for an access in progress, but not for accesses that are due later, in any order of
    queueing."""
    engine = grouper.instance()
    engine.write(TIMEOUT, 5, 400)
    engine.run(7)
    for cycle in (300, 20, 299):
        engine.read(TIMEOUT, cycle)
        engine.write(TIMEOUT, cycle, cycle)
    engine.run(500)
    results = engine.read_results()
    assert [r.data for r in results] == [results[0].data, 20, 299] and results[0].data != 5
    assert [r.cycle for r in results[:2]] == [21, 300] and results[2].cycle > 301
    engine.read(TIMEOUT)
    engine.run(510)
    assert engine.read_results()[0].data == 5


@pytest.mark.parametrize("is_write, text", [
    (True, "write to register 0xc in cycle 12 was answered with SLVERR"),
    (False, "read of register 0xc in cycle 11 was answered with DECERR")])
def test_register_error(grouper, is_write, text):
    engine = grouper.instance()
    if is_write:
        engine.write(UNMAPPED, 1, 10)
    else:
        engine.read(UNMAPPED, 10)
    engine.run(100)
    with pytest.raises(RegisterError, match=text):
        engine.read_results()


def test_late_beats_are_offered_at_once(grouper):
    engine = grouper.instance()
    engine.run(1000)
    assert engine.cycles_skipped > 900
    engine.push("items", np.array([[1], [2]]), np.array([3, 1005]))
    engine.run(1005)
    assert engine.waiting("items") == 1
    engine.run(2000)
    assert engine.pop("groups")[1].tolist() == [1011]


def test_signals(grouper):
    engine = grouper.instance()
    engine.run(500)
    engine.set_signal("bias", 9)
    engine.push("items", np.array([[1]]), 0)
    engine.run(600)
    payloads, _ = engine.pop("groups")
    assert payloads[0, 0] == 1 + 9
    assert engine.get_signal("bias") == 9
    assert engine.get_signal("beats") == 1
    assert engine.get_signal("idle") == 1


def test_constant_bits(grouper):
    engine = grouper.instance(random_init=5)
    assert engine.get_signal("mark") == 0xA0
    engine.push("items", np.array([[1], [2]]))
    engine.run(3)
    assert engine.get_signal("mark") == 0xA2


def test_bits_that_follow_from_their_neighbours(grouper):
    engine = grouper.instance()
    for bias in (0, 1, 21, 31, 10):
        engine.set_signal("bias", bias)
        bits = itertools.accumulate((bias >> k & 1 for k in range(5)), int.__xor__)
        assert engine.get_signal("parity") == sum(bit << k + 1 for k, bit in enumerate(bits))


def test_next_event(grouper):
    engine = grouper.instance()
    assert engine.next_event == 0
    engine.run(100)
    assert engine.next_event is None
    engine.push("items", np.array([[1], [2]]), np.array([300, 301]))
    engine.read(BEATS, 500)
    assert engine.next_event == 300
    engine.run(303)
    assert engine.next_event == 310 and not engine.at_rest  # its timeout is running
    engine.run(400)
    assert engine.next_event == 500
    engine.run(499)
    assert engine.next_event == 500
    engine.run(600)
    assert engine.next_event is None and engine.at_rest
    assert engine.pop("groups")[1].tolist() == [311]
    awake = grouper.instance(skip=False)
    awake.run(100)
    assert awake.next_event == 100


def test_cycles_before_a_deadline_are_skipped(grouper):
    leaves = []
    for skip in (True, False):
        engine = grouper.instance(skip=skip)
        engine.write(TIMEOUT, 5000)
        engine.push("items", np.array([[1], [2]]), np.array([300, 2301]))
        engine.run(7000)
        leaves.append(engine.pop("groups")[1].tolist())
        assert (engine.cycles_skipped > 6900) == skip
    assert leaves[0] == leaves[1] == [5301]


@pytest.mark.parametrize("name", COMPILED)
def test_bare_loop_only_evaluates(name):
    engine = load(Grouper(), "grouper", name).instance()
    engine.run_bare(1000)
    assert engine.cycle == engine.cycles_run == 0


def test_random_contents_of_memories(grouper):
    def contents(**options):
        engine = grouper.instance(**options)
        words = []
        for address in range(8):
            engine.set_signal("peek", address)
            words.append(engine.get_signal("peeked"))
        engine.run(100)
        assert engine.get_signal("idle") == 1
        return words

    assert contents() == [0] * 8
    assert len(set(contents(random_init=1))) == 8
    assert contents(random_init=1) == contents(random_init=1) != contents(random_init=2)


@pytest.mark.parametrize("name", COMPILED)
def test_threads_do_not_change_the_outcome(name):
    model = load(Grouper(), "grouper", name)
    alone = grouper_scenario(model.instance(), 128)
    with ThreadPoolExecutor(4) as pool:
        runs = list(pool.map(lambda _: grouper_scenario(model.instance(), 128), range(8)))
    assert all(run == alone for run in runs)


@pytest.mark.parametrize("call, text", [
    (lambda e: e.push("groups", np.zeros((1, 3))),
     "input stream must be one of items, i, not 'groups'"),
    (lambda e: e.pop("items"), "output stream must be one of groups, o, not 'items'"),
    (lambda e: e.push("items", np.zeros((1, 2))),
     r"payloads of items must have shape \(n, 1\), not \(1, 2\)"),
    (lambda e: e.push("items", np.array([[128]])),
     "payloads of items must fit 7 bits, not '0x80' in the last word"),
    (lambda e: e.push("items", np.zeros((2, 1)), np.zeros(3)), "cycles of items must be one"),
    (lambda e: e.set_rate("groups", -1.0), "cycles_per_beat must be between 0 and .*not -1.0"),
    (lambda e: e.set_rate("groups", 1.0, 1.0), "last_bit must be given .*not None"),
    (lambda e: e.set_rate("groups", 1.0, 1.0, 79), "last_bit must be between 0 and 78, not 79"),
    (lambda e: e.set_stall("items", 0, 1.0), "probability must be between 0 and below 1, not 1.0"),
    (lambda e: e.set_stall("item", 0, 0.5),
     "stream must be one of items, groups, i, o, not 'item'"),
    (lambda e: e.set_signal("beats", 1), "signal must be an input .*not 'beats'"),
    (lambda e: e.set_signal("time", 1), "signal must be an input .*not 'time'"),
    (lambda e: e.set_signal("bias", 32), "bias must fit 5 bits, not 32"),
    (lambda e: e.get_signal("x"), "signal must be one of time, .*, not 'x'"),
    (lambda e: e.read(64), "addr must fit 6 bits, not 64"),
    (lambda e: e.write(0, 1 << 32), "data must fit 32 bits, not 4294967296"),
    (lambda e: e.run(-1), "until must be between 0 and 2\\^43, not -1"),
])
def test_bad_calls(call, text):
    with pytest.raises(ValueError, match=text):
        call(load(Grouper(), "grouper", "pysim").instance())


def test_registers_need_a_port():
    with pytest.raises(ValueError, match="the design must have a port csr"):
        load(SkidBuffer(8), "skid", "pysim").instance().read(0)


def test_unknown_engine():
    with pytest.raises(ValueError, match="must be one of verilator, cxxrtl, pysim, not 'quick'"):
        load(Grouper(), "grouper", "quick")


@pytest.mark.parametrize("name", COMPILED)
def test_a_forked_process_leaves_the_engine_of_its_parent_alone(name):
    """It lacks the threads of the C++, and their destructor would wait forever."""
    engine = load(Grouper(), "grouper", name).instance()
    child = os.fork()
    if not child:
        signal.alarm(20)
        engine.__del__()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    engine.run(10)
    assert engine.cycle == 10
