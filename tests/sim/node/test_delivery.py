"""Unique vectors with indices, and completions, in hosts in Python and compiled hosts."""

import re
from collections.abc import Sequence
from random import Random

import numpy as np
import pytest

from host.dlrm.dlrm import pooled_reference
from host.dlrm.rows import row_values
from host.samples import Samples
from host.wire.completions import Completion, completion_packet, flush_packet
from host.wire.packets import parse_header, parse_records
from rtl.formats import (
    EMPTY_INDEX,
    END_SAMPLE,
    NO_INDEX,
    Opcode,
    Status,
    StepOpenRecord,
)
from sim.job.settings import COMPLETION_BASE
from sim.node.delivery import Delivery
from sim.node.errors import ProtocolError
from sim.node.step import Step, StepResult
from tests.sim.node.hosts import (
    NODE,
    NODES,
    SEED,
    Hosts,
    errors,
    indices,
    model_of,
    pooled,
    steps_of,
    vectors,
)
from tests.sim.node.scripted import ScriptedNic

COUNTS = (9, 3, 30, 4, 12, 90, 6, 5, 21, 3, 3, 24)
MODEL = model_of(16)
LENGTHS = (1, 2, 0)
INDICES = [0, 1, 2, EMPTY_INDEX, 0, 2, 1, EMPTY_INDEX]
"""Indices of the eight slots of a share of two samples with the bags of `step`."""
ROWS = row_values(MODEL, SEED, np.array([0, 1, 1]), np.array([3, 7, 8]))


@pytest.mark.parametrize("dimension", [4, 48])
@pytest.mark.parametrize(("pooling", "slots", "options"), [
    ("sum", 0, {}), ("mean", 0, {"forget": 0.2}), (None, 4, {}), ("mean", 8, {}),
    ("sum", 4, {"flush": False, "forget": 0.1}), ("sum", 4, {"refuse": 0.3}),
    (None, 2, {"refuse": 0.9}), ("sum", 0, {"refuse": 0.9})])
def test_every_order_gives_the_answers_of_the_reference(dimension, pooling, slots, options):
    """Numbers of samples and of steps wrap, skipping reserved values."""
    model, unique = model_of(dimension, pooling or "sum"), pooling is not None
    delivery = Delivery(pooling, slots)
    steps = [steps_of(model, COUNTS, (1 << 32) - 88, unique=unique,
                      numbers=range(65530, 65530 + len(COUNTS))) for _ in range(2)]
    rng = Random(f"{dimension} {pooling} {slots} {options}")
    nic = ScriptedNic(model, steps[0], delivery, rng, **options)
    hosts = Hosts(model, steps[0], steps[1], delivery, in_flight=min(4, slots or 4))
    nic.take(hosts.sent())
    turns = 0
    while len(hosts.nodes[0].finished) < len(COUNTS):
        hosts.turn(nic.some(), rng.choice([1, 40, 300]))
        nic.take(hosts.sent())
        assert (turns := turns + 1) < 5000
    hosts.turn([], 1000)
    assert not hosts.sent() and not hosts.nodes[0].queries_waiting
    assert bool(nic.refused) == ("refuse" in options) and unique == (Opcode.INDICES in nic.kinds)
    assert (slots > 0) == (Opcode.COMPLETION in nic.kinds)
    assert (slots > 0 and options.get("flush", True)) == (Opcode.FLUSH in nic.kinds)
    for step in steps[0] + steps[1]:
        share = range(*step.shares[NODE:NODE + 2])
        answered = [step.first + at & 0xFFFFFFFF not in nic.refused for at in share]
        assert ((step.status[share] == 0) == answered).all() and not step.left[NODE]
        assert (step.filled[share][answered] == model.tables).all()
        expected = pooled_reference(step.samples, model, SEED)[share][answered]
        assert np.array_equal(step.answers[share][answered].view(np.uint32),
                              expected.view(np.uint32))


def step(number: int, *, unique: bool = True) -> Step:
    """Return step ``number``, whose share at the node has samples 102 and 103 for step 7, and so
    on."""
    one = [0, 1, 1], [3, 7, 8]
    other = [0, 1, 1], [3, 8, 7]
    tables, rows = (np.array([*one[k], *other[k]] * NODES) for k in range(2))
    samples = Samples(np.zeros((6, 1), np.float32), np.zeros(6, np.float32),
                      np.array([LENGTHS] * 6, np.int32), tables.astype(np.int32),
                      rows.astype(np.int64))
    return Step.of(number, 100 + 6 * (number - 7), samples, NODES, (3, 16), unique=unique)


