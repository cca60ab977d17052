"""Training frames may arrive in any order without changing rows and weights."""

import pytest

from tests.sim.training.compiled_nics import trained, write

HEAVY = "reorder=0.5:40us,delay=0.2:20us"

MODES = {
    "sums": {}, "rounded": {"settings": ("gradient_partials=rounded",)},
    "all to owners": {"settings": ("local_reduction=false",)},
    "overtake": {"settings": ("overtake=true", "output_queues=true")},
    "unique": {"settings": ("deliver=unique", "completions=true")},
    "adagrad": {"optimizer": "rowwise-adagrad", "learning_rate": 0.2},
}


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> str:
    return write(tmp_path_factory.mktemp("model"))


def _weights(path: str, **given) -> str:
    result, _ = trained(path, **{"nodes": 3, "samples": 48} | given)
    if "faults" in given:
        opcodes = {row["opcode"] for row in result["faults"]["injected"]}
        assert opcodes == {"LOOKUPS", "VECTORS", "PARTIALS", "STEPS"}
    return result["weights_sha256"]


@pytest.mark.thorough
@pytest.mark.parametrize("given", MODES.values(), ids=MODES)
def test_gradients_and_ends_of_steps_in_any_order(path, given):
    assert _weights(path, faults=HEAVY, **given) == _weights(path, fidelity="model", **given)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("given", MODES.values(), ids=MODES)
def test_many_orders(path, given, seed):
    assert _weights(path, faults=f"{HEAVY},seed={seed}", **given) == _weights(
        path, fidelity="model", **given)
