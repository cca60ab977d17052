"""Request lists and vectors in rings in GPU memory, in hosts in Python and compiled hosts."""

from collections.abc import Sequence
from math import ceil

import numpy as np
import pytest

from host.dlrm.rows import row_values
from host.timing.clock import cycles_of_us
from host.timing.gpu import GpuProfile
from host.toml.profile import load_profile
from host.wire.gpu_rings import (
    RingRead,
    read_data_packet,
    read_packet,
    ring_index_packet,
)
from host.wire.packets import (
    gpu_vectors,
    header_beat,
    pack_records,
    parse_header,
    records_to_beats,
    vectors_that_fit,
)
from host.wire.record_packets import addressed
from rtl.config import preset
from rtl.formats import BEAT_BYTES, LookupRecord, Opcode
from sim.job.rings import LIST_INDEX, VECTOR_INDEX, rings_of
from sim.nic.registers import address_of
from sim.node.delivery import Delivery
from tests.sim.node.hosts import NODE, SEED, Hosts, model_of, steps_of
from tests.sim.node.test_delivery import violates

TINY = preset("tiny")
LISTS, VECTORS = rings_of(TINY)
MODEL = model_of(16)
MOST = vectors_that_fit(16, TINY.host_payload_beats)
CONSUMED, PRODUCED = (address_of(TINY, name) for name in ("lists_consumed", "vectors_produced"))
KEYS = [(2, row) for row in range(7)]
GPU = load_profile("gpu_rtx8000", GpuProfile)
LAUNCH, ROW = cycles_of_us(GPU.launch_us), GPU.cycles_per_row(64)
KERNEL = cycles_of_us(GPU.kernel_us)


def hosts_of(gpu_rings: bool = True) -> Hosts:
    """Return hosts that have sent the queries of a step."""
    both = [steps_of(MODEL, (9,), 100, unique=False) for _ in range(2)]
    hosts = Hosts(MODEL, both[0], both[1], Delivery(gpu_rings=gpu_rings))
    assert [parse_header(packet[0]).opcode for packet in hosts.sent()] == [Opcode.QUERIES]
    return hosts


def request(number: int, keys: Sequence[tuple[int, int]] = KEYS, *, at: int | None = None,
            count: int | None = None) -> np.ndarray:
    """Return the packet of request list ``number``, whose landings are 3, 4 and so on."""
    tables, rows = np.array(keys).T
    records = pack_records(LookupRecord, table=tables, row=rows,
                           landing=np.arange(3, 3 + len(keys)))
    head = header_beat(Opcode.LOOKUP_REQUESTS, node=NODE, step=0,
                       count=len(keys) if count is None else count)
    return addressed(np.concatenate((head, records_to_beats(records))),
                     LISTS.address(number) if at is None else at)


def told(count: int, at: int = LIST_INDEX) -> np.ndarray:
    """Return the INDEX packet of a count."""
    return ring_index_packet(count, at, node=NODE)


def vectors(keys: Sequence[tuple[int, int]] = KEYS) -> np.ndarray:
    """Return the expected slot contents for a list of ``keys``: the payload of GPU_VECTORS."""
    tables, rows = np.array(keys).T
    [packet] = gpu_vectors(np.arange(3, 3 + len(keys), dtype=np.uint16),
                           row_values(MODEL, SEED, tables, rows), node=NODE, step=0,
                           payload_beats=TINY.host_payload_beats)
    return packet[1:]


BYTES = BEAT_BYTES * len(vectors())


def read(number: int, size: int = BYTES, **changes: int) -> np.ndarray:
    """Return the READ packet of a slot of vectors."""
    asked = RingRead(VECTORS.address(number), size, number & 0xFFFF)
    return read_packet(asked._replace(**changes), node=NODE)


def stored(hosts: Hosts, register: int) -> list[tuple[int, int]]:
    """Return the counts stored to a register, and the times at which it changed."""
    return [(value, cycle) for address, value, cycle in hosts.edges[0].written
            if address == register]


