"""Bags with gradients: checked at the requester, split off at the owner, and their credit."""

import random
from collections import Counter

import pytest

from host.wire.packets import pack_records
from rtl.bags import BagCheck, BagCredit, BagCreditReturn, BagGradients, GradientLists
from rtl.config import NicConfig
from rtl.formats import GradientHead, Status, StepKind, StepRecord, words_of
from tests.rtl.bags.words import beats_of_packet
from tests.rtl.descriptors import ROW, Table, descriptor_writer
from tests.rtl.power_up import powered_up
from tests.support import counts_of, made, quiet_while_idle, receiver, sender, simulate

NODE, NODES, STEP, VECTOR = 1, 4, 513, 8
CONFIG = NicConfig(nodes=NODES, owner_bags=16, tables=16, training=True)
TABLES = {0: Table(owner=2, rows=1000, pool=1), 1: Table(owner=3, rows=(1 << 34) + 5, pool=1),
          2: Table(owner=0, rows=50, pool=1), 3: Table(owner=NODE, rows=1000, pool=1),
          4: Table(owner=2, rows=1000), 5: Table(kind=ROW, owners=2, pool=1)}
STATUS = {3: Status.KIND, 4: Status.KIND, 5: Status.KIND, 6: Status.TABLE, 16: Status.TABLE}


def gradient_bag(rng: random.Random, table: int, rows: list[int], wide: int, **fields) -> list[int]:
    """Return the words of a bag with its gradient; ``fields`` replace those of its head."""
    head = {"keys": len(rows), "wide": wide, "table": table, "gradient": 1,
            "landing": rng.getrandbits(16)} | fields
    rows = rows if wide or len(rows) % 2 == 0 else [*rows, 0xFFFFFFFF]
    words = rows if wide else [low | high << 32 for low, high in zip(rows[::2], rows[1::2])]
    return [int(pack_records(GradientHead, **head)[0]), *words,
            *(rng.getrandbits(64) for _ in range(VECTOR * head["gradient"]))]


def words_in(segments: list[dict]) -> list[int]:
    """Return the words of consecutive segments, which must continue each other."""
    return [each["words"] >> 64 * k & (1 << 64) - 1 for each in segments
            for k in range(each["first"], each["first"] + each["size"])]


def bags_in(items: list[dict]) -> list[list[dict]]:
    """Split items with segments into bags."""
    bags: list[list[dict]] = []
    for item in items:
        if item["segment"]["head"]:
            bags.append([])
        bags[-1].append(item)
    assert all(bag[-1]["segment"]["tail"] for bag in bags)
    return bags


def packets(rng: random.Random, bad: float, number: int):
    """Return beats, and for each bag its words, its table and the status of its fault, or 0."""
    beats, bags = [], []
    for _ in range(number):
        words, step = [], STEP ^ (1 << rng.randrange(16) if rng.random() < bad / 4 else 0)
        for _ in range(rng.randrange(1, 6)):
            table, status, fields = rng.randrange(3), 0, {}
            wide, most = rng.randrange(2), TABLES[table].rows
            rows = [rng.randrange(min(most, 1 << 32)) for _ in range(rng.randrange(1, 15))]
            fault = rng.randrange(4) if rng.random() < bad else -1
            if fault == 0:
                table = rng.choice(list(STATUS))
                status = STATUS[table]
            elif fault == 1 and (wide or table != 1):
                rows[rng.randrange(len(rows))] = most
                status = Status.ROW
            elif fault == 2:
                fields, status = {"gradient": 0}, Status.LENGTH
            elif fault == 3 and wide:
                fields, status = {"weighted": 1}, Status.LENGTH
            elif step != STEP:
                status = Status.STEP
            words += gradient_bag(rng, table, rows, wide, **fields)
            bags.append((words[-1 - words_of(len(rows), wide, 0)
                               - VECTOR * fields.get("gradient", 1):], table, status))
        for beat in beats_of_packet(words, 0, fresh=1):
            del beat["user"], beat["fresh"]
            beats.append(beat | {"source": 0, "step": step})
    return beats, bags


