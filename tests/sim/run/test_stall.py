"""Parts of a cluster that fall silent: no data is lost, and counters name the part."""

import pytest

from sim.job.options import RunOptions
from sim.nic.stalls import CAUSES, stalls
from sim.run.report import failures
from sim.run.run import run
from tests.sim.silences import least_delay

MS = 250_000
"""Cycles of 1 ms."""

IN_FLIGHT = 3

SILENT = {
    "host": "host_assembler.stall_output",
    "gpu": "gpu_answers.stall_answers",
    "network": "net_assembler.stall_output",
}
"""The counter that names each part."""


def _run(**options) -> dict:
    return run(RunOptions.of(config="tiny", nodes=4, samples=96, mini_batch=16,
                          in_flight=IN_FLIGHT, threads=1, placement="row", **options))


@pytest.fixture(scope="module")
def calm() -> dict:
    result = _run()
    assert failures(result) == []
    return result


@pytest.mark.thorough
@pytest.mark.few(2)
@pytest.mark.parametrize("node", [
    pytest.param("", id="every node"),
    pytest.param("@2", id="one node", marks=pytest.mark.slow)])
@pytest.mark.parametrize(("part", "us"), [
    ("gpu", 400), ("host", 400), ("network", 400),
    *(pytest.param(part, 1000, marks=pytest.mark.slow) for part in ("gpu", "host", "network"))])
def test_a_silence_loses_nothing_and_is_named(calm, part, us, node):
    whole = us * MS // 1000
    result = _run(faults=f"silent-{part}=8us:{us}us{node}")
    assert failures(result) == []
    assert result["bit_identical"]
    assert result["predictions_sha256"] == calm["predictions_sha256"]
    assert all(latency > 8 + us for latency in result["latencies_us"][:IN_FLIGHT])
    assert result["cycles"] - calm["cycles"] >= least_delay(calm, 8, us, IN_FLIGHT) > 0

    def grown(name: str) -> list[int]:
        return [after - before for after, before in zip(result["stalls"]["counters"][name],
                                                        calm["stalls"]["counters"][name])]

    silent = [2] if node else [0, 1, 2, 3]
    for name in SILENT.values():
        waited = [cycles > 0.9 * whole for cycles in grown(name)]
        if name == SILENT[part]:
            if part == "host" and not node:
                # A NIC without packets to send cannot distinguish a silent host from a silent GPU.
                rows = grown(SILENT["gpu"])
                waited = [held or rows[number] > 0.9 * whole for number, held in enumerate(waited)]
            assert [number for number in silent if waited[number]] == silent
            assert not node or sum(waited) == 1
        elif part != "host" or not name.startswith("gpu"):
            # A silent host sends no rows either; the other parts cause no further stalls.
            assert not any(waited)
    named = {stall["cause"]: stall for stall in result["stalls"]["by_cause"]}
    if part == "host" and not node:
        return
    assert named[part]["counter"] == SILENT[part]
    assert named[part]["cycles"] > 0.9 * whole
    assert named[part]["node"] in silent
    assert named[part]["means"] == CAUSES[SILENT[part]][1]


def test_two_silences_of_different_parts(calm):
    result = _run(faults="silent-gpu=8us:30us@1,silent-network=10us:40us,silent-host=60us:20us@3")
    assert failures(result) == []
    assert result["predictions_sha256"] == calm["predictions_sha256"]


def test_every_stall_counter_has_a_cause(calm):
    counted = set(calm["stalls"]["counters"])
    assert counted - set(CAUSES) == {"request_packager.stall_credit"}  # it needs no credit
    assert set(CAUSES) <= counted
    assert not any(calm["stalls"]["counters"]["request_packager.stall_credit"])


def test_the_longest_of_each_cause():
    counters = [{"pooler.stall_adder": 5, "hold_buffer.stall_full": 7, "pooler.adds": 99,
                 "hold_buffer.stall_waiting": 6, "net_assembler.stall_output": 0},
                {"pooler.stall_adder": 8, "hold_buffer.stall_full": 1, "pooler.adds": 1,
                 "hold_buffer.stall_waiting": 9, "net_assembler.stall_output": 0}]
    found = stalls(counters)
    assert [(s["cause"], s["counter"], s["node"], s["cycles"]) for s in found["by_cause"]] == [
        ("samples", "hold_buffer.stall_waiting", 1, 9), ("vectors", "pooler.stall_adder", 1, 8)]
    assert found["counters"]["pooler.stall_adder"] == [5, 8]
    assert "pooler.adds" not in found["counters"]
