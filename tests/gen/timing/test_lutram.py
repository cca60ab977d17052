import pytest

from gen.timing.cells import Inner, Pin, timing_of
from tests.gen.timing.tables import arcs, bus, captures, launches

WRITE_ADDRESS = [117, 114, 113, 112, 86, 96]


def test_simple_dual_port_of_64_words():
    widths = {f"ADDR{x}": 6 for x in "ABCDEFGH"} | {f"DI{x}": 1 for x in "ABCDEFGH"}
    widths |= {f"DO{x}": 1 for x in "ABCDEFG"} | {"WCLK": 1, "WE": 1}
    timing = timing_of("RAM64M8", {}, widths)
    assert (timing.kind, timing.clocks) == ("lutram", ("WCLK",))
    assert arcs(timing) == {
        (Pin(f"ADDR{x}", bit), Pin(f"DO{x}")): (ps, 0) for x in "ABCDEFG"
        for bit, ps in enumerate([150, 125, 100, 90, 50, 35])}
    assert launches(timing) == {Pin(f"DO{x}"): (312, 0) for x in "ABCDEFG"}
    assert captures(timing) == {
        **{Pin("ADDRH", bit): (ps, "address", 0) for bit, ps in enumerate(WRITE_ADDRESS)},
        **{Pin(f"DI{x}"): (69, "data", 0) for x in "ABCDEFGH"},
        Pin("WE"): (180, "write_enable", 0)}


def test_two_bits_in_a_lut_read_from_o5_and_write_di2():
    timing = timing_of("RAM32M", {}, {"ADDRA": 5, "ADDRD": 5, "DIA": 2, "DOA": 2, "WE": 1})
    assert arcs(timing) == {(Pin("ADDRA", bit), out): (ps, 0) for out in bus("DOA", 2)
                            for bit, ps in enumerate([165, 140, 115, 100, 70])}
    assert captures(timing)[Pin("DIA", 1)] == (81, "data", 0)
    assert captures(timing)[Pin("ADDRD", 4)] == (86, "address", 0)


def test_an_address_of_single_ports():
    widths = {"SPO": 1, "DPO": 1, "D": 1, "WE": 1} | {f"A{n}": 1 for n in range(6)} | {
        f"DPRA{n}": 1 for n in range(6)}
    timing = timing_of("RAM64X1D", {}, widths)
    assert arcs(timing)[Pin("DPRA0"), Pin("DPO")] == (150, 0)
    assert arcs(timing)[Pin("A5"), Pin("SPO")] == (35, 0)
    assert (Pin("A5"), Pin("DPO")) not in arcs(timing)
    assert captures(timing)[Pin("A5")] == (96, "address", 0)
    assert captures(timing)[Pin("D")] == (69, "data", 0)


def test_256_words_pass_f7_and_f8():
    timing = timing_of("RAM256X1D", {}, {"A": 8, "DPRA": 8, "DPO": 1, "SPO": 1, "D": 1, "WE": 1})
    found = arcs(timing)
    # LUT 150, wire 25, F7 70, F8 70.
    assert found[Pin("DPRA", 0), Pin("DPO")] == (315, 0)
    assert found[Pin("DPRA", 6), Pin("DPO")] == (77 + 70, 0)
    assert found[Pin("DPRA", 7), Pin("DPO")] == (77, 0)
    assert launches(timing)[Pin("DPO")] == (312 + 25 + 70 + 70, 0)
    assert captures(timing)[Pin("A", 7)] == (180, "address", 0)


def box(module, width, depth, bits):
    return timing_of(module, {"WIDTH": f"{width:032b}", "DEPTH": f"{depth:032b}",
                              "ADDR_BITS": f"{bits:032b}", "STYLE": "distributed"}, {})