@pytest.mark.parametrize("bad, gap, stall, lost", [
    (0.0, 0.0, 0.0, 0), (0.5, 0.3, 0.4, 0), (0.3, 0.0, 0.0, 0b1000)])
def test_bags_for_other_owners_leave(bad, gap, stall, lost):
    rng = random.Random(int(10 * (bad + gap)))
    beats, bags = packets(rng, bad, 25)
    good = [(words, TABLES[table].owner) for words, table, status in bags if not status]
    leave = [each for each in good if not lost >> each[1] & 1]
    dut = made(BagGradients, CONFIG)
    left: list[dict] = []
    sent: list[dict] = []
    refused: list[dict] = []

    async def after(ctx):
        for name, value in (("gradient_step", STEP), ("gradient_words", VECTOR), ("lost", lost)):
            ctx.set(getattr(dut, name), value)
        ctx.set(dut.sent.ready, 1)
        ctx.set(dut.refused.ready, 1)
        await ctx.tick().repeat(3)
        await sender(dut.i, beats, stall=gap)(ctx)
        ctx.set(dut.i.valid, 0)
        await ctx.tick().repeat(4)
        while not ctx.get(dut.idle):
            await ctx.tick()
        assert ctx.get(dut.consumed) == len(beats)
        counts = counts_of(ctx, dut.counters)
        assert counts["bags"] == len(good) and counts["over_credit"] == 0

    async def drain(ctx):
        draw = random.Random(5)
        while True:
            ctx.set(dut.o.ready, draw.random() >= stall)
            *_, leaves, item = await ctx.tick().sample(
                dut.o.valid & dut.o.ready, dut.o.payload)
            if leaves:
                left.append({"segment": {name: int(item.segment[name]) for name in (
                    "words", "first", "size", "head", "tail", "keys")},
                    **{name: int(item[name]) for name in ("destination", "step", "words")}})

    async def watch(ctx):
        async for *_, gone, bag, told, fault in ctx.tick().sample(
                dut.sent.valid & dut.sent.ready, dut.sent.payload,
                dut.refused.valid & dut.refused.ready, dut.refused.payload):
            if gone:
                sent.append({"source": int(bag.source), "step": int(bag.step)})
            if told:
                refused.append(int(fault.status))

    simulate(powered_up(dut), descriptor_writer(dut, TABLES, NODE, NODES, after),
             background=[drain, watch, quiet_while_idle(
                 dut.idle, [dut.i.valid, dut.o.ready, dut.write_en],
                 [dut.o.valid, dut.sent.valid, dut.refused.valid])])
    found = bags_in(left)
    assert [(words_in([item["segment"] for item in bag]), bag[0]["destination"])
            for bag in found] == leave
    assert all(item["words"] == len(words_in([each["segment"] for each in bag]))
               and item["step"] == STEP for bag in found for item in bag)
    assert [bag["source"] for bag in sent] == [owner for _, owner in good]
    assert refused == [status for _, _, status in bags if status]
    assert not bad or len(set(refused)) > 3


def owned(words: list[int], node: int) -> list[dict]:
    """Return the OwnedSegments of a bag of ``words`` at the begin of a beat."""
    beats, keys, items = beats_of_packet(words, 0), words[0] & 0xFFFF, []
    for number, beat in enumerate(beats):
        items.append({"segment": {
            "words": beat["data"], "first": 0, "size": beat["records"], "head": int(number == 0),
            "tail": beat["last"], "keys": keys}, "node": node, "step": STEP,
            "final_beat": 0})
        keys = max(0, keys - 2 * (beat["records"] - (number == 0)))
    return items


