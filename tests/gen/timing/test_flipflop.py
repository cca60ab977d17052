import pytest

from gen.timing.cells import Pin, timing_of
from tests.gen.timing.tables import captures, launches


@pytest.mark.parametrize("kind, reset", [("FDRE", "R"), ("FDSE", "S"), ("FDCE", "CLR"),
                                         ("FDPE", "PRE")])
def test_flip_flop(kind, reset):
    timing = timing_of(kind, {"INIT": "0"}, {"C": 1, "CE": 1, "D": 1, "Q": 1, reset: 1})
    assert (timing.kind, timing.clocks, timing.arcs) == ("ff", ("C",), ())
    assert launches(timing) == {Pin("Q"): (77, 0)}
    # The text's line is "CLK D -25": data may come 25 ps after the edge.
    assert captures(timing) == {Pin("D"): (-25, "data", 0), Pin("CE"): (61, "enable", 0),
                                Pin(reset): (72, "reset", 0)}
