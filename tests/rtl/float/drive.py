"""Drive a unit of fixed latency on Amaranth's simulator."""

from collections.abc import Mapping, Sequence

from amaranth.hdl import Cat, Value
from amaranth.lib import wiring

from tests.support import simulate

__all__ = ["drive"]


def drive(dut: wiring.Component, latency: int, operands: Mapping[str, Sequence[int]],
          late: Mapping[str, int] | None = None, results: Sequence[str] = ("o",),
          early: Mapping[str, int] | None = None) -> list:
    """Return the results of ``dut``, one set of ``operands`` per cycle.

    ``operands`` are the values of each input port, in order. A port in ``late`` gets its values
    that many cycles later than the others. A result is an integer, or a tuple if ``results`` names
    several ports; a port in ``early`` has its values that many cycles before the others. After the
    last operands the inputs are 0.
    """
    rows = len(next(iter(operands.values())))
    delays = {port: (late or {}).get(port, 0) for port in operands}
    taken = []
    ports = [Value.cast(getattr(dut, port)) for port in operands]
    outs = [Value.cast(getattr(dut, port)) for port in results]

    async def bench(ctx):
        for cycle in range(rows + latency):
            # All inputs at once, because the simulator settles after each change.
            word, shift = 0, 0
            for port, (name, values) in zip(ports, operands.items(), strict=True):
                k = cycle - delays[name]
                if 0 <= k < rows:
                    word |= int(values[k]) << shift
                shift += len(port)
            ctx.set(Cat(ports), word)
            taken.append([ctx.get(out) for out in outs])
            await ctx.tick()

    simulate(dut, bench)
    leads = [(early or {}).get(port, 0) for port in results]
    found = [tuple(taken[row + latency - lead][k] for k, lead in enumerate(leads))
             for row in range(rows)]
    return [item if len(item) > 1 else item[0] for item in found]