def hosts_of(pooling: str | None, slots: int = 0) -> Hosts:
    """Return hosts that have sent the queries of steps 7 and 8."""
    both = [[step(number, unique=pooling is not None) for number in (7, 8)] for _ in range(2)]
    return Hosts(MODEL, both[0], both[1], Delivery(pooling, slots))


def violates(hosts: Hosts, packets: Sequence[np.ndarray], message: str, native: str) -> None:
    """Check that both hosts reject the last of ``packets``."""
    if packets[:-1]:
        hosts.turn(packets[:-1], 400)
    hosts.give(packets[-1:])
    for node, expected in zip(hosts.nodes, (message, native)):
        with pytest.raises(ProtocolError, match=f"^node 1 {re.escape(expected)}"):
            node.host_quantum(hosts.cycle)
            node.host_quantum(hosts.cycle + 1000)


VECTORS = "sent vectors of step 7, or their end, out of order"
INDEX = "sent indices of sample {}, or with it, out of order"


@pytest.mark.parametrize(("packets", "message"), [
    ([vectors(9, 0, ROWS)], "sent vectors of step 9, which is not in flight or has them all"),
    ([vectors(8, 0, ROWS)], "sent vectors of step 8 before the last of step 7"),
    ([vectors(7, 0, ROWS, sample=102)], "sent vectors of step 7 for sample 102 alone"),
    ([vectors(7, 1, ROWS)], "sent vectors of step 7 from number 1 on, after 0 of them"),
    ([vectors(7, 0, ROWS[:2]), vectors(7, 1, ROWS[1:])],
     "sent vectors of step 7 from number 1 on, after 2 of them"),
    ([vectors(7, 0, ROWS, last=True), vectors(7, 3, ROWS)],
     "sent vectors of step 7 after their end"),
    ([pooled(7, 0xFFFFFFFF, 0, ROWS, True)],
     "sent vectors of step 7 that do not end with a vector of zeros"),
    ([vectors(7, 0, ROWS.repeat(3, axis=0))],
     "sent vectors of step 7 of which there are 9, for 8 slots"),
    ([vectors(7, 0, ROWS)[:-1]],
     "sent vectors of step 7: count must match 2 beats of vectors, not 3")])
def test_vectors_that_are_not_to_come(packets, message):
    number = message.partition("step ")[2][0]
    violates(hosts_of("sum"), packets, message, VECTORS.replace("7", number))


@pytest.mark.parametrize(("packets", "message"), [
    ([indices(7, 99, 0, 2, True, INDICES)], "of sample 99, which is not in flight"),
    ([indices(7, 101, 0, 2, True, INDICES)], "of sample 101, which it does not hold"),
    ([indices(8, 102, 0, 2, True, INDICES)], "of sample 102 in a packet of step 8"),
    ([indices(8, 108, 0, 2, True, INDICES), indices(7, 102, 0, 2, True, INDICES)],
     "of sample 102 after those of step 8"),
    ([indices(7, 102, 0, 2, True, INDICES), indices(7, 103, 0, 1, True, INDICES[4:])],
     "of sample 103 from its slot 4 on, after slot 7"),
    ([indices(7, 102, 0, 1, False, INDICES[:2]), indices(7, 102, 3, 1, True, INDICES[3:4])],
     "of sample 102 from its slot 3 on, after slot 1"),
    ([indices(7, 102, 0, 1, False, INDICES[:2]), indices(7, 103, 0, 1, True, INDICES[4:])],
     "of sample 103 from its slot 4 on, after slot 1"),
    ([indices(7, 103, 1, 1, True, INDICES[5:])], "of sample 103 from its slot 5 on, after slot -1"),
    ([indices(7, 103, 0, 2, True, INDICES)], "of sample 103 of more slots than it has"),
    ([indices(7, 102, 4, 1, True, INDICES[4:])], "of sample 102 of more slots than it has"),
    ([indices(7, 102, 0, 2, True, [*INDICES, 0])],
     "of sample 102 of 9 slots, which do not end in the sample of the last one, 103"),
    ([indices(7, 102, 0, 2, True, INDICES[:3])],
     "of sample 102 of 3 slots, which do not end in the sample of the last one, 103"),
    ([indices(7, 102, 0, 1, False, INDICES[:4])], "of sample 102 that end a sample too early or"),
    ([indices(7, 102, 0, 1, True, INDICES[:3])], "of sample 102 that end a sample too early or"),
    ([errors([(103, 7, 3)]), indices(7, 102, 0, 2, True, INDICES)],
     "of sample 102 of a rejected sample"),
    ([indices(7, 102, 0, 2, True, [0] * 8)], "of sample 102 that mark an empty slot as full"),
    ([indices(7, 102, 0, 2, True, [EMPTY_INDEX] * 8)], "of sample 102 that mark an empty slot as"),
    ([vectors(7, 0, ROWS, last=True), indices(7, 102, 0, 2, True, INDICES),
      indices(7, 103, 0, 1, True, INDICES[4:])], "of sample 103, which is not in flight"),
    ([indices(7, 102, 0, 2, True, INDICES)[:-1]], ": count must match 0 beats of indices, not 8"),
    ([indices(7, 102, 0, 3, True, INDICES[:2])], ": samples must be between 1 and 2, not 3")])
