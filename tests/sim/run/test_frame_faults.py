"""Runs of NICs without a link over a network that loses and changes frames."""

import json
import re

import pytest

from sim.cluster.exchange import Exchange
from sim.job.options import RunOptions
from sim.run.report import failures, with_remedy
from sim.run.run import run

PATIENCE = 20_000


def _options(faults: str | None = None, **options) -> RunOptions:
    return RunOptions.of(**{"config": "tiny", "nodes": 3, "samples": 96, "mini_batch": 12,
                            "in_flight": 2, "placement": "row", "threads": 1,
                            "patience": PATIENCE, "faults": faults} | options)


@pytest.fixture(scope="module")
def calm() -> dict:
    result = run(_options())
    assert failures(result) == []
    assert result["faults"] is None
    return result


def _same_but_time(*results: dict) -> None:
    for result in results:
        for name in ("wall_seconds", "cpu_seconds", "node_cycles_per_second", "options"):
            del result[name]
    assert results[0] == results[1]


def _sum(result: dict, name: str) -> int:
    return sum(node[name] for node in result["counters"])


def test_both_exchanges_give_the_same_run(backend):
    """Runs with losses, too, end stuck in the same cycle with the same counts."""
    options = _options("reorder=0.4:8us,delay=0.2:2us@1,duplicate=0.1,corrupt=#9@0>2,drop=#14@1>2")
    compiled = run(options)
    backend(exchange=Exchange)
    reference = run(options)
    assert compiled["stuck"]
    assert {row["kind"] for row in compiled["faults"]["injected"]} == {
        "drop", "duplicate", "reorder", "corrupt", "delay"}
    _same_but_time(compiled, reference)


@pytest.mark.parametrize("changes", [{"threads": 2}, {"skip": False}], ids=["threads", "skip"])
def test_threads_and_skipping_change_nothing(changes):
    text = "reorder=0.3:10us,delay=0.1:20us,duplicate=0.05"
    results = [run(_options(text, samples=36)), run(_options(text, samples=36, **changes))]
    # A skipped cycle is not evaluated, and boot takes whole steps.
    ran = [result.pop("node_cycles")["run"] for result in results]
    assert ran[0] == ran[1] or changes == {"skip": False}
    _same_but_time(*results)


@pytest.mark.thorough
def test_a_run_is_repeated_from_its_json(tmp_path):
    path = tmp_path / "run.json"
    first = run(_options("reorder=0.3:5us,duplicate=0.1,seed=4"))
    path.write_text(json.dumps(first))
    again = run(_options(str(path)))
    assert again["faults"] == first["faults"]
    assert (again["cycles"], again["counters"]) == (first["cycles"], first["counters"])
    other = run(_options("reorder=0.3:5us,duplicate=0.1,seed=5"))
    assert other["cycles"] != first["cycles"]


@pytest.mark.thorough
def test_a_frame_may_be_late_by_more_than_the_patience(calm):
    result = run(_options("delay-vectors=#4:1ms@0>1"))
    assert failures(result) == []
    assert result["cycles"] > 250_000 > PATIENCE
    assert result["predictions_sha256"] == calm["predictions_sha256"]


@pytest.mark.parametrize(("opcode", "waits"), [
    ("lookups", r"node 0 waits for \d+ vectors of other nodes \(node 1\);"),
    ("vectors", r"node 1 waits for \d+ vectors of other nodes \(node 0\);")])
def test_a_lost_frame_is_named_and_results_are_kept(opcode, waits, calm):
    result = run(_options(f"drop-{opcode}=#12@0>1"))
    assert result["faults"]["injected"] == [{
        "kind": "drop", "source": 0, "destination": 1, "opcode": opcode.upper(), "frames": 1}]
    line, = failures(result)
    assert f"1 {opcode.upper()} of node 0 to 1 lost" in line
    assert re.search(waits, line) and "node 2" not in line and "\n" not in line
    assert 0 < result["samples"] < 96
    assert result["results"]["equal"] == result["samples"]
    assert not result["bit_identical"]
    cause = result["where_stuck"]["causes"][0]
    assert cause["part"] == "peers"
    assert (cause["node"], cause["peer"]) == ((0, 1) if opcode == "lookups" else (1, 0))


@pytest.mark.parametrize("faults", [
    "drop-vectors=#12@0>1", "corrupt-lookups=#12@0>1", "down=10us:1s@1"])
