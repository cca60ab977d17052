"""Packets of gradients, valid ones and one of each fault, for the tables of a node."""

from rtl.formats import Status
from tests.rtl.descriptors import COLUMN, REPLICATED, ROW, Table
from tests.rtl.gradient.packets import EMPTY, KEY, KEY_END, SAMPLE, Packet, packet, values

NODE, NODES, STEP = 2, 6, 0xA005
TABLES = {
    0: Table(rows=50, owner=2), 1: Table(rows=1 << 33, owner=3), 2: Table(kind=ROW, owners=6),
    3: Table(kind=REPLICATED), 4: Table(kind=COLUMN), 5: Table(valid=0),
    6: Table(owner=6), 31: Table(owner=5),
}
GOOD = [0, 1, 2, 31]


def key(rng):
    return lambda: (rng.choice(GOOD), rng.randrange(50))


def good(lengths, dimension, rng, step=STEP):
    return packet(lengths, dimension, key(rng), rng, step)


def bad_packets(dimension, rng):
    """Return a packet of each fault, with its expected status."""
    table = {
        "table not written": (9, 1, Status.TABLE), "table not valid": (5, 1, Status.TABLE),
        "table beyond the last": (4095, 1, Status.TABLE), "owner not there": (6, 1, Status.TABLE),
        "row beyond": (0, 50, Status.ROW), "row of 34 bits": (1, 1 << 33, Status.ROW),
        "columns": (4, 1, Status.KIND), "copies": (3, 1, Status.KIND),
    }
    for number, row, status in table.values():
        for at in (0, 5, 11):
            given = good([4, 1, 7], dimension, rng)
            given.records[at] = (number, row, given.records[at][2])
            yield given, status
    for kind in (EMPTY, SAMPLE):
        given = good([3, 2], dimension, rng)
        given.records[1] = (*given.records[1][:2], kind)
        yield given, Status.KIND
    for step in (STEP + 1, STEP - 1, STEP ^ 1 << 15):
        yield good([3, 2], dimension, rng, step), Status.STEP
    open_bag = good([3, 2], dimension, rng)
    open_bag.records.append((0, 1, KEY))
    yield open_bag, Status.TRUNCATED
    yield Packet([(0, 1, KEY)] * 9, [], STEP), Status.TRUNCATED
    for extra in (1, -1, 4):
        given = good([3, 2, 1, 1, 1], dimension, rng)
        given.extra_beats = extra
        yield given, Status.LENGTH
    yield Packet([(0, 1, KEY_END)], [], STEP), Status.LENGTH
    yield Packet([], [values(dimension, rng)], STEP), Status.LENGTH
    # The first fault determines the status; the step has priority.
    two = good([3, 2], dimension, rng)
    two.records[1], two.records[2] = (0, 50, KEY), (9, 1, KEY_END)
    yield two, Status.ROW
    yield Packet([(9, 1, SAMPLE)], [], STEP + 1), Status.STEP


def end(step=STEP, table=4095, row=(1 << 36) - 1):
    """Return the packet that ends a step; its record has no key."""
    return Packet([(table, row, EMPTY)], [], step)
