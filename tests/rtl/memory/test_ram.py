"""RAM contents against a dict. A read in the cycle of a write returns the old word."""

import random

import pytest

from gen.netlist.netlists import map_units
from gen.verilog.convert import to_verilog
from rtl.memory import Ram
from tests.rtl.power_up import powered_up
from tests.support import made, simulate


@pytest.mark.parametrize(("latency", "style"), [(0, "auto"), (1, "auto"), (2, "bram"), (3, "uram")])
@pytest.mark.parametrize(("width", "depth"), [(1, 1), (9, 5), (64, 16)])
def test_reads_what_was_written(latency, style, width, depth):
    dut = made(Ram, width, depth, latency=latency, style=style)
    rng = random.Random(width)

    async def bench(ctx):
        words: dict[int, int] = {}
        # The pipeline registers, the last is read_data; None is unknown.
        way: list[int | None] = [None] * latency
        for _ in range(300):
            write, read, output = rng.random() < 0.6, rng.random() < 0.8, rng.random() < 0.8
            where, word = rng.randrange(depth), rng.getrandbits(width)
            at = rng.choice([where, rng.randrange(depth)])
            ctx.set(dut.write_en, write)
            ctx.set(dut.write_addr, where)
            ctx.set(dut.write_data, word)
            ctx.set(dut.read_en, read)
            ctx.set(dut.read_addr, at)
            if latency > 1:
                ctx.set(dut.output_en, output)
            if latency == 0 and at in words:
                assert ctx.get(dut.read_data) == words[at]
            await ctx.tick()
            if latency:
                last = way[-1]
                way = [words.get(at) if read else way[0], *way[:-1]]
                if latency > 1 and not output:
                    way[-1] = last
                if way[-1] is not None:
                    assert ctx.get(dut.read_data) == way[-1]
            if write:
                words[where] = word

    simulate(powered_up(dut), bench)


@pytest.mark.parametrize(("arguments", "said"), [
    ({"width": 0, "depth": 4}, "width must be a positive integer, not 0"),
    ({"width": 4, "depth": "8"}, "depth must be a positive integer, not '8'"),
    ({"width": 4, "depth": 8, "style": "tape"}, "style must be one of .*, not 'tape'"),
    ({"width": 4, "depth": 8, "latency": 3},
     "latency must be one of 0, 1, 2 for style auto, not 3"),
    ({"width": 4, "depth": 8, "latency": 0, "style": "uram"},
     "latency must be one of 1, 2, 3 for style uram, not 0"),
])
def test_arguments(arguments, said):
    with pytest.raises(ValueError, match=said):
        Ram(**arguments)


@pytest.mark.thorough
@pytest.mark.parametrize(("latency", "style", "kind"), [(2, "bram", "block"), (3, "uram", "ultra")])
def test_the_registers_are_in_the_primitive(latency, style, kind):
    """Yosys maps the memory to a black box with all of its registers inside."""
    verilog = to_verilog(Ram(72, 8192, style=style, latency=latency), "ram")
    (cell,) = next(iter(map_units(verilog, ["ram"], lambda _unit, netlist: netlist).values()))[
        "cells"].values()
    assert cell["type"] == "ember_ram_piped"
    assert cell["parameters"]["STYLE"].strip() == kind
    assert int(cell["parameters"]["LATENCY"], 2) == latency