def test_bags_with_gradients_go_to_the_gpu():
    rng, dut = random.Random(4), made(GradientLists)
    items, plain, lists = [], [], []
    for _ in range(60):
        gradient, node = rng.randrange(2), rng.randrange(NODES)
        words = gradient_bag(rng, 0, [rng.randrange(1000) for _ in range(rng.randrange(1, 30))], 0,
                             gradient=gradient)
        part = owned(words, node)
        items += part
        if gradient:
            words = [words[0] & ~(0xFF << GradientHead["source"].offset)
                     | node << GradientHead["source"].offset, *words[1:]]
            lists += [{**each, "words": len(words), "destination": 0} for each in owned(words, 0)]
        else:
            plain += part
    for item in lists:
        del item["node"]
    onwards, taken = [], []

    async def setup(ctx):
        ctx.set(dut.gradient_words, VECTOR)
        await sender(dut.i, items, stall=0.2)(ctx)
        ctx.set(dut.i.valid, 0)

    simulate(dut, setup, receiver(dut.bags, onwards, len(plain), stall=0.4),
             receiver(dut.o, taken, len(lists), stall=0.2))
    assert onwards == plain and taken == lists


def test_an_owner_accepts_gradients_of_the_open_step_only():
    rng, dut = random.Random(6), made(BagCheck, CONFIG)
    beats, expected = [], []
    for number in range(40):
        step, gradient = STEP ^ rng.choice([0, 0, 1, 1 << 15]), rng.randrange(2)
        words = gradient_bag(rng, 3, [rng.randrange(1000) for _ in range(rng.randrange(1, 9))], 0,
                             gradient=gradient)
        node = rng.randrange(NODES)
        for beat in beats_of_packet(words, 0, fresh=1):
            del beat["user"]
            beats.append(beat | {"source": node, "step": step})
        if not gradient or (step == STEP and number < 30):
            expected.append((words, node, gradient))
    arrived: list[int] = []
    passed: list[int] = []
    kinds: Counter[int] = Counter()
    taken: list[dict] = []

    async def after(ctx):
        for name, value in (("step", STEP), ("gradient_words", VECTOR), ("open", 1)):
            ctx.set(getattr(dut, name), value)
        ctx.set(dut.o.ready, 1)
        firsts = [n for n, beat in enumerate(beats) if beat["fresh"]]
        await sender(dut.i, beats[:firsts[30]])(ctx)
        ctx.set(dut.i.valid, 0)
        await ctx.tick().repeat(60)
        ctx.set(dut.open, 0)
        await sender(dut.i, beats[firsts[30]:])(ctx)
        ctx.set(dut.i.valid, 0)
        await ctx.tick().repeat(60)
        assert counts_of(ctx, dut.counters)["bad_step"] == 40 - len(expected)

    async def watch(ctx):
        draw = random.Random(1)
        while True:
            ctx.set(dut.arrived.ready, draw.randrange(2))
            _, _, come, source, good, leaves, item, freed, counted = await ctx.tick().sample(
                dut.arrived.valid & dut.arrived.ready, dut.arrived.payload.source, dut.passed,
                dut.o.valid & dut.o.ready, dut.o.payload, dut.freed.valid, dut.counted)
            if come:
                arrived.append(int(source))
            if good.valid:
                passed.append(int(good.node))
            if leaves:
                taken.append({"segment": {name: int(item.segment[name]) for name in (
                    "words", "first", "size", "head", "tail", "keys")}, "node": int(item.node)})
            kinds[int(counted)] += int(freed)

    simulate(dut, descriptor_writer(dut, TABLES, NODE, NODES, after), background=[watch])
    assert [words_in([each["segment"] for each in bag]) for bag in bags_in(taken)] == [
        words for words, _, _ in expected]
    assert arrived == [node for _, node, gradient in expected if gradient]
    assert passed == [node for _, node, gradient in expected if not gradient]
    assert kinds[0] and kinds[1] and sum(kinds.values()) == len(beats)


