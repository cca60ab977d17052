"""Drive a unit of fixed latency on Amaranth's simulator."""

from collections.abc import Mapping, Sequence

from amaranth.hdl import Value
from amaranth.lib import wiring
from amaranth.sim import Simulator

__all__ = ["drive"]


def drive(dut: wiring.Component, latency: int, operands: Mapping[str, Sequence[int]],
          late: Mapping[str, int] | None = None, results: Sequence[str] = ("o",)) -> list:
    """Return the results of ``dut``, one set of ``operands`` a cycle.

    ``operands`` are the values of each input port, in order; those of a port named in ``late``
    come so many cycles later than the others. A result is an integer, or a tuple of them where
    ``results`` names several ports. After the last operands the inputs are 0.
    """
    rows = len(next(iter(operands.values())))
    delays = {port: (late or {}).get(port, 0) for port in operands}
    taken = []

    async def bench(ctx):
        for cycle in range(rows + latency):
            for port, values in operands.items():
                k = cycle - delays[port]
                ctx.set(Value.cast(getattr(dut, port)), values[k] if 0 <= k < rows else 0)
            found = tuple(ctx.get(Value.cast(getattr(dut, port))) for port in results)
            taken.append(found if len(found) > 1 else found[0])
            await ctx.tick()

    sim = Simulator(dut)
    sim.add_clock(4e-9)
    sim.add_testbench(bench)
    sim.run()
    return taken[latency:]
