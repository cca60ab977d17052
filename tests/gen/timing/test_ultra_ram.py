import pytest

from gen.timing.cells import Inner, Pin, timing_of
from tests.gen.timing.tables import arcs, bus, captures, launches


@pytest.mark.parametrize("registers, a, b", [
    ({}, 1292, 2059),
    ({"OREG_A": "TRUE", "OREG_B": "TRUE"}, 767, 698),
    ({"OREG_A": "TRUE", "OREG_B": "TRUE", "OREG_ECC_A": "TRUE", "OREG_ECC_B": "TRUE"}, 326, 350)])
def test_clock_to_out(registers, a, b):
    timing = timing_of("URAM288", registers, {"DOUT_A": 72, "DOUT_B": 72, "CLK": 1})
    assert (timing.kind, timing.clocks) == ("uram", ("CLK",))
    assert launches(timing) == {**dict.fromkeys(bus("DOUT_A", 72), (a, 0)),
                                **dict.fromkeys(bus("DOUT_B", 72), (b, 0))}


@pytest.mark.parametrize("register, address, data, enable", [
    ("FALSE", 522, 536, 458), ("TRUE", 273, 272, 260)])
def test_setups_with_and_without_input_register(register, address, data, enable):
    widths = {"ADDR_A": 23, "DIN_A": 72, "EN_A": 1}
    assert captures(timing_of("URAM288", {"IREG_PRE_A": register}, widths)) == {
        **dict.fromkeys(bus("ADDR_A", 23), (address, "address", 0)),
        **dict.fromkeys(bus("DIN_A", 72), (data, "data", 0)), Pin("EN_A"): (enable, "enable", 0)}


def test_cascade_of_words():
    widths = {"CAS_IN_DOUT_A": 1, "CAS_OUT_DOUT_A": 1, "DOUT_A": 1}
    incoming, outgoing, out = Pin("CAS_IN_DOUT_A"), Pin("CAS_OUT_DOUT_A"), Pin("DOUT_A")
    first = timing_of("URAM288", {"CASCADE_ORDER_A": "FIRST"}, widths)
    assert launches(first)[outgoing] == (1402, 0) and not first.arcs
    middle = timing_of("URAM288", {"CASCADE_ORDER_A": "MIDDLE", "OREG_A": "TRUE"}, widths)
    assert launches(middle)[outgoing] == (845, 0)
    assert arcs(middle) == {(incoming, outgoing): (212, 0)}
    last = timing_of("URAM288", {"CASCADE_ORDER_A": "LAST"}, widths)
    assert arcs(last) == {(incoming, out): (193, 0)}
    kept = timing_of("URAM288", {"CASCADE_ORDER_A": "LAST", "REG_CAS_A": "TRUE"}, widths)
    assert not kept.arcs and captures(kept) == {incoming: (89, "data", 0)}


@pytest.mark.parametrize("register, arc, setup", [("FALSE", (181, 0), 384), ("TRUE", None, 301)])
def test_cascade_of_addresses(register, arc, setup):
    timing = timing_of("URAM288", {"CASCADE_ORDER_B": "MIDDLE", "REG_CAS_B": register},
                       {"CAS_IN_ADDR_B": 23, "CAS_OUT_ADDR_B": 23})
    assert arcs(timing).get((Pin("CAS_IN_ADDR_B", 3), Pin("CAS_OUT_ADDR_B", 3))) == arc
    assert captures(timing)[Pin("CAS_IN_ADDR_B", 22)] == (setup, "address", 0)
    assert launches(timing)[Pin("CAS_OUT_ADDR_B")] == (432, 0)


def test_ecc_has_no_timing():
    with pytest.raises(ValueError, match=r"^cell of type URAM288: parameter EN_ECC_RD_A must be "
                                         "one of FALSE, not 'TRUE'$"):
        timing_of("URAM288", {"EN_ECC_RD_A": "TRUE"}, {})


def box(width, depth, bits, latency=1):
    parameters = {"WIDTH": width, "DEPTH": depth, "ADDR_BITS": bits, "STYLE": "ultra"}
    if latency == 1:
        return timing_of("ember_ram", parameters, {})
    return timing_of("ember_ram_piped", {**parameters, "LATENCY": latency}, {})


def test_a_box_reads_port_a_and_writes_port_b():
    timing = box(144, 4096, 12)
    assert launches(timing) == dict.fromkeys(bus("read_data", 144), (1292, 0))
    assert captures(timing) == {
        **dict.fromkeys(bus("read_addr", 12), (522, "address", 0)),
        **dict.fromkeys(bus("write_addr", 12), (373, "address", 0)),
        **dict.fromkeys(bus("write_data", 144), (392, "data", 0)),
        Pin("write_en"): (410, "write_enable", 0), Pin("read_en"): (458, "enable", 0)}
    assert timing.loads[Pin("read_addr", 0)] == 2
    piped = box(144, 4096, 12, 2)
    assert launches(piped)[Pin("read_data")] == (767, 0)
    assert captures(piped) == {**captures(timing), Pin("output_en"): (479, "enable", 0)}
    assert piped.loads[Pin("output_en")] == 2


@pytest.mark.parametrize("depth, plain, registered", [
    (8192, 1402 + 193, 845 + 193), (16384, 1402 + 2 * 212 + 193, 845 + 2 * 212 + 193)])
def test_each_stage_of_a_box_adds_a_cascade(depth, plain, registered):
    bits = (depth - 1).bit_length()
    assert launches(box(72, depth, bits))[Pin("read_data")] == (plain, 0)
    assert launches(box(72, depth, bits, 2))[Pin("read_data")] == (registered, 0)
    assert box(72, depth, bits).loads[Pin("write_data")] == depth // 4096


@pytest.mark.parametrize("depth, inner, out", [
    (8192, 845 + 89, 767), (16384, 845 + 212 + 89, 845 + 193),
    (32768, 845 + 3 * 212 + 89, 845 + 2 * 212 + 193)])
def test_a_cascade_register_halves_the_cascade(depth, inner, out):
    timing = box(72, depth, (depth - 1).bit_length(), 3)
    assert timing.inner == (Inner(inner),)
    assert launches(timing)[Pin("read_data")] == (out, 0)


def test_one_block_has_no_cascade():
    timing = box(72, 4096, 12, 3)
    assert timing.inner == () and launches(timing)[Pin("read_data")] == (767, 0)
