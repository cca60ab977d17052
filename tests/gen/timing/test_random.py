"""The engine against a slow computation, net by net in Python, on random designs."""

from collections import defaultdict
from functools import cache
from math import inf
from random import Random

import pytest

from gen.timing.cells import LUT_PINS, Pin, timing_of
from gen.timing.loops import worst_loops
from gen.timing.nets import CASES, dedicated
from gen.timing.propagate import required
from tests.gen.mapped import cell, netlist
from tests.gen.timing.circuits import analyse, ends, ff, join, lut

CLOCK, INPUTS = 2, (3, 4, 5)


def random_cells(random: Random) -> dict:
    """Return registers, LUTs, carries and multiplexers without a loop of logic."""
    registers = range(10, 10 + random.randint(1, 12))
    nets: list = ["0", "1", *INPUTS, *registers]
    cells, following = {}, 100
    for number in range(random.randint(1, 60)):
        kind = random.choice(("lut", "lut", "lut", "carry", "mux"))
        pick = lambda: random.choice(nets[-15:] if random.random() < 0.7 else nets)  # noqa: E731
        if kind == "lut":
            outputs = [following]
            made = lut(following, *(pick() for _ in range(random.randint(1, 6))))
        elif kind == "carry":
            outputs = list(range(following, following + 16))
            made = cell("CARRY8", {"CI": [pick()], "CYINIT": ["0"],
                                   "S": [pick() for _ in range(8)],
                                   "DI": [pick() for _ in range(8)]},
                        {"O": outputs[:8], "CO": outputs[8:]})
        else:
            outputs = [following]
            made = cell("MUXF7", {"I0": [pick()], "I1": [pick()], "S": [pick()]},
                        {"O": [following]})
        cells[f"{kind}{number}"] = made
        nets += outputs
        following += len(outputs)
    for q in registers:
        cells[f"ff{q}"] = ff(CLOCK, random.choice(nets), q, enable=random.choice(["1", *nets]),
                             reset=random.choice(["0", *nets]))
    return cells


class Slow:
    """Arrivals by recursion from each end."""

    def __init__(self, cells: dict, case):
        self.cells, self.case = cells, case
        self.timings = {name: timing_of(c["type"], {}, {p: len(b) for p, b in
                                                        c["connections"].items()})
                        for name, c in cells.items()}
        self.drivers: dict = {}
        self.loads: dict = defaultdict(int)
        for name, made in cells.items():
            for port, bits in made["connections"].items():
                for bit, net in enumerate(bits):
                    if made["port_directions"][port] == "output":
                        self.drivers[net] = name, Pin(port, bit)
                    elif port != "C":
                        self.loads[net] += 1
        self.at = cache(self.arrival)

    def arrival(self, net) -> float:
        if isinstance(net, str):
            return -inf
        if net in INPUTS:
            return 77
        name, pin = self.drivers[net]
        timing = self.timings[name]
        if timing.launches:
            return timing.launches[0].ps
        arcs = [(self.at_pin(name, arc.source), arc.ps) for arc in timing.arcs
                if arc.target == pin]
        if timing.kind == "lut":
            latest_first = sorted((arrived for arrived, _ in arcs), reverse=True)
            return max(a + ps for a, ps in zip(latest_first, LUT_PINS[::-1]))
        return max(arrived + ps for arrived, ps in arcs)

    def at_pin(self, name: str, pin: Pin) -> float:
        net = self.cells[name]["connections"][pin.port][pin.bit]
        driver, output = self.drivers.get(net, ("", Pin("")))
        own = driver and dedicated(self.timings[driver].kind, output.port,
                                   self.timings[name].kind, pin.port, self.loads[net])
        wire = self.case.delay(self.loads[net]) if own in ("", None) else own
        return self.at(net) + float(wire)

    def ends(self) -> dict[str, float]:
        found = {f"{name}.{end.pin.port}[0]": self.at_pin(name, end.pin) + end.ps
                 for name, timing in self.timings.items() for end in timing.captures}
        return {end: ps for end, ps in found.items() if ps > -inf}


def in_units(cells: dict, random: Random) -> dict:
    """Return ``cells`` as a design in which some cells are in unit ``u``, instance ``u`` of the
    top."""
    inside = {name: made for name, made in cells.items() if random.random() < 0.5}
    outside = {name: made for name, made in cells.items() if name not in inside}

    def nets(of: dict, direction: str) -> set:
        return {net for made in of.values() for port, bits in made["connections"].items()
                if made["port_directions"][port] == direction for net in bits
                if not isinstance(net, str)}

    come = nets(inside, "input") - nets(inside, "output") - {CLOCK}
    go = nets(inside, "output")
    ports = {"clk": ("input", [CLOCK]), **{f"i{n}": ("input", [n]) for n in come},
             **{f"o{n}": ("output", [n]) for n in go}}
    instance = cell("u", {"clk": [CLOCK], **{f"i{n}": [n] for n in come}},
                    {f"o{n}": [n] for n in go})
    return {"u": netlist(inside, **ports), "top": netlist(
        {**outside, "u": instance}, clk=("input", [CLOCK]),
        **{f"in{n}": ("input", [n]) for n in INPUTS})}


@pytest.mark.parametrize("seed", range(30))
def test_arrivals(seed):
    random = Random(seed)
    cells, case = random_cells(random), CASES[seed % 3]
    expected = Slow(cells, case).ends()
    flat = netlist(cells, clk=("input", [CLOCK]), **{f"in{n}": ("input", [n]) for n in INPUTS})
    arrived = analyse(join({"top": flat}), case)
    assert ends(arrived) == pytest.approx(expected)
    nested = ends(analyse(join(in_units(cells, random)), case))
    assert {end.removeprefix("u."): ps for end, ps in nested.items()} == pytest.approx(expected)
    if expected:
        slack = required(arrived, 1000) - arrived.nets
        assert slack[arrived.nets > -inf].min() == pytest.approx(1000 - max(expected.values()))


@pytest.mark.parametrize("seed", range(10))
def test_loops(seed):
    """The loop of a register is the arrival if all other registers and ports are constants, with
    the pins of LUTs unchanged. If no LUT has more than one pin, the slow computation gives it."""
    random = Random(seed)
    cells = {name: made for name, made in random_cells(random).items()
             if not name.startswith("carry")}
    for name, made in cells.items():
        if name.startswith("lut"):
            cells[name] = lut(made["connections"]["O"][0], made["connections"]["I0"][0])
    used = {net for made in cells.values() if "O" in made["connections"]
            for net in made["connections"]["O"]} | set(INPUTS) | set(range(10, 22))
    for made in cells.values():
        made["connections"] = {port: [net if net in used or net == CLOCK else "0" for net in bits]
                               for port, bits in made["connections"].items()}
    flat = netlist(cells, clk=("input", [CLOCK]), **{f"in{n}": ("input", [n]) for n in INPUTS})
    found = {loop.hops[-1].cell: loop.ps for loop in worst_loops(
        analyse(join({"top": flat})), 1000, 99)}
    expected = {}
    for name in cells:
        if name.startswith("ff"):
            slow = Slow(cells, CASES[1])
            q = cells[name]["connections"]["Q"][0]
            slow.at = cache(lambda net, q=q, slow=slow: slow.arrival(net) if net == q or not (
                net in INPUTS or str(slow.drivers.get(net, ("",))[0]).startswith("ff")) else -inf)
            own = [ps for end, ps in slow.ends().items() if end.startswith(f"{name}.")]
            expected |= {name: max(own)} if own else {}
    assert found == pytest.approx(expected)