def test_the_message_about_a_bag_without_its_end_has_its_step():
    rng, dut = random.Random(7), made(BagCheck, CONFIG, outward=True)
    packets, told = [], []
    for number in range(4):
        words = gradient_bag(rng, 0, [rng.randrange(1000) for _ in range(20)], 0)
        beats = beats_of_packet(words, 0, fresh=1)
        # Of every other packet, only the first beat arrives.
        packets += [(number, beat) for beat in beats[:len(beats) if number % 2 else 1]]

    async def after(ctx):
        ctx.set(dut.gradient_words, VECTOR)
        ctx.set(dut.step, STEP + 1)
        ctx.set(dut.o.ready, 1)
        ctx.set(dut.arrived.ready, 1)
        await sender(dut.i, [{name: beat[name] for name in ("data", "records", "last", "fresh")} | {
            "source": 0, "step": STEP + number} for number, beat in packets])(ctx)
        ctx.set(dut.i.valid, 0)
        await ctx.tick().repeat(60)

    async def watch(ctx):
        async for *_, fault in ctx.tick().sample(dut.fault):
            if fault.valid:
                told.append((int(fault.status), int(fault.step)))

    simulate(dut, descriptor_writer(dut, TABLES, NODE, NODES, after), background=[watch])
    assert told == [(Status.LENGTH, STEP), (Status.LENGTH, STEP + 2), (Status.STEP, STEP + 3)]


@pytest.mark.parametrize("window, most", [(40, 60), (3, 500)])
def test_credit_returns_after_a_quarter_of_the_window(window, most):
    """The records of a node leave less than a quarter of the window unreported, or no beat if the
    window is small."""
    rng, dut = random.Random(2), made(BagCreditReturn, NODES)
    freed, told = Counter(), Counter()
    seen: Counter[int] = Counter()

    async def bench(ctx):
        ctx.set(dut.window, window)
        ctx.set(dut.step, 7)
        await ctx.tick().repeat(NODES + 3)
        for cycle in range(600):
            node, comes = rng.randrange(NODES), cycle < 500 and rng.random() < 0.7
            ctx.set(dut.freed, {"valid": comes, "node": node})
            ctx.set(dut.counted, 1)
            ctx.set(dut.o.ready, rng.random() < 0.5 or cycle >= 500)
            ctx.set(dut.credit, freed[ctx.get(dut.credit_node)])
            if ctx.get(dut.o.valid) and ctx.get(dut.o.ready):
                item = ctx.get(dut.o.payload)
                record = StepRecord.from_bits(int(item.record))
                assert (record.kind, record.level, item.step) == (StepKind.CREDIT, 1, 7)
                told[int(item.destination)] = int(record.count)
                seen[int(item.destination)] += 1
            await ctx.tick()
            freed[node] += comes
        assert ctx.get(dut.idle)

    simulate(dut, bench)
    assert all(freed[node] - told[node] < max(1, window // 4) for node in range(NODES))
    assert all(count >= 5 for count in seen.values()) and sum(seen.values()) < most


def test_credits_of_both_kinds_arrive():
    rng, dut = random.Random(3), made(BagCredit)
    given, found = [], []

    async def bench(ctx):
        for cycle in range(400):
            header, record = (rng.random() < 0.6 and cycle % 2 == parity for parity in (
                0, rng.randrange(2)))
            level, kind = rng.randrange(2), rng.choice([StepKind.CREDIT, StepKind.END])
            record &= cycle % 2 == 0
            ctx.set(dut.header, {"valid": header, "node": 1, "value": cycle})
            word = int(pack_records(StepRecord, kind=kind, level=level, count=1)[0]) + (
                5000 + cycle)
            ctx.set(dut.beat, {"data": word, "records": 1, "source": 2, "step": 0, "last": 1})
            ctx.set(dut.valid, record)
            if header:
                given.append((1, cycle))
            if record and level and kind == StepKind.CREDIT:
                given.append((2, 5000 + cycle))
            event = ctx.get(dut.o)
            if event.valid:
                found.append((int(event.node), int(event.value)))
            await ctx.tick()
        ctx.set(dut.header.valid, 0)
        event = ctx.get(dut.o)
        if event.valid:
            found.append((int(event.node), int(event.value)))

    simulate(dut, bench)
    assert sorted(found) == sorted(given)
