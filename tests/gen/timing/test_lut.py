from gen.timing.cells import LUT_PINS, Arc, Pin, timing_of
from gen.timing.cells.lut import lut_pin


def test_the_arcs_of_a_lut_are_left_to_the_order_of_arrival():
    timing = timing_of("LUT3", {"INIT": "10010110"}, {"I0": 1, "I1": 1, "I2": 1, "O": 1})
    assert timing.kind == "lut"
    assert timing.arcs == (Arc(Pin("I0"), Pin("O"), 0), Arc(Pin("I1"), Pin("O"), 0),
                           Arc(Pin("I2"), Pin("O"), 0))
    assert not timing.launches and not timing.captures


def test_pins():
    assert LUT_PINS == (150, 125, 100, 90, 50, 35)
    assert [lut_pin(rank) for rank in range(1, 7)] == [35, 50, 90, 100, 125, 150]
