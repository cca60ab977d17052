"""ResultGrouper: which results share a packet, and their tag beats, against a list."""

import random

import pytest

from rtl.interaction.result_groups import ResultGrouper
from tests.rtl.power_up import powered_up
from tests.support import made, receiver, sender, simulate

NEVER = 0xFFFF


def sizes_of(most, seed, number=90):
    """Return sizes of results and of parts, mostly like the previous one."""
    rng, items, beats, step = random.Random(seed), [], 1, 0
    for sample in range(number):
        if rng.random() < 0.2:
            beats = rng.choice([1, 1, min(2, most - 1), most - 1, rng.randint(1, most - 1)])
        step = step + 1 if rng.random() < 0.1 else step
        part = rng.random() < 0.1
        before = items[-1] if items else {}
        items.append({
            "beats": beats, "sample": sample, "step": step, "part": int(part), "last": 1,
            "first_beat": 7 * part, "same_length": int(not part and before.get("beats") == beats),
            "same_step": int(before.get("step") == step)})
    return items


def packed(items, most):
    """Return the packets, and their tag beats, without timeouts."""
    packets, tags, held = [], [], []

    def close():
        if held:
            packets.append({"count": len(held), "beats": len(held) * held[0]["beats"],
                            "tags": -(-len(held) // 16), "step": held[0]["step"], "part": 0})
            samples = [item["sample"] for item in held]
            tags.extend(sum(sample << 32 * k for k, sample in enumerate(samples[first:first + 16]))
                        for first in range(0, len(held), 16))
            held.clear()

    for item in items:
        more = len(held) + 1
        if held and (item["part"] or more * item["beats"] + -(-more // 16) > most
                     or (item["beats"], item["step"]) != (held[0]["beats"], held[0]["step"])):
            close()
        if item["part"]:
            packets.append({"count": item["beats"], "beats": item["beats"], "step": item["step"],
                            "part": 1})
        else:
            held.append(item)
    close()
    return packets, tags


@pytest.mark.few(4)
@pytest.mark.parametrize("stall", [(0.0, 0.0, 0.0), (0.5, 0.0, 0.0), (0.0, 0.8, 0.8)])
@pytest.mark.parametrize("most", [2, 5, 22, 40])
def test_packets_and_tags(most, stall):
    items = sizes_of(most, most)
    packets, beats = packed(items, most)
    dut, groups, tags, early = made(ResultGrouper, most), [], [], []

    async def feed(ctx):
        ctx.set(dut.timeout, NEVER)
        await sender(dut.i, items, stall=stall[0])(ctx)
        await ctx.tick().repeat(3)
        # The last packet closes by timeout.
        ctx.set(dut.time, NEVER)

    async def take(ctx):
        rng, owed = random.Random(most), 0
        while len(groups) < len(packets) or len(tags) < len(beats):
            ready = [int(rng.random() >= part) for part in stall[1:]]
            ctx.set(dut.groups.ready, ready[0])
            ctx.set(dut.tags.ready, ready[1])
            group = {name: ctx.get(dut.groups.payload[name]) for name in dut.groups.payload.shape()
                     .members} if ctx.get(dut.groups.valid) else None
            if group and not group["part"]:
                # The sink of a packet relies on its next tag beat.
                early.append(ctx.get(dut.tags.valid) or owed < 0)
            if ready[1] and ctx.get(dut.tags.valid):
                tags.append(ctx.get(dut.tags.payload))
                owed -= 1
            if ready[0] and group:
                groups.append(group)
                owed += 0 if group["part"] else group["tags"]
            await ctx.tick()

    simulate(powered_up(dut, most), feed, take, limit=20_000)
    assert all(early)
    assert tags == beats
    assert [{name: group[name] for name in right} for group, right in zip(
        groups, packets, strict=True)] == packets


@pytest.mark.parametrize("begin", [0, 0xFFFF_FFF0])
def test_a_packet_leaves_when_its_first_result_is_old(begin):
    dut, groups = made(ResultGrouper, 22), []
    size = {"beats": 2, "sample": 5, "step": 1, "part": 0, "last": 1, "first_beat": 0,
            "same_length": 0, "same_step": 0}

    async def feed(ctx):
        ctx.set(dut.timeout, 30)
        ctx.set(dut.time, begin)
        await sender(dut.i, [size, size | {"same_length": 1, "same_step": 1}])(ctx)
        for cycle in range(60):
            ctx.set(dut.time, begin + cycle & 0xFFFF_FFFF)
            assert not groups or cycle > 30
            await ctx.tick()

    simulate(powered_up(dut), feed, receiver(dut.groups, groups, 1), receiver(dut.tags, [], 1))
    assert groups[0]["count"] == 2 and groups[0]["beats"] == 4
