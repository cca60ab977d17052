"""Reset handshake: a pulse of one cycle starts the reset; done follows when the design is ready."""

import pytest

from gen.shells.reset_handshake import ResetHandshake
from tests.support import simulate


@pytest.mark.parametrize("duration", [2, 7])
@pytest.mark.parametrize("ready_after", [0, 5])
def test_reset(duration, ready_after):
    dut, seen = ResetHandshake(duration), []

    async def design(ctx):
        """Model the design under reset: it is ready some cycles after the reset ends."""
        left = ready_after
        async for _, _, reset in ctx.tick().sample(dut.reset):
            left = ready_after if reset else max(0, left - 1)
            ctx.set(dut.ready, not reset and left == 0)

    async def shell(ctx):
        for pulse in (0, 40, 43, 90):
            while len(seen) < pulse:
                await one(ctx)
            if pulse:
                ctx.set(dut.mod_rstn, 0)
                await one(ctx)
                ctx.set(dut.mod_rstn, 1)
        for _ in range(40):
            await one(ctx)

    async def one(ctx):
        _, _, reset, done, rstn = await ctx.tick().sample(dut.reset, dut.mod_rst_done, dut.mod_rstn)
        seen.append((reset, done, rstn))

    simulate(dut, shell, background=[design])
    assert seen[0][:2] == (1, 0), "a reset from power-up on"
    pulses = [k for k, (_, _, rstn) in enumerate(seen) if not rstn]
    assert pulses == [40, 43, 90]
    for start, end in ((0, 40), (43, 90), (90, len(seen))):
        resets = [k for k in range(start + 1, end) if seen[k][0]]
        dones = [k for k in range(start + 1, end) if seen[k][1]]
        assert duration <= len(resets) <= duration + 2
        assert resets == list(range(resets[0], resets[0] + len(resets)))
        assert min(dones) > max(resets) + ready_after, "done only when the design is ready"
        assert dones == list(range(dones[0], end)), "and then for good"
    assert not any(done for _, done, _ in seen[41:44]), "not done from the pulse on"


@pytest.mark.parametrize("duration", [1, 65536])
def test_bounds(duration):
    with pytest.raises(ValueError, match=f"between 2 and 65535, not {duration}"):
        ResetHandshake(duration)
    with pytest.raises(TypeError, match="duration must be an integer, not None"):
        ResetHandshake(None)
