"""Invalid frames and messages injected into a run are counted, and dropped or answered; the results
stay correct."""

import random
from collections import Counter

import pytest

from rtl.formats import Status
from sim.job.options import RunOptions
from sim.node.node import Node
from sim.run.report import failures
from sim.run.run import Run
from tests.rtl.network.frames import (
    GPU_VECTORS,
    LOOKUPS,
    QUERIES,
    VECTORS,
    Frame,
    record_payload,
    vector_payload,
)
from tests.sim.injecting import push, run_with

MAC, IP = 0x02454D420000, 0x0A450000
NODES, TARGET, SILENT = 3, 0, 2
"""The last node has no sample of mini-batches of two, and sends no lookups of its own."""

NO_TABLE = [row | 60 << 36 | row << 48 for row in range(176)]


def _frame(**fields) -> Frame:
    target = fields.setdefault("destination", TARGET)
    source = fields.setdefault("source", SILENT)
    return Frame(**{"mac": MAC + target, "ip": IP + target, "from_mac": MAC + source,
                    "from_ip": IP + source} | fields)


def _run(actions, **options) -> tuple[dict, Counter]:
    """Run, calling ``actions[k](run, cycle)`` in the k-th quantum."""
    job = Run(RunOptions.of(config="tiny", nodes=NODES, samples=24, mini_batch=2, in_flight=2,
                         threads=1, **options))
    result = run_with(job, actions)
    counters = Counter()
    for node in result["counters"]:
        counters.update(node)
    return result, counters


def _inject(stream: str, frame: Frame, cut: int = 0, node: int = TARGET):
    return lambda job, cycle: push(job.cluster.nodes[node], stream, frame, cycle, cut)


LOOKUP = {"opcode": LOOKUPS, "count": 8, "payload": record_payload(NO_TABLE[:8])}
VECTOR = {"opcode": VECTORS, "count": 1, "payload": vector_payload([(5, bytes(64))])}

CASES = {
    "foreign EtherType": (_frame(ethertype=0x0806, **LOOKUP), 0, "net_receiver.foreign"),
    "foreign address": (_frame(mac=1, **LOOKUP), 0, "net_receiver.foreign"),
    "foreign port": (_frame(port=53, **LOOKUP), 0, "net_receiver.foreign"),
    "sender's MAC address": (_frame(from_mac=MAC + 1, **LOOKUP), 0, "net_receiver.foreign"),
    "sender's IP address": (_frame(from_ip=IP + 1, **LOOKUP), 0, "net_receiver.foreign"),
    "sender's port": (_frame(from_port=53, **LOOKUP), 0, "net_receiver.foreign"),
    "wrong IP length": (_frame(ip_length=99, **LOOKUP), 0, "net_receiver.bad_length"),
    "count beyond payload": (_frame(opcode=LOOKUPS, count=9, payload=LOOKUP["payload"]), 0,
                             "net_receiver.bad_length"),
    "truncated": (_frame(opcode=LOOKUPS, count=24, payload=record_payload(NO_TABLE[:24])), 1,
                  "net_receiver.bad_length"),
    "unknown opcode": (_frame(opcode=0x7F, count=8, payload=LOOKUP["payload"]), 0,
                       "net_receiver.bad_opcode"),
    "unknown version": (_frame(version=9, **LOOKUP), 0, "net_receiver.bad_opcode"),
    "CRC": (_frame(crc_error=1 << 7, **LOOKUP), 0, "net_receiver.bad_crc"),
    "MAC error": (_frame(err=1, **LOOKUP), 0, "net_receiver.errors_mac"),
    "node beyond the cluster": (_frame(source=NODES, **LOOKUP), 0, "net_receiver.bad_node"),
}


@pytest.fixture(scope="module")
def undisturbed() -> dict:
    result, counters = _run([])
    assert failures(result) == []
    bad = {name for _, _, name in CASES.values()}
    assert not any(counters[name] for name in bad)
    return result


def _same_answer(result: dict, undisturbed: dict) -> None:
    assert failures(result) == []
    assert result["predictions_sha256"] == undisturbed["predictions_sha256"]