def test_without_a_link_the_option_of_the_link_is_named(faults):
    line, = failures(run(_options(faults)))
    assert line.endswith("; NICs without a reliable link cannot send a frame again: add "
                         "--set link=true")
    assert line.count("link=true") == 1


@pytest.mark.parametrize(("kind", "linked", "fidelity", "words"), [
    *((kind, False, "rtl", "add --set link=true") for kind in (
        "drop", "duplicate", "reorder", "corrupt", "delay", "down")),
    ("queue", False, "rtl", "add --set link=true"),
    ("queue", False, "model", "add --fidelity rtl --set link=true"),
    ("drop", True, "rtl", None), ("calm", False, "rtl", None)])
def test_the_remedy_of_a_run_that_fails(kind, linked, fidelity, words):
    """The remedy is also given for a run with wrong values, which a duplicated frame may cause."""
    injected = [] if kind in ("queue", "calm") else [{"kind": kind, "frames": 2}]
    result = {"network": {"queue_drops": int(kind == "queue")}, "fidelity": fidelity,
              "config": {"link": linked},
              "faults": {"injected": injected} if injected else None}
    found = with_remedy(["first", "last"], result)
    assert found[0] == "first" and with_remedy([], result) == []
    assert found[1] == "last" if words is None else found[1].endswith(words)
    assert with_remedy(found, result) == found


def test_the_command_ends_with_status_1_and_keeps_its_results(tmp_path, capsys):
    from sim.cli.main import main
    path, table = tmp_path / "run.json", tmp_path / "predictions.csv"
    with pytest.raises(SystemExit) as end:
        main(["run", "--config", "tiny", "--samples", "96", "--nodes", "2", "--mini-batch", "12",
              "--in-flight", "2", "--patience", str(PATIENCE), "--faults", "drop-lookups=#30@0>1",
              "--json", str(path), "--predictions", str(table)])
    assert end.value.code == 1
    line = capsys.readouterr().err.strip().splitlines()[-1]
    assert line.startswith("sim: ") and "1 LOOKUPS of node 0 to 1 lost" in line
    result = json.loads(path.read_text())
    assert 0 < result["samples"] < 96
    assert len(table.read_text().splitlines()) == 1 + result["samples"]
    assert result["faults"]["given"] == ["drop-lookups=#30@0>1"]


def test_corrupt_frames_are_refused_and_counted():
    """A flipped bit passes only if no NIC reads it, for example in the IP header's checksum."""
    result = run(_options("corrupt=0.3", samples=24))
    corrupted = sum(row["frames"] for row in result["faults"]["injected"])
    refused = {name: _sum(result, f"net_receiver.{name}") for name in (
        "bad_crc", "bad_length", "bad_opcode", "bad_node", "foreign")}
    assert corrupted >= 20
    # Some of the 42 bytes before the EmberNIC header are not read.
    assert 0.8 * corrupted <= sum(refused.values()) <= corrupted
    assert refused["bad_crc"] > 0.5 * corrupted
    assert result["results"]["different"] == 0
    assert "corrupted" in failures(result)[0]


def test_what_a_down_link_loses_is_counted():
    result = run(_options("down=10us:20us@0>1"))
    lost = sum(row["frames"] for row in result["faults"]["injected"])
    assert lost > 0
    assert {(row["kind"], row["source"], row["destination"])
            for row in result["faults"]["injected"]} == {("down", 0, 1)}
    assert "of node 0 to 1 lost" in failures(result)[0]


def test_a_full_queue_of_the_switch_is_named(tmp_path):
    network = tmp_path / "shallow.toml"
    network.write_text('name = "shallow"\none_way = "1.4 us"\nbandwidth = "100 Gb/s"\n'
                       'overhead_bytes = 24\nswitched = true\nqueue = "1542 B"\n')
    result = run(_options(network=str(network), nodes=4, samples=256, mini_batch=64))
    assert result["network"]["queue_drops"] > 0
    assert "dropped by a full queue of the switch" in failures(result)[0]


def test_frames_that_come_twice_change_no_result():
    """Every frame is duplicated; the NICs count the duplicate vectors."""
    calm, result = run(_options(samples=24)), run(_options("duplicate=1", samples=24))
    copies = sum(row["frames"] for row in result["faults"]["injected"])
    assert copies == result["network"]["packets"] > 0
    assert _sum(result, "remote_cache.bad_fills") > 0
    assert result["predictions_sha256"] == calm["predictions_sha256"] and not failures(result)
