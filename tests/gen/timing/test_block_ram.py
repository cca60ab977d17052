import pytest

from gen.timing.cells import Inner, Pin, timing_of
from tests.gen.timing.tables import arcs, bus, captures, launches

READ = {"DOUTADOUT": 32, "DOUTPADOUTP": 4, "CLKARDCLK": 1, "CLKBWRCLK": 1}


@pytest.mark.parametrize("kind", ["RAMB36E2", "RAMB18E2"])
@pytest.mark.parametrize("register, ps", [(0, 1003), (1, 229)])
def test_clock_to_out(kind, register, ps):
    timing = timing_of(kind, {"DOA_REG": f"{register:032b}"}, READ)
    assert (timing.kind, timing.clocks) == ("bram", ("CLKARDCLK", "CLKBWRCLK"))
    assert launches(timing) == dict.fromkeys([*bus("DOUTADOUT", 32), *bus("DOUTPADOUTP", 4)],
                                             (ps, 0))


def test_setups():
    widths = {"ADDRBWRADDR": 15, "DINBDIN": 32, "WEBWE": 8, "ENBWREN": 1, "REGCEB": 1,
              "RSTREGB": 1}
    assert captures(timing_of("RAMB36E2", {}, widths)) == {
        **dict.fromkeys(bus("ADDRBWRADDR", 15), (383, "address", 0)),
        **dict.fromkeys(bus("DINBDIN", 32), (313, "data", 0)),
        **dict.fromkeys(bus("WEBWE", 8), (394, "write_enable", 0)),
        Pin("ENBWREN"): (342, "enable", 0), Pin("REGCEB"): (233, "enable", 0),
        Pin("RSTREGB"): (313, "reset", 0)}


def test_cascade():
    cascade = {"CASDINA": 2, "CASDOUTA": 2, "DOUTADOUT": 2}
    first = timing_of("RAMB36E2", {"CASCADE_ORDER_A": "FIRST"}, cascade)
    assert launches(first)[Pin("CASDOUTA", 1)] == (1156, 0) and not first.arcs
    middle = timing_of("RAMB36E2", {"CASCADE_ORDER_A": "MIDDLE"}, cascade)
    assert arcs(middle) == {(Pin("CASDINA", n), Pin("CASDOUTA", n)): (210, 0) for n in (0, 1)}
    last = timing_of("RAMB36E2", {"CASCADE_ORDER_A": "LAST"}, cascade)
    assert arcs(last) == {(Pin("CASDINA", n), Pin("DOUTADOUT", n)): (117, 0) for n in (0, 1)}
    kept = timing_of("RAMB36E2", {"CASCADE_ORDER_A": "LAST", "DOA_REG": 1}, cascade)
    assert not kept.arcs
    assert captures(kept) == dict.fromkeys(bus("CASDINA", 2), (69, "data", 0))


def test_an_order_that_does_not_exist():
    with pytest.raises(ValueError, match=r"^cell of type RAMB36E2: parameter CASCADE_ORDER_B must "
                                         "be one of NONE, FIRST, MIDDLE, LAST, not 'SECOND'$"):
        timing_of("RAMB36E2", {"CASCADE_ORDER_B": "SECOND"}, {})


def box(width, depth, bits, module="ember_ram"):
    return timing_of(module, {"WIDTH": width, "DEPTH": depth, "ADDR_BITS": bits,
                              "STYLE": "block"}, {})


def test_a_box_of_eight_rams_side_by_side():
    timing = box(576, 512, 9)
    assert launches(timing) == dict.fromkeys(bus("read_data", 576), (1003, 0))
    assert captures(timing) == {
        **dict.fromkeys([*bus("read_addr", 9), *bus("write_addr", 9)], (383, "address", 0)),
        **dict.fromkeys(bus("write_data", 576), (313, "data", 0)),
        Pin("write_en"): (394, "write_enable", 0), Pin("read_en"): (342, "enable", 0)}
    assert timing.loads[Pin("read_addr", 8)] == timing.loads[Pin("write_en")] == 8
    assert timing.loads[Pin("write_data", 0)] == 1
    piped = box(576, 512, 9, "ember_ram_piped")
    assert launches(piped)[Pin("read_data")] == (229, 0)
    assert captures(piped) == {**captures(timing), Pin("output_en"): (233, "enable", 0)}
    assert piped.loads[Pin("output_en")] == 8


def test_a_box_of_three_rams_in_depth():
    """36 bits of 3072 words are 3 RAMB36 of 1024 x 36: any other shape is at least as deep.

    FIRST 1156, MIDDLE 210, LAST 117. Two upper bits and the enable are a LUT of three inputs, 90.
    """
    timing = box(36, 3072, 12)
    assert launches(timing)[Pin("read_data", 35)] == (1156 + 210 + 117, 0)
    found = captures(timing)
    assert found[Pin("read_addr", 9)] == (383, "address", 0)
    assert found[Pin("read_addr", 10)] == (342 + 90, "address", 1)
    assert found[Pin("read_en")] == (342 + 90, "enable", 1)
    assert found[Pin("write_addr", 11)] == (394 + 90, "address", 1)
    assert found[Pin("write_en")] == (394 + 90, "write_enable", 1)
    assert timing.loads[Pin("read_en")] == timing.loads[Pin("read_addr", 0)] == 3
    assert timing.inner == ()


def test_a_cascade_ends_in_the_output_register_of_the_last():
    timing = box(36, 3072, 12, "ember_ram_piped")
    assert launches(timing)[Pin("read_data")] == (229, 0)
    assert timing.inner == (Inner(1156 + 210 + 69),)


def test_depth_that_widths_can_hold_is_no_cascade():
    # 16 bits of 16384 words: 8 RAMB36 of 16384 x 2 side by side, not 16 in depth.
    timing = box(16, 16384, 14)
    assert launches(timing)[Pin("read_data")] == (1003, 0)
    assert timing.loads[Pin("read_addr", 13)] == 8
