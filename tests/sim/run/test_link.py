"""Runs with a reliable link over networks that lose and change frames have the same values."""

import json

import pytest

from host.model import Model
from sim.cli.main import main
from sim.cluster.exchange import Exchange
from sim.faults.cells import EVERYTHING, KINDS, MODES
from sim.job.options import RunOptions
from sim.run.report import failures
from sim.run.run import Run, run
from tests.sim.interacting import write_model
from tests.sim.linked import LINKED

INFERENCE = {mode: settings for mode, settings in MODES.items() if mode != "training"}


def _options(faults: str | None = None, *settings: str, **options) -> RunOptions:
    return RunOptions.of(**{
        "config": "tiny", "nodes": 3, "samples": 96, "mini_batch": 12, "in_flight": 2,
        "placement": "row", "threads": 1, "faults": faults,
        "settings": (*LINKED, *settings)} | options)


def _good(*given, **options) -> dict:
    result = run(_options(*given, **options))
    assert failures(result) == [] and result["complete"] and result["bit_identical"]
    return result


def _sum(result: dict, name: str) -> int:
    return sum(node[name] for node in result["counters"])


@pytest.fixture(scope="module")
def calm() -> dict:
    return _good()


@pytest.mark.thorough
def test_a_network_that_loses_nothing(calm):
    """The result equals a run without a link, and no packet is sent again."""
    without = _good(settings=())
    assert calm["predictions_sha256"] == without["predictions_sha256"]
    assert _sum(calm, "link_sender.repeated") == _sum(calm, "link_sender.failures") == 0
    assert _sum(calm, "link_receiver.duplicates") == _sum(calm, "link_receiver.outside") == 0


@pytest.mark.thorough
@pytest.mark.parametrize("rate", [0.01, 0.1])
@pytest.mark.parametrize("kind", [*KINDS, "all"])
def test_values_stay(calm, kind, rate):
    text = (EVERYTHING if kind == "all" else KINDS[kind]).format(rate=rate)
    result = _good(text, samples=96)
    assert result["predictions_sha256"] == calm["predictions_sha256"]
    assert result["faults"]["injected"]
    if kind in ("drop", "corrupt", "all") and rate == 0.1:
        assert _sum(result, "link_sender.repeated") > 0
    if kind == "duplicate":
        twice = sum(row["frames"] for row in result["faults"]["injected"]
                    if row["opcode"] != "LINK")
        assert _sum(result, "link_receiver.duplicates") >= twice


@pytest.mark.thorough
@pytest.mark.parametrize("settings", [
    pytest.param(settings, id=mode, marks=pytest.mark.slow if mode == "interaction" else ())
    for mode, settings in INFERENCE.items()])
def test_values_stay_however_they_are_delivered(settings):
    calm = _good(None, *settings)
    result = _good(EVERYTHING.format(rate=0.05), *settings)
    assert result["predictions_sha256"] == calm["predictions_sha256"]


@pytest.mark.thorough
def test_skipping_and_threads_and_the_exchange_change_nothing(backend):
    text = EVERYTHING.format(rate=0.05)
    results = [run(_options(text, samples=48, **changes)) for changes in (
        {}, {"skip": False}, {"threads": 2})]
    backend(exchange=Exchange)
    results.append(run(_options(text, samples=48)))
    for result in results[1:]:
        for name in ("cycles", "counters", "predictions_sha256", "faults"):
            assert result[name] == results[0][name], name


@pytest.mark.thorough
def test_a_silent_node_is_lost(tmp_path, capsys):
    """The exit status is 1, and the samples that do not need the node are answered."""
    path = tmp_path / "run.json"
    with pytest.raises(SystemExit) as ended:
        main(["run", "--config", "tiny", "--nodes", "3", "--samples", "96", "--mini-batch", "12",
              "--in-flight", "2", "--placement", "row", "--json", str(path), "--faults",
              "down=0us:1s@>2,down=0us:1s@2>", "--set", "link=true",
              "--set", "owner_bags=64", "--set", "link_tries=4",
              "--set", "link_timeout_first=2000", "--set", "link_timeout_most=4000"])
    assert ended.value.code == 1
    result = json.loads(path.read_text())
    outcome = result["results"]
    assert result["complete"] and outcome["different"] == outcome["unanswered"] == 0
    assert outcome["equal"] + outcome["refused"] == 96 and outcome["refused"] >= 32
    assert f"{outcome['refused']} samples were rejected" in capsys.readouterr().err


@pytest.mark.thorough
def test_a_link_that_is_down_for_a_while(calm):
    result = _good("down=10us:150us@1", samples=96)
    assert result["predictions_sha256"] == calm["predictions_sha256"]
    assert _sum(result, "link_sender.repeated") > 0


@pytest.mark.thorough
def test_a_lookup_on_an_idle_cluster_takes_thirty_cycles_more_at_most(tmp_path):
    path = write_model(tmp_path / "small.toml", Model((100,), 16, 3, (4, 16), (4, 1), "one"))
    more = []
    for seed in range(2, 18):
        with_link, without = (run(_options(
            None, model=str(path), nodes=2, samples=1, mini_batch=1, in_flight=1, seed=seed,
            settings=(f"link={link}", *LINKED[1:]))) for link in ("true", "false"))
        if _sum(without, "net_assembler.packets"):
            more.append(with_link["cycles"] - without["cycles"])
    assert len(more) >= 3 and max(more) <= 30


@pytest.mark.thorough
@pytest.mark.parametrize(("nodes", "old"), [(2, 0), (3, 2)])
def test_a_node_with_its_old_epoch_is_named(nodes, old):
    """Its healthy peers, which it has given up, are not named as the cause."""
    job = Run(_options(None, "link_tries=4", "link_timeout_first=2000", "link_timeout_most=4000",
                       nodes=nodes, samples=48, patience=20_000))
    for node, registers in enumerate(job.registers):
        registers.write("link_epoch", 7 if node != old else 6)
    result = job.execute()
    line, = failures(result)
    assert f"link_epoch of node {old} is 6, of node" in line and "given up" not in line
    assert result["complete"] and "link=true" not in line