def test_bad_frames_are_counted_and_dropped(undisturbed):
    rng = random.Random(4)
    cases = list(CASES.values()) * 3
    rng.shuffle(cases)
    result, counters = _run([_inject("net_rx", frame, cut) for frame, cut, _ in cases])
    _same_answer(result, undisturbed)
    expected = Counter(name for _, _, name in cases)
    assert {name: counters[name] for name in expected} == dict(expected)


def test_lookups_of_what_is_not_here(undisturbed):
    plan = Run(RunOptions.of(config="tiny", nodes=NODES, samples=2, threads=1)).plan
    table = next(t for t, placed in enumerate(plan.tables) if placed.owner != TARGET)
    elsewhere = [0 | table << 36 | k << 48 for k in range(8)]
    wrong_row = [1 << 35 | 0 << 36 | k << 48 for k in range(8)]
    frames = [_frame(**LOOKUP)] + [_frame(opcode=LOOKUPS, count=8, payload=record_payload(part))
                                   for part in (elsewhere, wrong_row)]
    result, counters = _run([_inject("net_rx", frame) for frame in frames])
    _same_answer(result, undisturbed)
    assert counters["lookup_check.bad_table"] == 8
    assert counters["lookup_check.bad_row"] == 8
    assert counters["lookup_check.bad_owner"] == 8


def test_vectors_nobody_waits_for(undisturbed):
    places = [(place, bytes([k]) * 64) for k, place in enumerate((1000, 2000, 65535))]
    frame = _frame(opcode=VECTORS, count=3, payload=vector_payload(places))
    result, counters = _run([_inject("net_rx", frame)] * 4)
    _same_answer(result, undisturbed)
    assert counters["remote_cache.bad_fills"] == 12


def test_more_than_its_credits(undisturbed):
    # 64 beats of lookups for three nodes: 21 each. 66 beats arrive at once.
    frame = _frame(opcode=LOOKUPS, count=176, payload=record_payload(NO_TABLE))
    result, counters = _run([lambda job, cycle: [
        push(job.cluster.nodes[TARGET], "net_rx", frame, cycle) for _ in range(3)]])
    _same_answer(result, undisturbed)
    dropped = counters["lookup_receiver.over_credit"]
    assert 66 - 21 - 22 <= dropped <= 66 - 21
    assert counters["lookup_check.bad_table"] == 8 * (66 - dropped)


def _host(**fields) -> Frame:
    return Frame(framing="host", source=TARGET, destination=TARGET, **fields)


def _sample(number: int, *records: int) -> bytes:
    return record_payload([number | len(records) << 32 | 3 << 48, *records])


def test_bad_messages_from_the_host_are_answered(undisturbed):
    end = 1 << 48
    messages = {
        "opcode": (_host(opcode=0x66, count=1, payload=bytes(64)), 0xFFFFFFFF, Status.OPCODE),
        "length": (_host(opcode=QUERIES, count=9, payload=bytes(64)), 0xFFFFFFFF, Status.LENGTH),
        "table": (_host(opcode=QUERIES, count=2, payload=_sample(900, 60 << 36 | end)), 900,
                  Status.TABLE),
        "row": (_host(opcode=QUERIES, count=2, payload=_sample(901, 1 << 35 | end)), 901,
                Status.ROW),
        "size": (_host(opcode=QUERIES, count=1, payload=_sample(902)), 902, Status.SAMPLE_SIZE),
    }
    # Each takes a beat of the query buffer besides the host's own; its credit allows a few.
    job_nodes: list[Node] = []

    def watch(job: Run, cycle: int) -> None:
        job_nodes[:] = job.cluster.nodes

    result, counters = _run([watch] + [
        _inject("host_rx", frame) for frame, _, _ in messages.values()])
    _same_answer(result, undisturbed)
    answered = sorted((sample, status) for node in job_nodes for sample, status in node.errors)
    assert answered == sorted((sample, int(status)) for _, sample, status in messages.values())
    assert counters["query_checker.rejected"] == 3


def test_rows_nobody_asked_the_gpu_for(undisturbed):
    payload = vector_payload([(4000 + k, bytes(64)) for k in range(5)])
    frame = _host(opcode=GPU_VECTORS, count=5, payload=payload)
    result, counters = _run([_inject("host_rx", frame)] * 3)
    _same_answer(result, undisturbed)
    assert counters["local_cache.bad_fills"] == 15
