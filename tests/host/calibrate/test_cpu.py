"""The CPU's calibration: a profile that loads, from medians of repeats."""

import pytest

from host.calibrate.__main__ import main
from host.calibrate.cpu import cores, measure_cpu
from host.calibrate.stopwatch import Stopwatch
from host.devices.cpu import CpuProfile
from host.toml.profile import load_profile
from host.toml.provenance import constants, uncertain


class Clock:
    """A clock that its actions advance, each wait by ``wait_us``."""

    def __init__(self, *steps):
        self.now, self.steps, self.waits = 0.0, list(steps), 0

    def __call__(self):
        return self.now / 1e6

    def action(self):
        self.now += self.steps.pop(0) if len(self.steps) > 1 else self.steps[0]

    def wait(self):
        self.waits += 1


def test_stopwatch_takes_the_median_and_does_not_count_the_first():
    clock = Clock(1000, 50, 10, 90, 20, 30, 20)
    assert Stopwatch(5, clock=clock).us(clock.action, 1) == pytest.approx(30)
    clock = Clock(10)
    # Rows of 2,000 us are 200 actions.
    assert Stopwatch(3, wait=clock.wait, clock=clock).us(clock.action) == pytest.approx(10)
    assert clock.now == pytest.approx(10 * (2 + 3 * 200)) and clock.waits == 2 * 5
    clock = Clock(5000)
    assert Stopwatch(3, clock=clock).us(clock.action) == pytest.approx(5000)
    assert clock.now == pytest.approx(5000 * 5)
    clock = Clock(7, 9)
    assert Stopwatch(3, clock=clock).us_once(clock.action) == pytest.approx(7)
    with pytest.raises(ValueError, match="repeats must be at least 1, not 0"):
        Stopwatch(0)


def test_constants_follow_from_a_clock_that_is_known(monkeypatch):
    """Every action takes 1,000 us, which determines the rates of bytes and operations."""

    class Known(Stopwatch):
        def us(self, action, times=None):
            action()
            return 1000.0

    profile = measure_cpu("cpu_x", Known(3), mebibytes=1, side=64)
    assert profile.memory_bandwidth_gb_s == pytest.approx(2 * 2**20 / 1e6)
    assert profile.float32_tflops == pytest.approx(2 * 64**3 / 1e9)
    assert profile.operator_us == 1000.0 and profile.cores == cores()
    # A quarter of the rows; rows are written and indices read at the rate of a copy.
    rows = 2**20 // 64 // 4
    rest = 1000 - rows * (64 + 8) / (2 * 2**20 / 1000)
    assert profile.random_bandwidth_gb_s == pytest.approx(rows * 64 / rest / 1e3)
    assert profile.graph_key_ns == pytest.approx(1e6 / (16 * 128 * 26))
    assert [c.status for c in constants(profile)] == ["M", "M", "M", "C", "M", "M", "M"]


@pytest.mark.parametrize("load", [0.0, 99.0])
def test_command_writes_a_profile_that_loads(tmp_path, capsys, monkeypatch, load):
    monkeypatch.setattr("os.getloadavg", lambda: (load, 0.0, 0.0))
    with pytest.raises(SystemExit) as ended:
        main(["cpu", "--output", str(tmp_path), "--repeats", "1", "--mebibytes", "4",
              "--name", "here"])
    assert ended.value.code == 0
    profile = load_profile(tmp_path / "cpu_here.toml", CpuProfile)
    assert profile.name == "cpu_here" and profile.cores == cores()
    assert profile.random_bandwidth_gb_s <= profile.memory_bandwidth_gb_s
    assert not uncertain(profile) and 20 < profile.graph_key_ns < 20_000
    assert (tmp_path / "cpu_here.toml").read_text().startswith(
        f"# Measured by python -m host.calibrate cpu at a load of {load:.1f}.\n")
    output = capsys.readouterr()
    assert ("the machine is busy (load 99.0 on" in output.err) == (load > 0)
    assert output.out.splitlines() == [str(tmp_path / "cpu_here.toml")]