def test_lists_are_gathered_in_order_when_they_are_told_of():
    """One count may announce several lists; each is read after the gather of the previous list."""
    hosts = hosts_of()
    hosts.turn([request(0), request(1, KEYS[:3]), request(2)], 2000)
    assert not hosts.edges[0].written
    hosts.turn([told(2)], 1)
    arrived = hosts.cycle - 2 + hosts.nodes[0].pcie.latency
    hosts.turn([], 5000)
    begun = arrived + LAUNCH
    reads = [begun, begun + 7 * ROW]
    ends = [max(begun + KERNEL, begun + 7 * ROW), max(begun + KERNEL, begun + 7 * ROW + 3 * ROW)]
    latency = hosts.nodes[0].pcie.latency
    assert stored(hosts, CONSUMED) == [(n + 1, ceil(at + latency)) for n, at in enumerate(reads)]
    assert stored(hosts, PRODUCED) == [(n + 1, ceil(at + latency)) for n, at in enumerate(ends)]
    assert (hosts.nodes[0].gpu.launches, hosts.nodes[0].gpu.rows) == (2, 10)
    assert (hosts.nodes[1].gpu.launches, hosts.nodes[1].gpu.rows) == (2, 10)
    hosts.turn([told(3)], 5000)
    assert [value for value, _ in stored(hosts, PRODUCED)] == [1, 2, 3] and not hosts.sent()


def test_a_slot_is_read_in_a_round_trip():
    hosts = hosts_of()
    hosts.turn([request(0), told(1)], 5000)
    sent = hosts.cycle
    hosts.turn([read(0)], 1)
    hosts.turn([], 400)
    [answer] = hosts.sent()
    assert np.array_equal(answer, read_data_packet(vectors(), 0, node=NODE))
    head = parse_header(answer[0])
    assert (head.opcode, head.acknowledge, head.count) == (
        Opcode.READ_DATA, 0, 8 * len(vectors()))
    # The last beat left in the second cycle, and the first takes 1.25 cycles.
    _, cycles = hosts.edges[0].received[-1]
    assert cycles[0] == ceil(sent + 1 + 2 * hosts.nodes[0].pcie.latency + 1.25)
    # A failed read is repeated, until the slot counts as read.
    hosts.turn([read(0)], 400)
    assert len(hosts.sent()) == 1
    hosts.turn([told(1, VECTOR_INDEX)], 400)
    assert not hosts.sent()


def test_a_list_waits_for_a_slot():
    """A slot is not filled again before it was read, but further lists are read."""
    hosts, slots = hosts_of(), VECTORS.slots
    lists = [request(number, KEYS[:1]) for number in range(slots + 3)]
    size = BEAT_BYTES * len(vectors(KEYS[:1]))
    hosts.turn([*lists[:slots], told(slots)], 20000)
    assert [value for value, _ in stored(hosts, PRODUCED)] == list(range(1, slots + 1))
    hosts.turn([*lists[slots:], told(slots + 3)], 20000)
    assert stored(hosts, PRODUCED)[-1][0] == stored(hosts, CONSUMED)[-1][0] == slots
    hosts.turn([read(0, size), read(1, size), told(2, VECTOR_INDEX)], 1)
    freed = hosts.cycle - 2 + hosts.nodes[0].pcie.latency
    hosts.turn([], 20000)
    latency = hosts.nodes[0].pcie.latency
    assert stored(hosts, CONSUMED)[slots:] == [
        (slots + 1, ceil(freed + LAUNCH + latency)),
        (slots + 2, ceil(freed + LAUNCH + ROW + latency))]
    assert len(hosts.sent()) == 2
    hosts.turn([read(slots, size), read(slots + 1, size)], 400)
    assert [parse_header(packet[0]).acknowledge for packet in hosts.sent()] == [slots, slots + 1]


@pytest.mark.slow
def test_counts_go_around():
    """Numbers of lists and slots are modulo 2^16, in every packet and register."""
    hosts, total, slots = hosts_of(), (1 << 16) + 300, VECTORS.slots
    size = BEAT_BYTES * len(vectors(KEYS[:1]))
    for first in range(0, total, slots):
        numbers = range(first, min(total, first + slots))
        hosts.turn([*(request(number, KEYS[:1]) for number in numbers), told(numbers.stop)], 2500)
        for part in range(first, numbers.stop, 50):
            hosts.turn([read(number, size) for number in numbers[part - first:][:50]], 1)
        hosts.turn([told(numbers.stop, VECTOR_INDEX)], 300)
        assert len(hosts.sent()) == len(numbers)
    for register in (CONSUMED, PRODUCED):
        assert [value for value, _ in stored(hosts, register)] == [
            number & 0xFFFF for number in range(1, total + 1)]


