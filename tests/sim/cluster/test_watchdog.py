"""The watchdog ends a stuck run with a diagnosis, and does not end a slow run."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from host.wire.rows import row_answers
from sim.cli.main import main
from sim.cluster.exchange import Exchange
from sim.cluster.watchdog import StuckError, Watchdog
from sim.engines.engine import FOREVER
from sim.job.options import RunOptions
from sim.nic.ports import DATA_WORDS, Packets
from sim.run.report import failures
from sim.run.run import Run, run
from tests.rtl.network.frames import parse

PATIENCE = 20_000


def _options(**changed) -> RunOptions:
    given = {"config": "tiny", "nodes": 4, "samples": 96, "mini_batch": 16, "in_flight": 3,
             "threads": 1, "placement": "row", "patience": PATIENCE}
    return RunOptions.of(**given | changed)


def _stuck(result: dict) -> dict:
    found = failures(result)
    assert len(found) == 1 and "not answered" in found[0] and "\n" not in found[0]
    assert result["stuck"] in found[0]
    assert not result["bit_identical"] and not result["complete"]
    return result["where_stuck"]


def _channel(where: dict, node: int, name: str) -> dict:
    return next(c for c in where["nodes"][node]["channels"] if c["name"] == name)


@pytest.mark.parametrize(("fault", "part", "stream"), [
    ("silent-host=8us:@2", "host", "host_tx"), ("silent-network=8us:@1", "network", "net_tx")])
def test_an_edge_that_takes_nothing_any_more(fault, part, stream):
    where = _stuck(run(_options(faults=fault)))
    node = int(fault[-1])
    cause = where["causes"][0]
    assert (cause["part"], cause["node"]) == (part, node)
    state = _channel(where, node, stream)
    assert state["valid"] and not state["ready"] and state["beats"] > 0
    assert f"{state['last']:,}" in cause["means"] and stream in cause["means"]
    assert 0 < state["last"] <= where["since"]
    held = {wait["stream"]: wait for wait in where["nodes"][node]["waits"]}
    assert held[stream]["for"] == part


def test_a_host_that_keeps_what_its_gpu_has_read():
    where = _stuck(run(_options(nodes=2, samples=8, mini_batch=8, faults="silent-host=3us:@1")))
    cause = where["causes"][0]
    assert (cause["part"], cause["node"]) == ("host", 1)
    assert "the host of node 1 does not send 1 packets to its NIC" in cause["means"]
    assert [node["unsent"] for node in where["nodes"]] == [0, 1]
    assert where["nodes"][1]["owed"]["gpu"]
    assert "host_tx" not in {wait["stream"] for wait in where["nodes"][1]["waits"]}


def test_a_row_that_the_gpu_never_reads(backend):
    lost = []

    def but_one(model, seed, node, payload_beats):
        answer = row_answers(model, seed, node, payload_beats)

        def without_one(records, step):
            if node == 1 and not lost and len(records) > 1:
                lost.append(records[0])
                records = records[1:]
            return answer(records, step)

        return without_one

    backend(rows=but_one)
    where = _stuck(run(_options()))
    assert lost
    cause = where["causes"][0]
    assert (cause["part"], cause["node"]) == ("gpu", 1)
    assert "waits for 1 rows of its GPU" in cause["means"]
    assert [node["owed"]["gpu"] for node in where["nodes"]] == [0, 1, 0, 0]


class _NoCredits(Exchange):
    """An exchange in which the frames of node 1 never return credit."""

    def _taken(self, number: int) -> Packets:
        packets = super()._taken(number)
        for start, end in zip(packets.starts, packets.ends):
            data = np.ascontiguousarray(packets.beats[start:end, :DATA_WORDS])
            frame = parse(data.tobytes())
            if number == 1:
                frame.credit = 0
                packets.beats[start:end, :DATA_WORDS] = np.frombuffer(
                    frame.bytes(), "<u4").reshape(-1, DATA_WORDS)
        return packets


def test_a_peer_that_returns_no_credits(backend, monkeypatch):
    monkeypatch.setattr("tests.rtl.network.frames.MAC_BASE", 0x02454D420000)
    monkeypatch.setattr("tests.rtl.network.frames.IP_BASE", 0x0A450000)
    backend(exchange=_NoCredits)
    where = _stuck(run(_options(settings=("remote_cache=false", "requester_merge=false"))))
    cause = where["causes"][0]
    assert (cause["part"], cause["peer"]) == ("peers", 1)
    assert cause["node"] != 1
    assert f"lookups of node {cause['node']} wait for credit of node 1" in cause["means"]
    assert cause["means"] in where["message"]
    waiting = where["nodes"][cause["node"]]
    assert "lookup_packager.stall_credit" in waiting["counting"]
    assert where["nodes"][1]["lookups_for"] != 1


@pytest.mark.slow
def test_slow_is_not_stuck_until_patience_is_over():
    fault = "silent-gpu=8us:200us"  # 50,000 cycles
    assert failures(run(_options(faults=fault, patience=60_000))) == []
    where = _stuck(run(_options(faults=fault, patience=30_000)))
    assert where["causes"][0]["part"] == "gpu"
    assert where["message"].startswith("no beat moved for 30,000 cycles after cycle ")


def test_beats_inside_a_nic_put_the_watchdog_off():
    nodes = [SimpleNamespace(engine=SimpleNamespace(last_beat=beat), progress=0.0)
             for beat in (None, 60, 20)]
    watchdog = Watchdog(100, FOREVER, 0)
    watchdog.check(0, 5, nodes)
    for cycle in (100, 159):
        watchdog.check(cycle, 5, nodes)
    with pytest.raises(StuckError, match="no beat moved for 100 cycles after cycle 60") as error:
        watchdog.check(160, 5, nodes)
    assert error.value.since == 60
    watchdog.check(161, 6, nodes)  # a host or the network acted
    watchdog.check(260, 6, nodes)
    with pytest.raises(StuckError):
        watchdog.check(261, 6, nodes)


def test_beats_of_a_nic_have_their_cycles():
    job = Run(_options(samples=16))
    job.execute()
    for node in job.cluster.nodes:
        channels = node.engine.channels()
        assert node.engine.last_beat == channels.last.max()
        moved = channels.beats > 0
        assert (moved == (channels.last >= 0)).all()
        assert 10 < moved.sum() < len(moved)
        assert not channels.valid.any()


def test_the_command_says_where(tmp_path, capsys):
    report = tmp_path / "run.json"
    with pytest.raises(SystemExit) as end:
        main(["run", "--config", "tiny", "--nodes", "2", "--samples", "32", "--mini-batch", "16",
              "--faults", "silent-host=14us:@1", "--patience", "20000", "--json", str(report)])
    assert end.value.code == 1
    shown = capsys.readouterr()
    assert "the host of node 1 takes nothing from its NIC since cycle" in shown.err
    assert "host_tx" in shown.out and "Held up since cycle" in shown.out
    stored = json.loads(report.read_text())
    assert stored["where_stuck"]["causes"][0]["part"] == "host"
    assert stored["options"]["faults"] == "silent-host=14us:@1"
