"""Resources of the SmartNIC on an Alveo U280, and the depth of its logic."""

import pytest
from amaranth.lib import wiring

from gen.documents.generate import build_nic
from gen.netlist.report import SLR, report_resources
from gen.verilog.convert import to_verilog
from gen.verilog.platform import VerilogPlatform
from host.systems.all_on_nic import NIC_DSP, PRODUCT_DSP, SLR_DSP
from rtl.cache import RemoteCache
from rtl.config import preset
from rtl.float.multiply import FloatMultiplier
from rtl.formats import Opcode
from rtl.network import RecordPackager, VectorPackager
from tests.gen.designs import deep_blocks

DEPTH = 10
"""Most LUTs between FF, RAM or DSP; a carry chain counts 1."""
SHARES = {False: 0.6, True: 0.75}
"""Largest share of one SLR, by ``training``, without link."""

TINY = preset("tiny")


def report(component: wiring.Component, name: str, **options: bool) -> dict:
    return report_resources(
        to_verilog(component, name, VerilogPlatform(name, sources=True)), **options)


@pytest.mark.thorough
def test_no_block_is_deep():
    """Check the deepest blocks of the NIC whose synthesis takes only seconds."""
    total = report(deep_blocks(), "deep")["total"]
    assert 1 < total["depth"] <= DEPTH, total["path"]


@pytest.mark.slow
@pytest.mark.parametrize("block", [
    RemoteCache(TINY), VectorPackager(TINY), RecordPackager(64, 22, Opcode.LOOKUPS, True)],
    ids=lambda block: type(block).__name__)
def test_wide_blocks_are_not_deep(block):
    """Most nets of these blocks are 512 bits wide: their synthesis takes as long as all others."""
    total = report(block, "wide", whole=True)["total"]
    assert 1 < total["depth"] <= DEPTH, total["path"]


@pytest.mark.thorough
def test_the_system_on_the_card_has_multipliers_of_this_size():
    assert SLR["dsp"] == SLR_DSP
    assert report(FloatMultiplier(), "multiplier")["total"]["dsp"] == PRODUCT_DSP


@pytest.mark.slow
@pytest.mark.parametrize("training", SHARES)
def test_kaggle_fits_one_slr(training):
    found = report(build_nic(preset("kaggle").with_fields(training=training)), "kaggle")
    deep = {block["name"]: (block["depth"], block["path"]) for block in found["blocks"]
            if block["depth"] > DEPTH}
    assert not deep
    total = found["total"]
    assert 1 < total["depth"] <= DEPTH, total["path"]
    assert total["lut"] and total["bram36"]
    assert training or total["dsp"] == NIC_DSP
    assert {kind: total[kind] for kind in SLR if total[kind] > SHARES[training] * SLR[kind]} == {}
