"""The carry of UltraScale+ is a CARRY8; a chain of CARRY4 becomes a CARRY8."""

from gen.timing.cells import Pin, merge_carries, timing_of
from tests.gen.timing.tables import arcs


def test_carry8():
    found = arcs(timing_of("CARRY8", {}, {}))
    # 26 into the site, 23 through it; the sum behind it: 26 + 116.
    assert found[Pin("CI"), Pin("CO", 7)] == (49, 0)
    assert found[Pin("CI"), Pin("O", 7)] == (142, 0)
    assert found[Pin("CI"), Pin("O", 0)] == (82, 0)
    assert found[Pin("CYINIT"), Pin("CO", 7)] == (160, 0)
    # 15 from the LUT to S.
    assert found[Pin("S", 0), Pin("CO", 7)] == (214, 0)
    assert found[Pin("S", 0), Pin("O", 0)] == (80, 0)
    assert found[Pin("S", 7), Pin("CO", 7)] == (139, 0)
    assert found[Pin("DI", 3), Pin("O", 4)] == (147, 0)
    assert found[Pin("DI", 7), Pin("CO", 7)] == (60, 0)


def test_a_carry_reaches_upwards_only():
    found = arcs(timing_of("CARRY8", {}, {}))
    # The carry out of a bit depends on S and DI of the bits up to it. Its sum depends on the same S
    # and on DI of the lower bits.
    for target in range(8):
        for source in range(8):
            below, equal = source < target, source == target
            assert ((Pin("S", source), Pin("CO", target)) in found) == (below or equal)
            assert ((Pin("S", source), Pin("O", target)) in found) == (below or equal)
            assert ((Pin("DI", source), Pin("CO", target)) in found) == (below or equal)
            assert ((Pin("DI", source), Pin("O", target)) in found) == below


def test_a_carry4_is_the_lower_half():
    low, all_ = arcs(timing_of("CARRY4", {}, {})), arcs(timing_of("CARRY8", {}, {}))
    assert low == {ends: ps for ends, ps in all_.items()
                   if all(pin.bit < 4 for pin in ends)}
    assert low[Pin("CI"), Pin("CO", 3)] == (86, 0)


def test_an_adder_of_24_bits():
    """The path: S of bit 0, through two CARRY8, to the sum of bit 23."""
    found = arcs(timing_of("CARRY8", {}, {}))
    path = (found[Pin("S", 0), Pin("CO", 7)][0] + found[Pin("CI"), Pin("CO", 7)][0]
            + found[Pin("CI"), Pin("O", 7)][0])
    assert path == (15 + 199) + (26 + 23) + (26 + 116) == 405


def _carry4(first: int, carry_in, cyinit="0", *, sums: bool = True):
    connections = {"CI": [carry_in], "CYINIT": [cyinit], "DI": ["0"] * 4,
                   "S": [first + 100 + bit for bit in range(4)],
                   "CO": [first + bit for bit in range(4)]}
    if sums:
        connections["O"] = [first + 50 + bit for bit in range(4)]
    return {"type": "CARRY4", "parameters": {}, "attributes": {"src": f"unit.v:{first}"},
            "connections": connections}


def test_a_chain_of_three_is_a_carry8_and_a_carry4():
    cells = {"top": _carry4(3000, 2003), "low": _carry4(1000, "0", 7),
             "middle": _carry4(2000, 1003, sums=False),
             "other": {"type": "LUT1", "connections": {"I0": [1], "O": [7]}}}
    merged = merge_carries(cells)
    assert {name: cell["type"] for name, cell in merged.items()} == {
        "top": "CARRY4", "low": "CARRY8", "other": "LUT1"}
    wide = merged["low"]["connections"]
    assert wide["CYINIT"] == [7] and wide["CI"] == ["0"]
    assert wide["CO"] == [1000, 1001, 1002, 1003, 2000, 2001, 2002, 2003]
    assert wide["O"] == [1050, 1051, 1052, 1053, "x", "x", "x", "x"]
    assert wide["S"] == [1100, 1101, 1102, 1103, 2100, 2101, 2102, 2103]
    assert merged["low"]["attributes"] == {"src": "unit.v:1000"}
    assert merged["top"] is cells["top"] and merged["top"]["connections"]["CI"] == [2003]


def test_a_carry_out_that_two_chains_read_is_paired_once():
    cells = {"low": _carry4(1000, "0"), "a": _carry4(2000, 1003), "b": _carry4(3000, 1003),
             "above_b": _carry4(4000, 3003)}
    merged = merge_carries(cells)
    assert {name: cell["type"] for name, cell in merged.items()} == {"low": "CARRY8",
                                                                     "b": "CARRY8"}
    assert merged["low"]["connections"]["CO"][4:] == [2000, 2001, 2002, 2003]
    assert merged["b"]["connections"]["CI"] == [1003]


def test_a_carry_that_cyinit_feeds_begins_a_chain():
    cells = {"low": _carry4(1000, "0"), "next": _carry4(2000, "0", 1003)}
    assert merge_carries(cells) == cells


def test_carries_in_a_ring_are_left():
    cells = {"a": _carry4(1000, 2003), "b": _carry4(2000, 1003)}
    assert merge_carries(cells) == cells


def test_bits_that_are_not_connected_join_nothing():
    low = _carry4(1000, "0")
    low["connections"]["CO"][3] = "x"
    cells = {"low": low, "next": _carry4(2000, "x")}
    assert merge_carries(cells) == cells