def test_indices_that_are_not_to_come(packets, message):
    sample = re.search(r"sample (\d+)", message) or [None, "102"]
    space = "" if message.startswith(":") else " "
    violates(hosts_of("sum"), packets, f"sent indices{space}{message}", INDEX.format(sample[1]))


@pytest.mark.parametrize("index", [3, 8, NO_INDEX])
def test_an_index_of_no_vector(index):
    violates(hosts_of("mean"), [vectors(7, 0, ROWS, last=True),
                                indices(7, 102, 0, 2, True, [index, *INDICES[1:]])],
             f"sent indices of step 7 that name vector {index} of 3", INDEX.format(100))


def test_a_sample_with_indices_that_is_refused():
    hosts = hosts_of("sum")
    hosts.turn([indices(7, 102, 0, 1, False, INDICES[:2])], 400)
    hosts.give([errors([(102, 7, 3)])])
    for node, message in zip(hosts.nodes, ("sample 102 was answered twice, the second time with "
                                           "error 3", "node 1 answered sample 102, or a part")):
        with pytest.raises(ProtocolError, match=f"^{message}"):
            node.host_quantum(hosts.cycle)


def word(number: int, opening: int, status: int = 0, **changes: int) -> np.ndarray:
    """Return the COMPLETION packet of an opening in a ring of four slots."""
    lap, slot = divmod(opening, 4)
    word = Completion(status, number, lap + 1, slot, COMPLETION_BASE + 4 * slot)
    return completion_packet(word._replace(**changes), node=NODE)


def answers(number: int) -> list[np.ndarray]:
    """Return the vectors and the indices of a step."""
    return [vectors(number, 0, ROWS, last=True),
            indices(number, 102 + 6 * (number - 7), 0, 2, True, INDICES)]


@pytest.mark.parametrize(("packets", "message", "native"), [
    ([word(9, 0)], "completed step 9, which is not open", "completed step 9, which is not open"),
    ([*answers(7), word(7, 0), word(7, 0)], "completed step 7, which is not open",
     "completed step 7, which is not open"),
    *(([*answers(7), wrong], f"completed step 7 in slot {slot} of lap {lap} at {at:#x}, not in "
       f"slot 0 of lap 1 at {COMPLETION_BASE:#x}",
       "completed step 7 in a wrong slot or lap") for wrong, slot, lap, at in (
        (word(7, 0, lap=2), 0, 2, COMPLETION_BASE), (word(7, 1), 1, 1, COMPLETION_BASE + 4),
        (word(7, 0, address=8), 0, 1, 8))),
    *(([*some, word(7, 0)], message := "completed step 7 without an error, before all "
       "of its answers", message) for some in ([], answers(7)[:1], answers(7)[1:])),
    ([np.concatenate((word(7, 0, 3), word(7, 0)[1:]))],
     f"sent its host a packet of opcode {Opcode.COMPLETION:#x} whose count does not fit",
     f"sent its host a packet of opcode {Opcode.COMPLETION:#x} whose count does not fit"),
    ([flush_packet(0, 3, node=NODE, step=7)[:1]],
     f"sent its host a packet of opcode {Opcode.FLUSH:#x} whose count does not fit",
     f"sent its host a packet of opcode {Opcode.FLUSH:#x} whose count does not fit")])
def test_completions_that_are_not_to_come(packets, message, native):
    violates(hosts_of("sum", 4), packets, message, native)


@pytest.mark.parametrize("packet", [
    word(7, 0), flush_packet(0, 3, node=NODE, step=7), indices(7, 102, 0, 2, True, INDICES)])
def test_packets_of_another_delivery(packet):
    message = f"sent opcode {parse_header(packet[0]).opcode:#x} to its host"
    violates(hosts_of(None), [packet], message, message)


