"""Runs whose tables pool at their owner: own bags, and the notes of a report."""

import pytest

from sim.job.options import RunOptions
from sim.run.run import run

GIVEN = {"config": "tiny", "model": "multi_hot", "samples": 64, "mini_batch": 16, "threads": 1}


@pytest.fixture(scope="module")
def requester() -> dict:
    return run(RunOptions.of(**GIVEN, nodes=2))


def test_tables_that_pool_at_the_requester_are_noted(requester):
    result = run(RunOptions.of(**GIVEN, nodes=2, placement="row", pool="owner"))
    assert result["notes"] == [
        f"table {number} pools at the requester: its rows are hashed over 2 nodes"
        for number in range(8)]
    assert result["bags"] is None and result["options"]["pool"] == "owner"
    assert result["config"]["owner_bags"] == 0 and result["bit_identical"]
    assert result["predictions_sha256"] == requester["predictions_sha256"]
    assert requester["notes"] == [] and requester["bags"] is None


def test_auto_moves_fewer_bytes_than_either_place():
    given = RunOptions.of(**GIVEN | {"samples": 512, "mini_batch": 256}, nodes=2, fidelity="fast",
                          settings=("remote_cache_rows=4096",))
    found = {pool: run(given.with_fields(pool=pool)) for pool in ("auto", "requester", "owner")}
    auto = found["auto"]
    assert auto["complete"] and auto["options"]["pool"] == "auto"
    assert auto["notes"][0].startswith("pool auto: 3 of 8 tables pool at the owner, ")
    assert auto["bags"]["pool"].count("owner") == 3
    moved = {pool: result["network"]["bytes"] for pool, result in found.items()}
    assert moved["auto"] < 0.95 * min(moved["requester"], moved["owner"])


@pytest.mark.thorough  # compiles a NIC with owner pooling
@pytest.mark.parametrize("changes", [{"nodes": 1}, {"nodes": 2, "copied_rows": 20_000_000},
                                     {"nodes": 1, "settings": ("completions=true",)}])
def test_a_node_with_all_rows_pools_all_bags(requester, changes):
    result = run(RunOptions.of(**GIVEN, pool="owner", **changes))
    assert result["complete"] and result["bit_identical"]
    assert result["predictions_sha256"] == requester["predictions_sha256"]
    bags = result["bags"]
    assert bags["pool"] == ["owner"] * 8 and (bags["foreign"], bags["lists"]) == (0, 0)
    assert bags["keys"] == result["lookups"] and bags["launches"] <= 4 * changes["nodes"]
    assert 0 < bags["own"] <= 64 * 8 and result["gpu"]["rows"] == 0
    assert result["config"]["owner_bags"] == 64


@pytest.mark.thorough  # its NIC has places for bags
@pytest.mark.parametrize(("nodes", "some", "settings"), [
    (2, False, "interaction=true"), (2, True, "interaction=true"), (3, True, "interaction=true"),
    (2, False, "deliver=unique"), (2, True, "deliver=unique"), (3, True, "deliver=unique")])
def test_every_delivery_gives_the_same_predictions(requester, tmp_path, nodes, some, settings):
    """Pool all tables at their owner, or ``some`` beside tables that pool at the requester."""
    pool = tmp_path / "pool.toml"
    pool.write_text("owner = [0, 2, 3, 7]\n")
    result = run(RunOptions.of(**GIVEN, nodes=nodes, pool=pool if some else "owner",
                               settings=(settings,)))
    assert result["complete"] and result["bit_identical"]
    assert result["predictions_sha256"] == requester["predictions_sha256"]
    bags = result["bags"]
    assert bags["pool"].count("owner") == (4 if some else 8) and bags["lists"] > 0
    # The interaction needs the node's own bags too.
    assert bool(bags["own"]) == (settings == "deliver=unique")