def test_a_small_asynchronous_box_is_one_lut_deep():
    timing = box("ember_ram_async", 20, 64, 6)
    assert arcs(timing) == {(Pin("read_addr", bit), out): (ps, 0) for out in bus("read_data", 20)
                            for bit, ps in enumerate([150, 125, 100, 90, 50, 35])}
    assert launches(timing) == dict.fromkeys(bus("read_data", 20), (312, 0))
    assert captures(timing) == {
        **{Pin("write_addr", bit): (ps, "address", 0) for bit, ps in enumerate(WRITE_ADDRESS)},
        **dict.fromkeys(bus("write_data", 20), (69, "data", 0)),
        Pin("write_en"): (180, "write_enable", 0)}
    # 20 LUTs read; 7 bits each, three RAM64M8 write.
    assert timing.loads[Pin("read_addr", 0)] == 20
    assert timing.loads[Pin("write_addr", 0)] == timing.loads[Pin("write_en")] == 3
    assert timing.loads[Pin("write_data", 19)] == 1


def test_a_box_of_512_words_has_two_levels_of_selecting_luts():
    """8 banks: two LUTs of four data and two address inputs for each bit, then a LUT of two and
    one.

    Data get the fastest pins: the slowest of four is 100, of two 50. The addresses get the next
    pins: of six inputs the slowest is 150, of three 90.
    """
    found = arcs(box("ember_ram_async", 1, 512, 9))
    out = Pin("read_data")
    assert found == {
        (Pin("read_addr", 0), out): (150 + 100 + 50, 2),
        (Pin("read_addr", 1), out): (125 + 100 + 50, 2),
        (Pin("read_addr", 2), out): (100 + 100 + 50, 2),
        (Pin("read_addr", 3), out): (90 + 100 + 50, 2),
        (Pin("read_addr", 4), out): (50 + 100 + 50, 2),
        (Pin("read_addr", 5), out): (35 + 100 + 50, 2),
        (Pin("read_addr", 6), out): (150 + 50, 1),
        (Pin("read_addr", 7), out): (150 + 50, 1),
        (Pin("read_addr", 8), out): (90, 0)}


def test_writing_banks_takes_a_lut_and_a_net():
    timing = box("ember_ram_async", 9, 512, 9)
    found = captures(timing)
    # Three upper bits and the enable: a LUT of four inputs, 100.
    assert found[Pin("write_addr", 5)] == (96, "address", 0)
    assert found[Pin("write_addr", 6)] == (280, "address", 1)
    assert found[Pin("write_en")] == (280, "write_enable", 1)
    # 8 banks of two RAM64M8.
    assert timing.loads[Pin("write_en")] == timing.loads[Pin("write_addr", 8)] == 8
    assert timing.loads[Pin("write_addr", 0)] == 16
    assert timing.loads[Pin("read_addr", 0)] == 72
    assert timing.loads[Pin("read_addr", 6)] == timing.loads[Pin("read_addr", 7)] == 18
    assert timing.loads[Pin("read_addr", 8)] == 9
    assert timing.loads[Pin("write_data", 0)] == 8


def test_a_synchronous_box_ends_in_flip_flops():
    timing = box("ember_ram", 28, 32, 5)
    assert not timing.arcs
    assert launches(timing) == dict.fromkeys(bus("read_data", 28), (77, 0))
    found = captures(timing)
    # From the LUT to D 50; D may come 25 late.
    assert [found[pin] for pin in bus("read_addr", 5)] == [
        (ps + 25, "address", 0) for ps in (165, 140, 115, 100, 70)]
    assert found[Pin("read_en")] == (61, "enable", 0)
    assert timing.inner == (Inner(312 + 50 - 25),)
    assert timing.loads[Pin("read_en")] == 28
    assert timing.loads[Pin("read_addr", 0)] == 14


def test_more_registers_follow_the_first():
    first, piped = box("ember_ram", 28, 32, 5), box("ember_ram_piped", 28, 32, 5)
    assert launches(piped) == launches(first) and piped.inner == first.inner
    assert captures(piped) == {**captures(first), Pin("output_en"): (61, "enable", 0)}
    assert piped.loads[Pin("output_en")] == 28


@pytest.mark.parametrize("depth, nets", [(64, 0), (65, 1), (256, 1), (257, 2), (4096, 3)])
def test_a_level_for_each_factor_of_four(depth, nets):
    timing = box("ember_ram_async", 1, depth, (depth - 1).bit_length())
    assert launches(timing)[Pin("read_data")][1] == nets