def test_a_flush_is_answered_when_it_has_come():
    hosts = hosts_of("sum", 4)
    assert [parse_header(packet[0]).opcode for packet in hosts.sent()] == [
        Opcode.STEP_OPEN, Opcode.QUERIES] * 2
    sent = hosts.cycle
    flush = flush_packet(3, 999, node=NODE, step=7)
    hosts.turn([flush], 1)
    hosts.turn([], 400)
    [answer] = hosts.sent()
    head = parse_header(answer[0])
    assert (head.opcode, head.step, head.count) == (Opcode.FLUSHED, 7, 1)
    assert np.array_equal(answer[1:], flush[1:])
    _, cycles = hosts.edges[0].received[-1]
    # The last beat left in the second cycle, and the first of two beats takes 1.25 cycles.
    assert cycles[0] == np.ceil(sent + 1 + 2 * hosts.nodes[0].pcie.latency + 1.25)


def test_a_share_is_over_with_its_word():
    hosts = hosts_of("sum", 4)
    hosts.turn(answers(7), 400)
    assert not hosts.nodes[0].finished and hosts.nodes[0].unanswered == 2
    left = hosts.cycle + 1
    hosts.turn([word(7, 0)], 400)
    [done] = hosts.nodes[0].finished
    assert done.ends == {NODE: left + hosts.nodes[0].pcie.latency}


@pytest.mark.parametrize("pooling", ["sum", None])
def test_a_step_that_is_late(pooling):
    """Its samples have the status of the word, and later answers are ignored."""
    hosts = hosts_of(pooling, 4)
    late = answers(7)
    if pooling is None:
        values = pooled_reference(hosts.steps[0][0].samples, MODEL, SEED)
        late = [pooled(7, sample, 0, values[sample - 100], True) for sample in (102, 103)]
        hosts.turn(late[:1], 9)
    hosts.turn([word(7, 0, Status.TIMEOUT), late[1]], 400)
    [done] = hosts.nodes[0].finished
    assert done.status.tolist()[2:4] == [0 if pooling is None else Status.TIMEOUT, Status.TIMEOUT]
    assert not hosts.nodes[0].errors and hosts.nodes[0].unanswered == 2
    kept = done.answers.copy()
    hosts.turn([late[pooling is None], errors([(103, 7, 2)])], 400)
    if pooling is not None:
        hosts.turn([*answers(8), word(8, 1)], 400)
        assert [step.number for step in hosts.nodes[0].finished] == [7, 8]
        assert StepResult.judge(hosts.steps[0][1], MODEL, SEED).equal == 2
    assert np.array_equal(done.answers, kept) and hosts.nodes[1].errors == [(103, 2)]


def test_slots_are_returned_in_the_order_of_opening():
    """A step that ends before an older one keeps its slot."""
    both = [[step(number) for number in range(7, 20)] for _ in range(2)]
    hosts = Hosts(MODEL, both[0], both[1], Delivery("sum", 4), in_flight=4)

    def opened() -> list[tuple[int, int]]:
        return [(int(fields["step"][0]), int(fields["freed"][0])) for fields in (
            parse_records(StepOpenRecord, packet[1:], 1) for packet in hosts.sent()
            if parse_header(packet[0]).opcode == Opcode.STEP_OPEN)]

    assert opened() == [(7, 0), (8, 0), (9, 0), (10, 0)]
    hosts.turn([word(8, 1, 3), word(9, 2, 3)], 400)
    assert len(hosts.nodes[0].finished) == 2 and opened() == []
    hosts.turn([word(7, 0, 3)], 400)
    assert opened() == [(11, 3), (12, 3), (13, 3)]


@pytest.mark.parametrize("slots", [0, 4])
def test_the_end_of_a_share_is_refused(slots):
    """Without a word, the share ends at once; vectors of the next share may arrive."""
    hosts = hosts_of("sum", slots)
    hosts.turn([answers(7)[1], vectors(7, 0, ROWS), errors([(END_SAMPLE, 7, 8)])], 400)
    if slots:
        assert not hosts.nodes[0].finished
        hosts.turn([word(7, 0, 8)], 400)
    assert [step.number for step in hosts.nodes[0].finished] == [7]
    assert hosts.steps[1][0].status.tolist() == [0, 0, 8, 8, 0, 0]
    hosts.turn([*answers(8), *([word(8, 1)] if slots else [])], 400)
    assert [step.number for step in hosts.nodes[0].finished] == [7, 8]
    assert StepResult.judge(hosts.steps[1][1], MODEL, SEED).equal == 2
