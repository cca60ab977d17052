"""A run without progress of results ends, regardless of other movement; a slow run continues."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from host.data.generator import generate
from host.model import Model
from host.samples import concatenate
from host.timing.gpu import GpuProfile
from host.wire.rows import GivenRows
from sim.cluster.exchange import Exchange
from sim.cluster.watchdog import StuckError, Watchdog
from sim.host_cpp.exchange import CompiledExchange
from sim.job.options import RunOptions
from sim.nic.ports import BEAT_WORDS, arrivals
from sim.run.backend import choose
from sim.run.report import failures
from sim.run.run import run
from sim.training.options import TrainOptions
from sim.training.report import failures as failure_lines
from sim.training.train import train
from tests.optional import absent
from tests.rtl.network.frames import LOOKUPS, Frame, record_payload
from tests.sim.interacting import write_model
from tests.sim.linked import LINKED

PATIENCE = 20_000
BEGIN, PERIOD, END = 70_000, 500, 600_000
"""First cycle of a flood, after the honest frames; cycles between its frames; the run's bound."""

LOST = "drop-lookups=#12@0>1"


def _beats(frame: Frame) -> np.ndarray:
    return np.array([np.frombuffer((beat["data"] | beat["keep"] << 512 | beat["last"] << 576)
                                   .to_bytes(4 * BEAT_WORDS, "little"), "<u4")
                     for beat in frame.beats()], np.uint32)


def _flooded(kind: type, frame: Frame) -> type:
    """Return an exchange of a kind that also delivers ``frame`` to node 0, without end."""
    class Flooded(kind):
        def __init__(self, engines, network):
            super().__init__(engines, network)
            self._flood = engines[0], network, _beats(frame), [BEGIN]

        @property
        def next_event(self) -> float:
            return min(super().next_event, self._flood[3][0])

        def step(self, now, observer=None):
            super().step(now, observer)
            engine, network, beats, due = self._flood
            assert now < END, "the run goes on for ever"
            while due[0] < now:
                start = network.deliver(due[0], 1, 0, 64 * len(beats))
                engine.push("net_rx", beats, arrivals(
                    [start], [len(beats)], 64 * network.cycles_per_byte))
                due[0] += PERIOD

    return Flooded


def _options(faults: str | None = LOST, **options) -> RunOptions:
    return RunOptions.of(**{"config": "tiny", "nodes": 3, "samples": 96, "mini_batch": 12,
                            "in_flight": 2, "placement": "row", "threads": 1,
                            "patience": PATIENCE, "faults": faults} | options)


STRANGER = Frame(opcode=LOOKUPS, source=1, destination=0, count=1, payload=record_payload([0]),
                 port=7)


@pytest.fixture
def peer(monkeypatch) -> Frame:
    """A frame of node 1 that causes work of node 0, its GPU and its host."""
    monkeypatch.setattr("tests.rtl.network.frames.MAC_BASE", 0x02454D420000)
    monkeypatch.setattr("tests.rtl.network.frames.IP_BASE", 0x0A450000)
    return Frame(opcode=LOOKUPS, source=1, destination=0, count=8,
                 payload=record_payload([row for row in range(8)]))


@pytest.fixture(scope="module")
def calm() -> dict:
    return run(_options(None))


def _stuck(result: dict) -> str:
    """Return the message of a run that ended because results stopped."""
    line, = failures(result)
    assert "no result made progress for" in line and "\n" not in line
    assert not result["complete"] and 0 < result["samples"] < 96
    assert result["results"]["equal"] == result["samples"]
    return line


@pytest.mark.parametrize("kind", [Exchange, CompiledExchange])
def test_a_stranger_does_not_put_it_off(kind, backend):
    backend(exchange=_flooded(kind, STRANGER))
    result = run(_options())
    line = _stuck(result)
    assert "1 LOOKUPS of node 0 to 1 lost" in line
    since = result["where_stuck"]["since"]
    assert f"after cycle {since:,}; not answered: samples " in line
    assert result["network"]["packets"] and since < BEGIN
    assert _nodes(line) <= {0, 1, 2} and 0 in _nodes(line)


def _nodes(line: str) -> set[int]:
    told = line.partition("not answered: samples ")[2].partition(":")[0]
    return {int(part.rpartition(" of node ")[2]) for part in told.split("; ")}


def test_a_peer_whose_lookups_are_answered_does_not_either(peer, backend):
    backend(exchange=_flooded(Exchange, peer))
    line = _stuck(run(_options()))
    assert 0 in _nodes(line)


@pytest.mark.thorough
@pytest.mark.parametrize("changes", [{"threads": 2}, {"skip": False}, {"exchange": Exchange}],
                         ids=["threads", "skipping", "exchange"])
def test_it_ends_in_the_same_cycle(changes, backend):
    results = []
    for options in ({}, dict(changes)):
        backend(exchange=_flooded(options.pop("exchange", CompiledExchange), STRANGER))
        results.append(run(_options(**options)))
    for result in results:
        _stuck(result)
        for name in ("wall_seconds", "cpu_seconds", "node_cycles_per_second", "options",
                     "node_cycles"):
            del result[name]
    assert results[0] == results[1]


