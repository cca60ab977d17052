"""Waveforms of a run contain every handshake of hosts and network, in its cycle, and writing them
does not change the run."""

import os
import signal
import subprocess
import sys
import time
from itertools import pairwise

import numpy as np
import pytest
import pywellen
from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.stream import StreamFIFO
from sim.cli.main import main
from sim.engines import load
from sim.engines.trace import TraceFile
from sim.engines.waves import WINDOW
from sim.job.options import RunOptions
from sim.run.run import Run
from tests.sim.shown import complaints

NODES = 4
OPTIONS = {"config": "tiny", "nodes": NODES, "samples": 32, "mini_batch": 16, "threads": 1}
NS = 4
COMMAND = ("run", "--config", "tiny", "--nodes", "4", "--samples", "32", "--mini-batch", "16")


class Signals:
    """The signals in a file, by their names."""

    def __init__(self, path):
        self.wave = pywellen.Waveform(str(path))
        self.all = {var.full_name: var for var in self.wave.all_vars()}
        (self.root,) = {name.partition(".")[0] for name in self.all}
        clock = self.changes("clk")
        self.start, self.end = clock[0][0], clock[-1][0]
        self.edges = [t for (_, before), (t, now) in pairwise(clock) if now > before]

    def changes(self, name):
        """Return times and values of a signal of the NIC."""
        return self.all[f"{self.root}.{name}"].tv[:]

    def at(self, name, cycles):
        """Return the values in ``cycles``, when the clock rises."""
        times, values = zip(*self.changes(name))
        places = np.searchsorted(times, NS * np.asarray(cycles), side="right") - 1
        return [values[place] for place in places]

    def crossed(self, port, first, last):
        """Return the cycles from ``first`` to ``last`` in which a beat crosses ``port``, in
        order."""
        cycles = range(first, last + 1)
        return [cycle for cycle, valid, ready in zip(
            cycles, self.at(f"{port}__valid", cycles), self.at(f"{port}__ready", cycles))
            if valid and ready]


def frames_in(signals, port, first, last):
    """Return the frames that cross ``port``: cycle of the last beat, and data."""
    cycles = signals.crossed(port, first, last)
    frames, beats = [], []
    for cycle, data, is_last in zip(cycles, signals.at(f"{port}__payload.data", cycles),
                                    signals.at(f"{port}__payload.last", cycles)):
        beats.append(data.to_bytes(64, "little"))
        if is_last:
            frames.append((cycle, b"".join(beats)))
            beats = []
    return frames


def run(**options):
    """Run; return the results without wall times, the frames, and the run."""
    seen = []
    setup = Run(RunOptions.of(**(OPTIONS | options)))
    result = setup.execute(observer=seen.extend)
    own = {name: value for name, value in result.items() if name == "simulated_seconds"
           or (name != "options" and "second" not in name)}
    return own, seen, setup


@pytest.fixture(scope="module")
def plain():
    return run()


@pytest.fixture(scope="module")
def traced(tmp_path_factory):
    """Return a run with all of its waves, in FST: file, results, frames."""
    path = tmp_path_factory.mktemp("waves") / "run.fst"
    result, seen, _ = run(waves=str(path), waves_node=2, waves_window="0:999999")
    return path, result, seen


@pytest.mark.thorough
def test_nothing_else_changes(plain, traced):
    _, result, seen = traced
    assert result == plain[0]
    assert result["bit_identical"]
    assert [frame[:2] for frame in seen] == [frame[:2] for frame in plain[1]]
    assert all(np.array_equal(a[2], b[2]) for a, b in zip(seen, plain[1]))


@pytest.mark.thorough
def test_every_frame_is_in_its_cycles(traced):
    path, _, seen = traced
    signals = Signals(path)
    assert signals.start == 0 and signals.root == "node2"
    first, end = 0, signals.end // NS
    sent = [(cycle, data.tobytes()) for cycle, source, data in seen if source == 2]
    assert len(sent) > 20
    assert frames_in(signals, "net_tx", first, end) == sent
    # Frames of the others arrived in order, no earlier than they were sent.
    received = frames_in(signals, "net_rx", first, end)
    coming = [data.tobytes() for _, _, data in seen if data.tobytes()[45] == 2]
    assert sorted(data for _, data in received) == sorted(coming)


