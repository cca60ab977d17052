"""Locations of rows in GPU memory, and whether a NIC can read all of them."""

from dataclasses import replace

import pytest

from host.placement.shard import Placement, ShardPlan
from host.timing.gpu import GpuProfile
from host.toml.profile import load_profile, profile_names
from rtl.formats import DescriptorKind, TableDescriptor
from sim.job.row_places import ROWS_BASE, RowPlaces, check_bar, row_registers

PLAN = ShardPlan(4, (Placement(DescriptorKind.TABLE, 7, 1), Placement(DescriptorKind.REPLICATED, 3),
                     Placement(DescriptorKind.ROW, 100, 1, 2),
                     Placement(DescriptorKind.TABLE, 11, 3)))
GPU = load_profile("gpu_rtx8000", GpuProfile)


@pytest.mark.parametrize("node, tables, bases, end", [
    (0, (1,), (0, 0, 0, 0), 3), (1, (0, 1, 2), (0, 7, 10, 0), 110),
    (2, (1, 2), (0, 0, 3, 0), 103), (3, (1, 3), (0, 0, 0, 3), 14)])
def test_tables_of_a_node_lie_one_behind_the_other(node, tables, bases, end):
    """A table that is split by rows is complete on each node."""
    for dimension in (4, 64):
        places, size = RowPlaces.of(PLAN, node, dimension), 4 * dimension
        assert (places.tables, places.row_bytes, places.units) == (tables, size, dimension // 4)
        assert (places.bases, places.end) == (tuple(size * base for base in bases), size * end)


def test_descriptors_and_registers_say_so():
    bases = [0, 16, 0x1_2345_6780, 1 << 43]
    words = PLAN.descriptors(bases)
    at = TableDescriptor["base"].offset // 32
    assert [int(low) | int(high) << 32 for low, high in words[:, at:at + 2]] == bases
    assert not PLAN.descriptors()[:, at:].any()
    values = row_registers()
    assert values["row_reads"] == 1
    assert values["rows_base_high"] << 32 | values["rows_base_low"] == ROWS_BASE


def test_tables_must_fit_the_bar():
    small = replace(GPU, bar_gib=110 * 64 / (1 << 30))
    check_bar(PLAN, 16, small)
    with pytest.raises(ValueError, match=r"row_reads must be false where the tables of a node, "
                       r"\S+ GiB at node 1, are larger than the BAR of its GPU, \S+ GiB "
                       r"\(bar_gib of gpu_rtx8000\), not True"):
        check_bar(PLAN, 32, small)
    with pytest.raises(ValueError, match="bar_gib must be above 0, not 0"):
        replace(GPU, bar_gib=0)


def test_every_profile_says_what_a_nic_sees():
    for name in profile_names("gpu_"):
        assert "bar_gib" in load_profile(name, GpuProfile).source, name
