"""Producers and consumers for block tests on Amaranth's simulator.

Elaboration takes most of a short test's time. :func:`made` keeps the last blocks by their
parameters, and :func:`simulate` the last simulators by their block: tests of one block share both,
each from power-up.
"""

import functools
import gc
import random
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable

from amaranth.hdl import Cat, Const, Elaboratable, ShapeCastable, UnusedElaboratable, Value
from amaranth.lib import data
from amaranth.sim import Simulator

warnings.simplefilter("ignore", UnusedElaboratable)

PERIOD = 4e-9
KEPT = 4


@functools.lru_cache(maxsize=KEPT)
def made(block: Callable, *args, **kwargs):
    """Return ``block(*args, **kwargs)``, the same object for recently used arguments."""
    return block(*args, **kwargs)


def a_bit_apart(number: int, bits: int = 16) -> list[int]:
    """Return the numbers that differ from ``number`` in one bit.

    A comparison of fewer bits confuses one of them with ``number``.
    """
    return [number ^ 1 << bit for bit in range(bits)]


def _coder(shape) -> Callable:
    """Return a function that encodes an item of ``shape`` in bits."""
    if isinstance(shape, ShapeCastable):
        return lambda item: Const.cast(shape.const(item)).value
    mask = (1 << shape.width) - 1
    return lambda item: item & mask


def counts_of(ctx, counters: data.View) -> dict[str, int]:
    """Return the values of ``counters`` by name.

    A test compares only the counters that it names: ``assert counts == counts | {"packets": 3}``.
    """
    return {name: ctx.get(counters[name]) for name in counters.shape().members}


def decoder(shape) -> Callable:
    """Return a function that decodes bits to an integer or, for a struct, a (nested) dict of
    integers."""
    if isinstance(shape, data.Layout):
        fields = [(name, field.offset, (1 << field.width) - 1, decoder(field.shape))
                  for name, field in shape]
        return lambda bits: {name: decode(bits >> offset & mask)
                             for name, offset, mask, decode in fields}
    if isinstance(shape, ShapeCastable):
        return shape.from_bits
    return int


def sender(port, items: Iterable, *, stall: float = 0.0, seed: int = 0) -> Callable:
    """Return a testbench that offers ``items`` on an input stream with random gaps, in which the
    payload is random."""
    payload = Value.cast(port.payload)
    both, valid = Cat(payload, port.valid), 1 << len(payload)
    code = _coder(port.payload.shape())

    async def bench(ctx):
        rng, noise = random.Random(seed), random.Random(seed)
        offering = 0
        for item in items:
            while rng.random() < stall:
                if offering:
                    ctx.set(both, noise.getrandbits(len(payload)))
                    offering = 0
                await ctx.tick()
            # In one call: the simulator settles after each change.
            ctx.set(both, code(item) | valid)
            offering = 1
            await ctx.tick().until(port.ready)
        ctx.set(both, noise.getrandbits(len(payload)))

    return bench


async def send_at_once(ctx, port, item) -> None:
    """Offer ``item`` for a cycle on an input stream that must be ready for it, then its inverse,
    without ``valid``."""
    payload = Value.cast(port.payload)
    ctx.set(port.payload, item)
    ctx.set(port.valid, 1)
    assert ctx.get(port.ready)
    await ctx.tick()
    ctx.set(Cat(payload, port.valid), ~ctx.get(payload) & (1 << len(payload)) - 1)


def receiver(port, taken: list, count: int, *, stall: float = 0.0, seed: int = 1,
             shape=None, check_stable: bool = True) -> Callable:
    """Return a testbench that takes ``count`` items from an output stream into ``taken``.

    While it stalls it checks the stream contract: a valid payload holds until ready.
    """
    bits = Value.cast(port.payload)
    decode = decoder(port.payload.shape())

    async def bench(ctx):
        rng = random.Random(seed)
        taking = 0
        while len(taken) < count:
            offered = None
            while rng.random() < stall:
                if taking:
                    ctx.set(port.ready, 0)
                    taking = 0
                valid = ctx.get(port.valid)
                payload = ctx.get(bits) if check_stable and valid else None
                if check_stable and offered is not None:
                    assert valid and payload == offered, "payload and valid must hold until ready"
                offered = payload
                await ctx.tick()
            if not taking:
                ctx.set(port.ready, 1)
                taking = 1
            payload, = await ctx.tick().sample(bits).until(port.valid)
            taken.append(decode(payload))
        ctx.set(port.ready, 0)

    return bench


def quiet_while_idle(idle, comes: Iterable, moves: Iterable) -> Callable:
    """Return an endless testbench that checks ``idle``: while it is 1, all of ``moves`` are 0, also
    in the next cycle unless one of ``comes``, which start the block, is 1."""
    async def bench(ctx):
        quiet = False
        async for _, _, is_idle, came, moved in ctx.tick().sample(idle, Cat(comes), Cat(moves)):
            assert not (quiet or is_idle) or not moved, "nothing moves while idle"
            quiet = is_idle and not came

    return bench


class _Bench:
    """A simulator of one block whose testbenches change from run to run."""

    def __init__(self, dut: Elaboratable, slots: int):
        self.slots = slots
        self._benches: list[Callable] = []
        self._used = False
        self._critical = self._left = self._cycles = self._limit = 0
        self._sim = Simulator(dut)
        self._sim.add_clock(PERIOD)
        for number in range(slots):
            self._sim.add_testbench(self._slot(number), background=True)
        self._sim.add_testbench(self._watch)

    def _slot(self, number: int) -> Callable:
        async def slot(ctx):
            if number < len(self._benches):
                await self._benches[number](ctx)
                self._left -= number < self._critical
        return slot

    async def _watch(self, ctx):
        if self._left:
            async for _ in ctx.tick():
                self._cycles += 1
                assert self._cycles < self._limit, f"no end after {self._limit} cycles"
                if not self._left:
                    break

    def run(self, benches: list[Callable], critical: int, limit: int) -> int:
        """Run ``benches`` from power-up until the first ``critical`` return."""
        if self._used:
            self._sim.reset()
        self._used = True
        self._benches, self._critical, self._left = benches, critical, critical
        self._cycles, self._limit = 0, limit
        self._sim.run()
        # Endless benches are removed here: torn down by a collection inside the parser of a later
        # import, they upset CPython 3.11's recursion count. The new benches return at once.
        self._benches, self._left = [], 0
        self._sim.reset()
        self._sim.run()
        return self._cycles


_benches: OrderedDict[Elaboratable, _Bench] = OrderedDict()


def simulate(dut: Elaboratable, *benches: Callable, background: Iterable[Callable] = (),
             limit: int = 200_000) -> int:
    """Run until every bench returns; fail after ``limit`` cycles. Returns the cycles taken.

    The simulators of the last blocks are kept, and start again from power-up.
    """
    everything = [*benches, *background]
    # Not in the dict while it runs: a simulator whose bench fails is not used again.
    bench = _benches.pop(dut, None)
    if bench is None or bench.slots < len(everything):
        bench = _Bench(dut, max(16, len(everything)))
    try:
        cycles = bench.run(everything, len(benches), limit)
    except BaseException:
        del bench
        gc.collect()
        raise
    _benches[dut] = bench
    if len(_benches) > KEPT:
        _benches.popitem(last=False)
    return cycles
