"""OpenNIC's reset handshake: request by a pulse, and completion signal."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["ResetHandshake"]


class ResetHandshake(wiring.Component):
    """Hold a reset for ``duration`` cycles after each pulse, and at power-up.

    ``mod_rstn`` may be low for a single cycle (OpenNIC, system configuration). The block's own
    registers have no reset, only initial values at power-up.

    Parameters
    ----------
    duration: cycles of the reset, enough for every domain to detect it.
    domain: clock domain.

    Ports
    -----
    mod_rstn: reset request, active low.
    ready: whether the design can work again; must be 0 by the end of the reset.
    reset: reset, active high, a register.
    mod_rst_done: 1 when the last reset is over and ``ready`` was 1; 0 from the pulse on.

    Raises ``TypeError`` or ``ValueError`` unless ``duration`` is an integer of 2 to 65,535.
    """

    def __init__(self, duration: int = 100, *, domain: str = "sync"):
        if isinstance(duration, bool) or not isinstance(duration, int):
            raise TypeError(f"duration must be an integer, not {duration!r}")
        if not 2 <= duration <= 65535:
            raise ValueError(f"duration must be between 2 and 65535, not {duration!r}")
        self._duration, self._domain = duration, domain
        super().__init__({"mod_rstn": In(1, init=1), "ready": In(1), "reset": Out(1),
                          "mod_rst_done": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        left = Signal(range(self._duration + 1), init=self._duration, reset_less=True)
        asserted, done = Signal(init=1, reset_less=True), Signal(reset_less=True)
        step = m.d[self._domain]
        m.d.comb += [self.reset.eq(asserted), self.mod_rst_done.eq(done)]
        step += asserted.eq(~self.mod_rstn | (left != 0))
        with m.If(~self.mod_rstn):
            m.d[self._domain] += [left.eq(self._duration), done.eq(0)]
        with m.Elif(left != 0):
            m.d[self._domain] += left.eq(left - 1)
        with m.Elif(~asserted & self.ready):
            m.d[self._domain] += done.eq(1)
        return m
