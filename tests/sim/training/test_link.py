"""Training over a reliable link: lost and changed frames do not change the weights."""

import pytest

from sim.faults.cells import EVERYTHING
from tests.sim.training.compiled_nics import NIC, trained, write

MODES = {
    "sums": {}, "adagrad": {"optimizer": "rowwise-adagrad", "learning_rate": 0.2},
    "unique": {"settings": ("deliver=unique", "completions=true")}}


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> str:
    return write(tmp_path_factory.mktemp("model"))


@pytest.mark.thorough
@pytest.mark.parametrize("given", MODES.values(), ids=MODES)
def test_weights_stay(path, given):
    calm = trained(path, fidelity="model", nodes=3, samples=48, **given)[0]
    result, _ = trained(path, nic=(*NIC, "link=true"), nodes=3, samples=48,
                        faults=EVERYTHING.format(rate=0.03), **given)
    assert result["weights_sha256"] == calm["weights_sha256"]
    opcodes = {row["opcode"] for row in result["faults"]["injected"]}
    assert opcodes >= {"LOOKUPS", "VECTORS", "PARTIALS", "STEPS", "LINK"}
    assert sum(node["link_sender.repeated"] for node in result["counters"]) > 0
