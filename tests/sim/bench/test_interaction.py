"""The bench row of a NIC with its interaction."""

import pytest

from host.model import MODELS
from sim.bench.interaction import interaction_job, interaction_row
from tests.sim.interacting import NIC


@pytest.mark.thorough
def test_the_row_says_what_binds():
    told = []
    row = interaction_row("tiny", MODELS["avazu"], 2, told.append, NIC)
    assert told and told[-1] == "20 of 20 samples"
    assert (row.unit, row.sense, row.target) == ("cycles/result", "<=", None)
    assert row.bound is not None and 20.3 < row.bound < row.value
    assert row.note.startswith("16 samples in ") and "; bottleneck " in row.note
    # A dense vector and 231 dots, at 12.59 GB/s in cycles of 4 ns.
    assert row.note.endswith("the 16 beats of a result alone take 20.3 cycles of PCIe")


@pytest.mark.slow
def test_pcie_binds_a_nic_whose_rows_are_cached():
    [row] = interaction_job().measure(lambda line: None)
    assert "bottleneck PCIe to the host," in row.note and "0 of 106,496 lookups" in row.note
    assert row.note.endswith("the 23 beats of a result alone take 29.2 cycles of PCIe")
    assert row.bound == pytest.approx(31.35, abs=0.01) and row.value < 1.02 * row.bound
