"""DSP48E2 without registers, as Yosys writes it, and with the registers that a design may use."""

import pytest

from gen.timing.cells import Inner, Pin, timing_of
from tests.gen.timing.tables import arcs, captures, launches

NONE = dict.fromkeys(
    ("AREG", "BREG", "CREG", "DREG", "ADREG", "MREG", "PREG", "OPMODEREG", "ALUMODEREG",
     "INMODEREG", "CARRYINREG", "CARRYINSELREG"), "0" * 32)
FACTORS = {"A": 30, "B": 18, "P": 48}


def test_a_product_without_registers():
    timing = timing_of("DSP48E2", NONE, FACTORS)
    assert (timing.kind, timing.clocks) == ("dsp", ("CLK",))
    assert not timing.launches and not timing.captures and not timing.inner
    found = arcs(timing)
    # In, to the multiplier, product, to the adder, sum, out.
    assert found[Pin("A", 0), Pin("P", 0)] == (192 + 77 + 618 + 49 + 586 + 109, 0) == (1631, 0)
    assert found[Pin("B", 17), Pin("P", 47)] == (163 + 77 + 618 + 49 + 586 + 109, 0)


def test_a_bit_of_the_product_depends_on_those_up_to_it():
    found = arcs(timing_of("DSP48E2", NONE, FACTORS))
    assert (Pin("A", 26), Pin("P", 26)) in found
    assert (Pin("A", 26), Pin("P", 25)) not in found
    # The multiplier takes 27 of A's 30 bits.
    assert not any(source == Pin("A", 27) for source, _ in found)


def test_the_sum_and_the_cascade():
    found = arcs(timing_of("DSP48E2", NONE, {"C": 48, "PCIN": 48, "P": 48, "PCOUT": 48}))
    assert found[Pin("C", 5), Pin("P", 5)] == (192 + 586 + 109, 0)
    assert found[Pin("PCIN", 5), Pin("P", 47)] == (598 + 109, 0)
    assert found[Pin("PCIN", 5), Pin("PCOUT", 47)] == (598 + 133, 0)
    assert (Pin("C", 5), Pin("P", 4)) not in found


def test_registers_before_and_behind_a_product():
    timing = timing_of("DSP48E2", NONE | {"AREG": 1, "BREG": 1, "PREG": 1},
                       FACTORS | {"CEA2": 1, "CEP": 1, "CEM": 1, "RSTP": 1, "PCIN": 48})
    assert not timing.arcs
    assert launches(timing) == {Pin("P", bit): (220, 0) for bit in range(48)}
    found = captures(timing)
    assert found[Pin("A", 29)] == (192, "data", 0) and found[Pin("B", 0)] == (163, "data", 0)
    assert found[Pin("PCIN", 0)] == (598 - 8, "data", 0)
    assert found[Pin("CEA2")] == found[Pin("CEP")] == (159, "enable", 0)
    assert found[Pin("RSTP")] == (159, "reset", 0)
    assert Pin("CEM") not in found
    assert timing.inner == (Inner(220 + 77 + 618 + 49 + 586 - 8),) == (Inner(1542),)


def test_a_register_behind_the_multiplier():
    timing = timing_of("DSP48E2", NONE | {"MREG": 1}, FACTORS)
    assert captures(timing)[Pin("A")] == (192 + 77 + 618 + 66, "data", 0)
    assert launches(timing)[Pin("P", 47)] == (220 + 49 + 586 + 109, 0)
    assert not timing.arcs and not timing.inner


def test_a_pre_adder():
    settings = NONE | {"AMULTSEL": "AD"}
    widths = FACTORS | {"D": 27}
    found = arcs(timing_of("DSP48E2", settings, widths))
    tail = 77 + 618 + 49 + 586 + 109
    assert found[Pin("A"), Pin("P")] == found[Pin("D"), Pin("P")] == (192 + 504 + tail, 0)
    assert found[Pin("B"), Pin("P")] == (163 + tail, 0)
    kept = timing_of("DSP48E2", settings | {"ADREG": 1}, widths)
    assert captures(kept)[Pin("D")] == (192 + 504 + 66, "data", 0)
    assert launches(kept)[Pin("P")] == (220 + tail, 0)
    assert arcs(kept)[Pin("B"), Pin("P")] == (163 + tail, 0)
    assert (Pin("A"), Pin("P")) not in arcs(kept)


def test_all_registers_are_there_where_no_parameter_says_otherwise():
    timing = timing_of("DSP48E2", {}, FACTORS | {"C": 48, "OPMODE": 9})
    assert not timing.arcs
    assert captures(timing)[Pin("OPMODE", 8)] == (192, "control", 0)
    assert captures(timing)[Pin("C", 47)] == (192, "data", 0)
    # Multiplier register to sum: 220 + 49 + 586 - 8; factor to multiplier register is longer.
    assert timing.inner == (Inner(220 + 77 + 618 + 66),)


def test_factors_that_come_by_cascade():
    found = arcs(timing_of("DSP48E2", NONE | {"A_INPUT": "CASCADE"},
                           {"A": 30, "ACIN": 30, "ACOUT": 30, "P": 48}))
    assert found[Pin("ACIN", 3), Pin("ACOUT", 3)] == (192, 0)
    assert (Pin("ACIN", 0), Pin("P", 0)) in found
    assert not any(source.port == "A" for source, _ in found)


@pytest.mark.parametrize("name, value, allowed", [
    ("USE_PATTERN_DETECT", "PATDET", "NO_PATDET"), ("AMULTSEL", "D", "A, AD"),
    ("USE_MULT", "SOME", "MULTIPLY, DYNAMIC, NONE")])
def test_settings_that_have_no_timing(name, value, allowed):
    with pytest.raises(ValueError, match=f"^cell of type DSP48E2: parameter {name} must be one of "
                                         f"{allowed}, not '{value}'$"):
        timing_of("DSP48E2", NONE | {name: value}, FACTORS)
