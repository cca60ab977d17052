import pytest

from gen.timing.cells import Pin, timing_of
from tests.gen.timing.tables import arcs

O = Pin("O")  # noqa: E741


def test_a_mux_of_two_luts_has_the_wire_from_them():
    # 25 + 70 from the LUT at I0, 21 + 70 from the LUT at I1, 77 from the select.
    assert arcs(timing_of("MUXF7", {}, {})) == {
        (Pin("I0"), O): (95, 0), (Pin("I1"), O): (91, 0), (Pin("S"), O): (77, 0)}


@pytest.mark.parametrize("kind", ["MUXF8", "MUXF9"])
def test_a_mux_of_muxes_has_no_such_wire(kind):
    assert arcs(timing_of(kind, {}, {})) == {
        (Pin("I0"), O): (70, 0), (Pin("I1"), O): (70, 0), (Pin("S"), O): (77, 0)}
