"""Exact sums in 16 lanes and 512 entries, by the million, on the compiled engine."""

from collections import defaultdict

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import LANES
from rtl.float.exact import EXACT_TERMS, exact_term_layout
from rtl.float.exact_table import ExactTable, exact_operation_layout
from rtl.float.exact_terms import ExactTerms
from sim.engines import load
from tests.rtl.float.exact_cases import KINDS, PATTERNS, Script, beat, beats_of, random_script

pytestmark = pytest.mark.slow

ENTRIES = 512
META = 24
UNITS = 8
OPERATION = exact_operation_layout(ENTRIES, META)
TERM = exact_term_layout(META)


class ExactTop(wiring.Component):
    """A table whose sums are both rounded and split."""

    i: In(stream.Signature(OPERATION))
    rounded: Out(stream.Signature(TERM))
    listed: Out(stream.Signature(TERM))
    idle: Out(1)

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.table = table = ExactTable(ENTRIES, META, units=UNITS)
        m.submodules.rounding = rounding = ExactTerms(META, split=False, units=UNITS)
        m.submodules.splitting = splitting = ExactTerms(META, split=True, units=UNITS)
        wiring.connect(m, wiring.flipped(self.i), table.i)
        wiring.connect(m, rounding.o, wiring.flipped(self.rounded))
        wiring.connect(m, splitting.o, wiring.flipped(self.listed))
        both = rounding.sums.ready & splitting.sums.ready
        m.d.comb += [
            table.sums.ready.eq(both),
            self.idle.eq(table.idle & rounding.idle & splitting.idle),
        ]
        for terms in (rounding, splitting):
            m.d.comb += [terms.sums.payload.eq(table.sums.payload),
                         terms.sums.valid.eq(table.sums.valid & both)]
        return m


@pytest.fixture(scope="module")
def model():
    return load(ExactTop(), "exact_top")


def packed(items: list[dict]) -> np.ndarray:
    size = -(-OPERATION.size // 32)
    text = bytearray()
    for item in items:
        value = sum(item[name] << field.offset for name, field in OPERATION)
        text += value.to_bytes(4 * size, "little")
    return np.frombuffer(bytes(text), "<u4").reshape(-1, size)


def fields(found: np.ndarray) -> list[dict]:
    values = [int.from_bytes(row.tobytes(), "little") for row in found]
    return [{name: value >> field.offset & (1 << field.width) - 1 for name, field in TERM}
            for value in values]


def run(model, script: Script, stall: float = 0.0, seed: int = 0) -> int:
    """Compare the output with the script's sums; return the cycle of the last rounded sum."""
    engine = model.instance(random_init=seed)
    if stall:
        for k, port in enumerate(("i", "rounded", "listed")):
            engine.set_stall(port, seed + k, stall)
    engine.push("i", packed(script.items()))
    engine.run(40 * len(script.meta) + 2000)
    rounded, cycles = engine.pop("rounded")
    expected = [(meta, *beats_of(sums, False)) for meta, sums in script.taken]
    assert [(item["meta"], item["data"]) for item in fields(rounded)] == expected
    lists = defaultdict(list)
    for item in fields(engine.pop("listed")[0]):
        lists[item["meta"]].append(item["data"])
        assert item["count"] == len(lists[item["meta"]])
    assert lists == {meta: beats_of(sums, True) for meta, sums in script.taken}
    return int(cycles[-1])


@pytest.mark.parametrize("stall", [0.0, 0.3])
def test_a_million_terms_of_any_kind(model, stall):
    run(model, random_script(1_000_000 // LANES, ENTRIES, "power_law", list(KINDS), LANES,
                             int(10 * stall), take=0.05), stall, 1)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns(model, pattern):
    run(model, random_script(5000, ENTRIES, pattern, list(KINDS), LANES, 2), seed=2)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_term_a_cycle(model, pattern):
    """Then sums, which need one beat or two, at two cycles a beat."""
    script = random_script(5000, ENTRIES, pattern, ["gaussian"], LANES, 3, take=0.0)
    cycles = run(model, script)
    left = len(np.unique(script.entry))
    assert cycles <= 5000 + 4 * left + 60


def test_as_many_terms_as_a_sum_holds(model):
    """All of them the largest number; then all but one taken away again."""
    first, add, take = ({"entry": 9, "data": beat([0x7F7FFFFF] * LANES), "meta": 0, "first": f,
                         "take": t} for f, t in ((1, 0), (0, 0), (0, 1)))
    less = add | {"data": beat([0xFF7FFFFF] * LANES)}
    single = packed([first, add, less, take])
    more = EXACT_TERMS - 1
    engine = model.instance(random_init=3)
    engine.push("i", np.repeat(single, [1, more, 0, 1], axis=0))
    engine.run(EXACT_TERMS + 100)
    item, = fields(engine.pop("rounded")[0])
    assert item["data"] == beat([0x7F800000] * LANES)
    item, *_ = fields(engine.pop("listed")[0])
    assert (item["data"], item["last"]) == (beat([0x7F7FFFFF] * LANES), 0)
    engine = model.instance(random_init=4)
    engine.push("i", np.repeat(single, [1, more, more, 1], axis=0))
    engine.run(2 * EXACT_TERMS + 100)
    for port in ("rounded", "listed"):
        item, = fields(engine.pop(port)[0])
        assert (item["data"], item["last"]) == (beat([0x7F7FFFFF] * LANES), 1)