LIST = "wrote request list {} to a wrong slot, or over an unread list"
TOLD = "counted {} request lists, some of which are not written or already counted"
EMPTIED = "counted {} slots of vectors, some of which were not read or already counted"
READ = "read slot {} of vectors, which is not filled or has another size"
SIZE = "sent its host a packet of opcode {:#x} whose count does not fit its length"


@pytest.mark.parametrize(("packets", "message", "native"), [
    ([request(1)], f"wrote request list 0 to {LISTS.address(1):#x}, not to {LISTS.base:#x}",
     LIST.format(0)),
    ([request(0), request(1, at=0)], f"wrote request list 1 to 0x0, not to {LISTS.address(1):#x}",
     LIST.format(1)),
    ([*(request(number) for number in range(LISTS.slots + 1))],
     f"wrote request list {LISTS.slots} over one that was not read yet", LIST.format(LISTS.slots)),
    ([told(1)], "counted 1 request lists after 0, of which 0 more are written", TOLD.format(1)),
    ([request(0), told(2)], "counted 2 request lists after 0, of which 1 more are written",
     TOLD.format(2)),
    ([request(0), told(1), told(1)],
     "counted 1 request lists after 1, of which 0 more are written", TOLD.format(1)),
    ([request(0), told(1), told(0)],
     "counted 0 request lists after 1, of which 0 more are written", TOLD.format(0)),
    ([told(1, LIST_INDEX + 4)], f"wrote a count to {LIST_INDEX + 4:#x}, the address of no count",
     f"wrote a count to {LIST_INDEX + 4:#x}, the address of no count"),
    ([request(0), told(1), told(1, VECTOR_INDEX)],
     "counted 1 slots of vectors after 0, of which 0 more were read", EMPTIED.format(1)),
    ([read(0)], "read slot 0 of vectors, which is not filled", READ.format(0)),
    ([request(0), told(1), read(1)], "read slot 1 of vectors, which is not filled",
     READ.format(1)),
    ([request(0), told(1), read(0, BYTES - 64)],
     f"read {BYTES - 64} bytes at {VECTORS.base:#x} for slot 0 of vectors, which has {BYTES} at "
     f"{VECTORS.base:#x}", READ.format(0)),
    ([request(0), told(1), read(0, address=VECTORS.address(-1))],
     f"read {BYTES} bytes at {VECTORS.address(-1):#x} for slot 0", READ.format(0)),
    ([request(0), told(1), read(0, address=VECTORS.base + VECTORS.slots * VECTORS.slot_bytes)],
     f"read {BYTES} bytes at {VECTORS.base + VECTORS.slots * VECTORS.slot_bytes:#x} for slot 0",
     READ.format(0)),
    ([request(0), told(1), read(0), told(1, VECTOR_INDEX), read(0)],
     "read slot 0 of vectors, which is not filled", READ.format(0)),
    ([request(0, KEYS, count=0)], message := SIZE.format(Opcode.LOOKUP_REQUESTS), message),
    ([request(0, KEYS, count=9)], message, message),
    ([request(0, [KEYS[0]] * (MOST + 1))], message, message),
    ([np.concatenate((told(1), told(1)[1:]))], message := SIZE.format(Opcode.INDEX), message),
    ([read(0)[:1]], message := SIZE.format(Opcode.READ), message)])
def test_what_a_nic_must_not_do(packets, message, native):
    hosts = hosts_of()
    for packet in packets[:-1]:
        # Time for a gather, to fill slots.
        hosts.turn([packet], 5000 if parse_header(packet[0]).opcode == Opcode.INDEX else 200)
    violates(hosts, packets[-1:], message, native)


@pytest.mark.parametrize("packet", [told(1), read(0)])
def test_packets_of_rings_without_rings(packet):
    message = f"sent opcode {parse_header(packet[0]).opcode:#x} to its host"
    violates(hosts_of(gpu_rings=False), [packet], message, message)