@pytest.mark.thorough
@pytest.mark.few(2)
@pytest.mark.parametrize("skip", [True, False])
@pytest.mark.parametrize("suffix", ["fst", "vcd"])
def test_window(tmp_path, plain, suffix, skip):
    own = [cycle for cycle, source, _ in plain[1] if source == 0]
    # From the middle of a frame, or from cycles that are skipped, to the end of a frame.
    first, last = own[0] - 200 if skip else own[5], own[25]
    path = tmp_path / f"run.{suffix}"
    result, seen, _ = run(waves=str(path), waves_window=f"{first}:{last}", skip=skip)
    if skip:
        assert result == plain[0]
    else:
        assert result["predictions_sha256"] == plain[0]["predictions_sha256"]
        assert result["cycles"] == plain[0]["cycles"]
    signals = Signals(path)
    assert str(signals.wave.timescale) == "1ns"
    assert signals.start == NS * first
    assert NS * last <= signals.end < NS * (last + 1)
    sent = [(cycle, data.tobytes()) for cycle, source, data in seen
            if source == 0 and first <= cycle <= last]
    found = frames_in(signals, "net_tx", first, last)
    assert len(sent) >= 20
    assert [cycle for cycle, _ in found] == [cycle for cycle, _ in sent]
    assert sent[0][1].endswith(found[0][1]) and found[1:] == sent[1:]
    # An evaluated cycle has a clock edge; a skipped cycle shows no change.
    assert all(edge % NS == NS // 2 for edge in signals.edges)
    if skip:
        assert signals.edges[0] > NS * (first + 10) and len(signals.edges) < last - first
        assert signals.at("time", [first]) != [first]
    else:
        cycles = range(first, last + 1)
        assert signals.edges == [NS * cycle + NS // 2 for cycle in cycles]
        assert signals.at("time", cycles) == list(cycles)
        assert len(found[0][1]) < len(sent[0][1])


@pytest.mark.thorough
def test_both_formats_hold_the_same(tmp_path):
    found = []
    for suffix in ("fst", "vcd"):
        path = tmp_path / f"run.{suffix}"
        run(samples=16, waves=str(path), waves_window="900:1600")
        found.append({name: (var.bitwidth, var.tv[:])
                      for name, var in Signals(path).all.items()})
    assert found[0] == found[1]
    assert all(900 * NS <= t < 1601 * NS for _, changes in found[0].values() for t, _ in changes)
    assert len(found[0]) > 5000 and sum(len(tv) for _, tv in found[0].values()) > 20_000


@pytest.mark.thorough
def test_whole_hierarchy_with_fields(traced):
    signals = Signals(traced[0])
    names = signals.all
    for name in ("clk", "time", "idle", "net_tx__payload", "net_tx__payload.data",
                 "dedupe.lookups__valid", "local_cache.cache.evicted.valid"):
        assert f"node2.{name}" in names, name
    data, whole = names["node2.net_tx__payload.data"], names["node2.net_tx__payload"]
    assert (data.bitwidth, whole.bitwidth) == (512, 578)
    cycles = signals.crossed("net_tx", 0, signals.end // NS)
    assert signals.at("net_tx__payload.data", cycles) == [
        beat & (1 << 512) - 1 for beat in signals.at("net_tx__payload", cycles)]
    assert not any(part[:1] == "$" and part[1:].isdigit() for name in names
                   for part in name.split("."))


@pytest.mark.thorough
def test_default_window(tmp_path, capsys):
    path = tmp_path / "run.fst"
    with pytest.raises(SystemExit) as end:
        main([*COMMAND, "--waves", str(path), "--waves-node", "3"])
    assert end.value.code == 0
    signals = Signals(path)
    first = signals.start // NS
    said = capsys.readouterr().out
    assert f"contains cycles {first:,} to {first + WINDOW - 1:,} of node 3" in said
    assert signals.end < NS * (first + WINDOW)
    # The host gives its first packet to PCIe then, which takes some cycles.
    queries = signals.crossed("host_rx", first, first + WINDOW)
    assert first + 100 < queries[0] < first + 200


@pytest.mark.thorough
def test_window_after_the_end(tmp_path, plain, capsys):
    path = tmp_path / "run.vcd"
    with pytest.raises(SystemExit) as end:
        main([*COMMAND, "--waves", str(path), "--waves-window", "900000:"])
    assert end.value.code == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "the window begins at cycle 900,000" in out
    assert plain[0]["predictions_sha256"][:16] in out
    assert len(list(pywellen.Waveform(str(path)).all_vars())) > 5000


@pytest.mark.slow
def test_untraced_model_has_no_part_of_it():
    model = load(StreamFIFO(514, 9), "fifo")
    instance = model.instance()
    assert not hasattr(instance._lib, "ember_trace")
    with pytest.raises(ValueError, match="traced=True"):
        instance.trace(None, 0, 10)


class Turns(wiring.Component):
    """Lets every third beat pass; its place in a turn is a state with a name."""

    i: In(stream.Signature(20))
    o: Out(stream.Signature(20))

    def elaborate(self, platform):
        m = Module()
        nothing = Signal(0)
        m.d.comb += nothing.eq(self.i.payload)
        with m.FSM(name="turn"):
            for state, then in (("FIRST", "SECOND"), ("SECOND", "THIRD")):
                with m.State(state):
                    m.d.comb += self.i.ready.eq(1)
                    with m.If(self.i.valid):
                        m.next = then
            with m.State("THIRD"):
                m.d.comb += [self.o.payload.eq(self.i.payload), self.o.valid.eq(self.i.valid),
                             self.i.ready.eq(self.o.ready)]
                with m.If(self.i.valid & self.o.ready):
                    m.next = "FIRST"
        return m


@pytest.mark.thorough
@pytest.mark.parametrize("suffix", ["fst", "vcd"])
@pytest.mark.parametrize(("first", "last"), [(0, 199), (40, 120), (190, 500)])
def test_amaranth_simulator(tmp_path, suffix, first, last):
    outcomes = []
    for path in (None, tmp_path / f"turns.{suffix}"):
        engine = load(Turns(), "turns", "pysim", traced=path is not None).instance()
        engine.set_stall("i", 1, 0.3)
        engine.set_stall("o", 2, 0.5)
        engine.push("i", np.arange(90, dtype=np.uint32)[:, None] * 7919 & 0xFFFFF)
        if path is not None:
            file = TraceFile(str(path), engine.trace_scopes, "turns", engine.trace_strings)
            engine.run(first // 2)
            engine.trace(file, first, last)
        for until in (50, 51, 200):
            engine.run(until)
        payloads, cycles = engine.pop("o")
        outcomes.append((payloads[:, 0].tolist(), cycles.tolist()))
        if path is not None:
            engine.end_trace()
            file.close()
    assert outcomes[0] == outcomes[1]
    assert len(outcomes[0][0]) > 20
    wave = pywellen.Waveform(str(tmp_path / f"turns.{suffix}"))
    signals = {var.name: var for var in wave.all_vars() if ".turns." in var.full_name}
    end = min(last, 199)
    step = 1_000_000 * NS  # Amaranth counts femtoseconds

    def at(name, cycle):
        return signals[name].signal.value_at(step * cycle)

    crossed = [(at("o__payload", cycle), cycle) for cycle in range(first, end + 1)
               if at("o__valid", cycle) and at("o__ready", cycle)]
    assert crossed == [(value, cycle) for value, cycle in zip(*outcomes[0])
                       if first <= cycle <= end]
    clock = signals["clk"].tv[:]
    assert clock[0][0] == step * first
    assert [t for t, value in clock if value in (1, "1")] == [
        step * cycle + step // 2 for cycle in range(first, end + 1)]
    state = signals["turn_state"]
    names = dict(state.enum_type[1]) if suffix == "fst" else {}
    for _, cycle in crossed:
        value = at("turn_state", cycle)
        assert names.get(f"{value:02b}" if suffix == "fst" else "", value) == "THIRD/2"


@pytest.mark.thorough
def test_amaranth_simulator_window_after_the_end(tmp_path):
    path = tmp_path / "turns.fst"
    engine = load(Turns(), "turns", "pysim", traced=True).instance()
    file = TraceFile(str(path), engine.trace_scopes, "turns", engine.trace_strings)
    engine.trace(file, 100, 200)
    engine.run(100)
    engine.end_trace()
    file.close()
    names = {var.name: len(var.tv) for var in pywellen.Waveform(str(path)).all_vars()}
    assert {"clk", "o__payload"} <= set(names) and not any(names.values())


@pytest.mark.thorough
@pytest.mark.parametrize(("suffix", "number"), [
    ("fst", signal.SIGINT), *(pytest.param(*case, marks=pytest.mark.slow) for case in (
        ("fst", signal.SIGTERM), ("vcd", signal.SIGINT), ("vcd", signal.SIGTERM)))])
def test_interrupted_run_leaves_a_readable_file(tmp_path, suffix, number):
    path, pcap = tmp_path / f"run.{suffix}", tmp_path / "run.pcap"
    process = subprocess.Popen(
        [sys.executable, "-m", "sim", *COMMAND[:3], "--nodes", "2", "--samples", "1000000",
         "--mini-batch", "16", "--pcap", str(pcap), "--waves", str(path), "--waves-window",
         "1500:"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        deadline = time.monotonic() + 1500
        while not pcap.exists() or pcap.stat().st_size < 20_000:
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.02)
    finally:
        process.send_signal(number)
        out, _ = process.communicate()
    assert process.returncode == 128 + number
    signals = Signals(path)
    assert signals.start == 1500 * NS < signals.end
    assert len(signals.crossed("net_tx", 1500, signals.end // NS)) > 5
    assert f"waves: {path} contains cycles 1,500 to" in out


def _complaint(capsys, *arguments: str) -> str:
    with pytest.raises(SystemExit) as end:
        main([*COMMAND, *arguments])
    shown = capsys.readouterr()
    assert end.value.code == 2
    said, = complaints(shown.err)
    assert shown.out == "" and said.startswith("sim: ")
    return said


@pytest.mark.thorough
@pytest.mark.parametrize(("arguments", "said"), [
    (("--waves", "run.txt"), "waves must end in .fst or .vcd, not 'run.txt'"),
    (("--waves", "-"), "waves must end in .fst or .vcd, not '-'"),
    (("--waves", "/proc/none/run.fst"), "waves cannot be written: /proc/none/run.fst"),
    (("--waves", "run.fst", "--waves-node", "4"), "waves_node must be between 0 and 3, not 4"),
    (("--waves", "run.fst", "--waves-node", "-1"), "waves_node must be between 0 and 3, not -1"),
    (("--waves-node", "1"), "waves_node 1 requires waves: give waves, too"),
    (("--waves-window", "1:2"), "waves_window '1:2' requires waves: give waves, too"),
    (("--waves", "run.fst", "--waves-window", "9:5"),
     "waves_window must end at cycle 9 or later, not '9:5'"),
    (("--waves", "run.fst", "--waves-window", "many"),
     "waves_window must be FIRST:LAST, numbers of cycles, not 'many'"),
    (("--waves", "run.fst", "--waves-window", "1:x"), "waves_window must be FIRST:LAST"),
    (("--waves", "run.fst", "--waves-window", "-1:5"), "waves_window must be FIRST:LAST"),
    (("--waves", "run.fst", "--waves-window", "1:2:3"), "waves_window must be FIRST:LAST"),
    (("--waves", "run.fst", "--waves-window", ":" + "9" * 40), "waves_window must be FIRST:LAST"),
    (("--waves", "run.fst", "--waves-window", ":5"),
     " (first samples) or later, not 5"),
    (("--waves", "run.fst", "--engine", "spice"), "engine must be one of"),
    (("--waves", "run.fst", "--engine", "cxxrtl"),
     "engine must be one of verilator, pysim for waves, not 'cxxrtl'"),
])
def test_mistakes(tmp_path, monkeypatch, capsys, arguments, said):
    monkeypatch.chdir(tmp_path)
    assert said in _complaint(capsys, *arguments)
    assert not list(tmp_path.iterdir())


@pytest.mark.thorough
@pytest.mark.parametrize("suffix", ["fst", "vcd"])
def test_full_disk(tmp_path, capsys, suffix):
    path = tmp_path / f"run.{suffix}"
    path.symlink_to("/dev/full")
    with pytest.raises(SystemExit) as end:
        main([*COMMAND, "--waves", str(path)])
    said, = complaints(capsys.readouterr().err)
    assert end.value.code == 2 and str(path) in said
    assert ("No space left on device" if suffix == "vcd" else "free disk space") in said


@pytest.mark.thorough
def test_a_folder(tmp_path, capsys):
    path = tmp_path / "run.vcd"
    path.mkdir()
    assert f"waves must be a file, not the folder '{path}'" in _complaint(
        capsys, "--waves", str(path))


@pytest.mark.thorough
def test_a_pipe(tmp_path, capsys):
    path = tmp_path / "run.fst"
    os.mkfifo(path)
    assert f"waves must be a file, not the pipe '{path}'" in _complaint(
        capsys, "--waves", str(path))
