from gen.timing.cells import Pin, timing_of
from tests.gen.timing.tables import arcs, captures, launches


def test_a_shift_register_of_32():
    timing = timing_of("SRLC32E", {}, {"A": 5, "CE": 1, "CLK": 1, "D": 1, "Q": 1, "Q31": 1})
    assert (timing.kind, timing.clocks) == ("shift", ("CLK",))
    # A[0] is the LUT's A2, A[4] its A6.
    assert arcs(timing) == {(Pin("A", bit), Pin("Q")): (ps, 0)
                            for bit, ps in enumerate([125, 100, 90, 50, 35])}
    assert launches(timing) == {Pin("Q"): (312, 0), Pin("Q31"): (312, 0)}
    assert captures(timing) == {Pin("D"): (81, "data", 0), Pin("CE"): (180, "enable", 0)}


def test_a_shift_register_of_16_has_a_port_for_each_address_bit():
    timing = timing_of("SRL16E", {}, {"A0": 1, "A1": 1, "A2": 1, "A3": 1, "Q": 1})
    assert arcs(timing) == {(Pin(f"A{bit}"), Pin("Q")): (ps, 0)
                            for bit, ps in enumerate([125, 100, 90, 50])}
    assert launches(timing) == {Pin("Q"): (312, 0)}
