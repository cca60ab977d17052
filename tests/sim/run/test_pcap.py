"""Packet capture: every frame that left a NIC, bit for bit, with its time, written during the
run."""

import signal
import struct
import subprocess
import sys
import time
from decimal import Decimal

import dpkt
import google_crc32c
import numpy as np
import pytest

from rtl.formats import Opcode
from sim.cli.main import main
from sim.job.options import RunOptions
from sim.run.pcap import PcapFile
from sim.run.run import Run
from tests.optional import needs_tool
from tests.rtl.network.frames import checksum
from tests.sim.shown import complaints

OPTIONS = {"config": "tiny", "nodes": 4, "samples": 64, "mini_batch": 16, "threads": 1}


def _read(path) -> list[tuple[int, bytes]]:
    """Return the frames of a capture with their times in nanoseconds."""
    with open(path, "rb") as file:
        reader = dpkt.pcap.Reader(file)
        assert reader.datalink() == dpkt.pcap.DLT_EN10MB
        return [(int(Decimal(when) * 10**9), data) for when, data in reader]


@pytest.fixture(scope="module")
def capture(tmp_path_factory):
    """Return a run's capture file, its results, and the frames of its cluster."""
    path = tmp_path_factory.mktemp("pcap") / "run.pcap"
    seen = []
    with PcapFile(path) as file:
        def observer(frames):
            seen.extend(frames)
            file(frames)

        result = Run(RunOptions.of(**OPTIONS)).execute(observer=observer)
    return path, result, seen


def test_every_frame_is_there(capture):
    path, result, seen = capture
    frames = _read(path)
    assert result["bit_identical"] and result["network"]["packets"] > 100
    assert len(frames) == result["network"]["packets"]
    assert sum(len(data) for _, data in frames) == result["network"]["bytes"]
    assert [data for _, data in frames] == [data.tobytes() for _, _, data in seen]


def test_times_are_those_of_the_last_beats(capture):
    path, result, seen = capture
    times = [when for when, _ in _read(path)]
    assert times == sorted(times)
    assert times == [4 * cycle for cycle, _, _ in seen]  # 250 MHz
    assert 0 < times[-1] - times[0] <= round(result["simulated_seconds"] * 1e9)
    # One link: a node sends its next frame after the link has taken the beats of this frame.
    for node in range(OPTIONS["nodes"]):
        own = [cycle for cycle, source, _ in seen if source == node]
        assert len(own) > 10 and own == sorted(set(own))


def test_frames_are_sound(capture):
    path, _, seen = capture
    kinds = set()
    for (_, data), (_, source, _) in zip(_read(path), seen):
        frame = dpkt.ethernet.Ethernet(data)
        ip = frame.data
        assert isinstance(ip, dpkt.ip.IP) and isinstance(ip.data, dpkt.udp.UDP)
        assert checksum(data[14:34]) == 0
        assert ip.len == len(data) - 14 and ip.data.ulen == len(data) - 34
        assert ip.data.sport == ip.data.dport == 18515
        version, opcode, sender, destination = data[42:46]
        assert (version, sender) == (1, source) and destination != source
        assert int.from_bytes(ip.src) == 0x0A450000 + source
        assert int.from_bytes(ip.dst) == 0x0A450000 + destination
        assert frame.src == (0x02454D420000 + source).to_bytes(6)
        assert frame.dst == (0x02454D420000 + destination).to_bytes(6)
        covered = bytes(26) + data[26:34] + bytes(8) + data[42:60] + bytes(4) + data[64:]
        assert struct.unpack("<I", data[60:64])[0] == google_crc32c.value(covered)
        kinds.add(opcode)
    assert kinds == {Opcode.LOOKUPS, Opcode.VECTORS}


@needs_tool("tshark")
def test_tshark_reads_it(capture):
    path, _, _ = capture
    done = subprocess.run(
        ["tshark", "-r", str(path), "-T", "fields", "-e", "frame.time_epoch", "-e", "frame.len",
         "-o", "ip.check_checksum:TRUE", "-e", "ip.checksum.status"],
        capture_output=True, text=True, check=True)
    found = [line.split("\t") for line in done.stdout.splitlines()]
    assert [(int(Decimal(when) * 10**9), int(size), status) for when, size, status in found] == [
        (when, len(data), "1") for when, data in _read(path)]  # 1: good


def test_file_is_complete_after_every_quantum(tmp_path):
    path = tmp_path / "run.pcap"
    path.write_text("an older file")
    rng = np.random.default_rng(1)
    wanted, cycle = [], 1 << 52  # more than a float of seconds represents to the nanosecond
    with PcapFile(path) as file:
        assert _read(path) == []
        for quantum in range(20):
            frames = []
            for _ in range(quantum % 5 * 10):
                cycle += int(rng.integers(1, 10**9))
                data = rng.integers(0, 1 << 32, (int(rng.integers(1, 24)), 16), np.uint32)
                frames.append((cycle, 0, data))
                wanted.append((4 * cycle, data.tobytes()))
            file(frames)
            assert _read(path) == wanted
    assert _read(path) == wanted


@pytest.mark.thorough
def test_killed_run_leaves_a_readable_file(tmp_path):
    path = tmp_path / "run.pcap"
    process = subprocess.Popen(
        [sys.executable, "-m", "sim", "run", "--config", "tiny", "--nodes", "4", "--samples",
         "1000000", "--mini-batch", "64", "--pcap", str(path)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 120
        while not path.exists() or path.stat().st_size < 200_000:
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.02)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    frames = _read(path)
    assert sum(len(data) for _, data in frames) + 16 * len(frames) + 24 == path.stat().st_size
    for _, data in frames:
        assert len(data) == 14 + int.from_bytes(data[16:18])


def test_command_changes_no_result(tmp_path, capture, capsys):
    path, result, _ = capture
    other = tmp_path / "sub" / "other.pcap"
    with pytest.raises(SystemExit) as end:
        main(["run", "--config", "tiny", "--nodes", "4", "--samples", "64", "--mini-batch", "16",
              "--threads", "2", "--pcap", str(other)])
    assert end.value.code == 0
    assert result["predictions_sha256"][:16] in capsys.readouterr().out
    assert other.read_bytes() == path.read_bytes()


@pytest.mark.parametrize(("path", "said"), [
    ("/proc/none/run.pcap", "pcap cannot be written: /proc/none/run.pcap"),
    (".", "pcap must be a file, not the folder '.'"),
    ("-", "pcap must be a file, not '-'"),
    ("/dev/full", "/dev/full: No space left on device"),
])
def test_file_that_cannot_be_written(capsys, path, said):
    with pytest.raises(SystemExit) as end:
        main(["run", "--config", "tiny", "--samples", "8", "--mini-batch", "8", "--pcap", path])
    shown = capsys.readouterr()
    assert end.value.code == 2
    line, = complaints(shown.err)
    assert shown.out == "" and said in line


def test_a_mistake_leaves_an_older_file_alone(tmp_path, capsys):
    path = tmp_path / "run.pcap"
    path.write_text("older")
    with pytest.raises(SystemExit) as end:
        main(["run", "--data", str(tmp_path / "none"), "--pcap", str(path)])
    assert end.value.code == 2 and str(tmp_path / "none") in capsys.readouterr().err
    assert path.read_text() == "older"
