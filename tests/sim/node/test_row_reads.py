"""Rows that a NIC reads from GPU memory, in hosts in Python and compiled hosts."""

from collections.abc import Sequence

import numpy as np
import pytest

from host.dlrm.rows import row_values
from host.placement.shard import Placement, ShardPlan
from host.wire.packets import gpu_vectors, header_beat, parse_header, vectors_that_fit
from host.wire.row_reads import RowReadList, row_reads_packet
from rtl.config import preset
from rtl.formats import DescriptorKind, Opcode
from sim.job.row_places import ROWS_BASE, RowPlaces
from sim.node.delivery import Delivery
from tests.sim.node.hosts import NODE, SEED, Hosts, model_of, steps_of
from tests.sim.node.test_delivery import violates

TINY = preset("tiny")
KEYS = [(2, row) for row in range(7)] + [(0, 4)]


def hosts_of(dimension: int = 16, reads: bool = True) -> Hosts:
    """Return hosts that have sent the queries of a step; the node has the first and the last
    table."""
    model = model_of(dimension)
    both = [steps_of(model, (9,), 100, unique=False) for _ in range(2)]
    hosts = Hosts(model, both[0], both[1],
                  Delivery(rows=places_of(dimension) if reads else None))
    hosts.sent()
    return hosts


def places_of(dimension: int) -> RowPlaces:
    return RowPlaces.of(ShardPlan(3, tuple(
        Placement(DescriptorKind.TABLE, rows, owner)
        for rows, owner in zip((5, 40, 300), (NODE, 2, NODE)))), NODE, dimension)


def reading(keys: Sequence[tuple[int, int]] = KEYS, dimension: int = 16, *, units: int = 0,
            more: int = 0, base: int = ROWS_BASE) -> np.ndarray:
    """Return the packet that reads the rows of ``keys``, with tags 3, 4 and so on."""
    places = places_of(dimension)
    offsets = [places.bases[table] + row * 4 * dimension + more for table, row in keys]
    return row_reads_packet(RowReadList(
        np.array(offsets, np.uint64) // np.uint64(16),
        np.full(len(keys), units or dimension // 4, np.uint64),
        np.arange(3, 3 + len(keys), dtype=np.uint64)), base, node=NODE)


@pytest.mark.parametrize("dimension", [4, 8, 16, 64])
def test_rows_come_by_their_tags(dimension):
    hosts = hosts_of(dimension)
    keys = KEYS[-vectors_that_fit(dimension, TINY.host_payload_beats):]
    hosts.turn([reading(keys, dimension)], 3000)
    tables, rows = np.array(keys).T
    [packet] = hosts.sent()
    [expected] = gpu_vectors(
        np.arange(3, 3 + len(keys), dtype=np.uint16),
        row_values(model_of(dimension), SEED, tables, rows), node=NODE, step=0,
        payload_beats=TINY.host_payload_beats)
    assert np.array_equal(packet, expected)
    assert [node.gpu.rows for node in hosts.nodes] == [len(keys)] * 2
    assert [node.gpu.launches for node in hosts.nodes] == [0, 0]


def test_many_reads_wait_for_tags_and_the_link():
    hosts = hosts_of()
    hosts.turn([reading()] * 80, 20_000)
    assert [parse_header(packet[0]).opcode for packet in hosts.sent()] == [
        Opcode.GPU_VECTORS] * 80
    assert hosts.nodes[0].host_bytes["from_nic"] == 80 * (128 + 64)
    assert hosts.nodes[1].gpu.rows == 640


@pytest.mark.parametrize("packet", [
    reading(units=1), reading(more=16), reading([(0, 0)], base=ROWS_BASE - 64),
    reading([(2, 300)]),
    reading(base=0)], ids=["shorter", "between", "before", "behind", "elsewhere"])
def test_reads_of_no_row(packet):
    violates(hosts_of(), [packet], "read address 0x", "read address 0x")


def test_reads_that_do_not_fit_a_packet():
    message = "sent its host a packet of opcode 0x31 whose count"
    most = vectors_that_fit(16, TINY.host_payload_beats)
    keys = [(2, row) for row in range(most + 1)]
    violates(hosts_of(), [reading(keys)], message, message)
    empty = header_beat(Opcode.READ_ROWS, node=NODE, step=0, count=0)
    violates(hosts_of(), [np.concatenate((empty, np.zeros((1, 16), np.uint32)))], message, message)


@pytest.mark.parametrize("reads", [False, True])
def test_either_lists_or_reads(reads):
    """A NIC that reads rows sends no lists, and a NIC with lists sends no reads."""
    opcode = Opcode.LOOKUP_REQUESTS if reads else Opcode.READ_ROWS
    packet = reading()
    if reads:
        head = header_beat(opcode, node=NODE, step=0, count=1)
        packet = np.concatenate((head, packet[1:]))
    message = f"sent opcode {opcode:#x} to its host"
    violates(hosts_of(reads=reads), [packet], message, message)