def test_the_command_ends_with_status_1_and_keeps_its_results(backend, tmp_path, capsys):
    from sim.cli.main import main
    backend(exchange=_flooded(CompiledExchange, STRANGER))
    table = tmp_path / "predictions.csv"
    with pytest.raises(SystemExit) as end:
        main(["run", "--config", "tiny", "--samples", "96", "--nodes", "3", "--mini-batch", "12",
              "--in-flight", "2", "--placement", "row", "--patience", str(PATIENCE),
              "--faults", LOST, "--predictions", str(table)])
    assert end.value.code == 1
    line = capsys.readouterr().err.strip().splitlines()[-1]
    assert line.startswith("sim: ") and "of node 0" in line
    assert "no result made progress for" in line
    assert 1 < len(table.read_text().splitlines()) < 97


SHORT = 2_000
SLOW_GPU = GpuProfile("slow", 20.0, 1.0, 64, 2, call_us=6.0)
"""A gather takes 6,500 cycles and more."""

SLOW = {
    "gpu": (None, {"gpu": SLOW_GPU}),
    "rings": (None, {"gpu": SLOW_GPU, "settings": ("gpu_rings=true",)}),
    "network": (None, {"network": "{far}"}),
    "late frames": ("delay=0.3:20us", {}),
    "link that loses": ("drop=0.2", {"settings": LINKED}),
    "link that is down": ("down=10us:150us@1", {"settings": LINKED}),
    "link, far": ("drop=0.05", {"settings": LINKED, "network": "{far}"}),
}


@pytest.mark.thorough
@pytest.mark.parametrize("case", SLOW)
def test_slow_is_not_stuck(case, tmp_path):
    """Work takes longer than the patience, but as long as the configuration implies."""
    far = tmp_path / "far.toml"
    far.write_text('name = "far"\none_way = "25 us"\nbandwidth = "100 Gb/s"\n'
                   'overhead_bytes = 24\nswitched = true\n')
    faults, changes = SLOW[case]
    changes = {name: str(far) if value == "{far}" else value for name, value in changes.items()}
    result = run(_options(faults, samples=24, patience=SHORT, **changes))
    assert failures(result) == [] and result["complete"]


def test_hosts_say_when_results_got_on():
    """Results are further apart than the patience, regardless of other movement; later work is
    waited for."""
    nodes = [SimpleNamespace(progress=time, lacking=numbers, number=number)
             for number, (time, numbers) in enumerate(((0.0, [7]), (49.5, list(range(6)))))]
    watchdog = Watchdog(10, 100, 20)
    assert watchdog.limit == 120
    watchdog.results(120, nodes)
    assert watchdog.limit == 150
    nodes[0].progress = 400.0
    watchdog.results(150, nodes)
    assert watchdog.limit == 500
    message = ("no result made progress for 100 cycles after cycle 400; not answered: samples 7 of "
               "node 0; 0, 1, 2, 3 and 2 more of node 1")
    with pytest.raises(StuckError, match=message) as error:
        watchdog.results(500, nodes)
    assert error.value.since == 400


@pytest.mark.slow
def test_training_that_does_not_get_on(monkeypatch, tmp_path):
    monkeypatch.setattr("sim.training.train.choose", lambda options: replace(
        choose(options), exchange=_flooded(CompiledExchange, STRANGER)))
    path = write_model(tmp_path / "model.toml", Model((50, 3, 400), 16, 3, (8, 16), (4, 1)))
    result = train(TrainOptions.of(
        config="tiny", model=path, nodes=2, samples=64, mini_batch=16, threads=1, placement="row",
        patience=PATIENCE, faults="drop-steps=#3@0>1"))
    line, = failure_lines(result)
    assert "no result made progress for" in line and 0 < result["steps"] < 4


def test_lookups_of_a_program_that_are_not_answered(monkeypatch):
    pytest.importorskip("torch", reason=absent("torch"))
    from sim.torch.values.nics import LookupNics

    monkeypatch.setattr("sim.torch.values.nics.choose", lambda options: replace(
        choose(options), exchange=_flooded(CompiledExchange, STRANGER)))
    model = Model((50, 3, 400), 16, 3, (8, 16), (4, 1))
    tables = tuple(np.ones((rows, 16), np.float32) for rows in model.rows)
    nics = LookupNics(RunOptions.of(config="tiny", nodes=2, threads=1, placement="row",
                                    patience=PATIENCE, faults="drop-vectors=#2@0>1"),
                      model, GivenRows(tables))
    samples = concatenate(generate(model, 64, 1))
    try:
        with pytest.raises(StuckError, match="no result made progress for") as stuck:
            for first in range(0, 64, 16):
                assert (nics.look_up(samples.slice(first, first + 16)) != 0).all()
        assert "node 1 waits for " in nics.diagnose(stuck.value)["message"]
    finally:
        nics.abandon()
