"""A host in training: times and contents of its messages, and rejected messages."""

import numpy as np
import pytest

from host.dlrm.row_store import RowStore
from host.model import Model
from host.samples import Samples
from host.timing.gpu import GpuProfile
from host.wire.packets import (
    header_beat,
    pack_records,
    parse_header,
    parse_records,
    record_fields,
    records_to_beats,
)
from host.wire.partials import parse_partials, partial_packets
from host.wire.steps import StepNews, parse_states, parse_steps, state_packets, step_packet
from rtl.config import preset
from rtl.formats import GradientRecord, LookupRecord, Opcode, RecordKind, Status, StepKind
from sim.node.errors import ProtocolError
from sim.node.events import EventQueue
from sim.node.gpu_memory import GpuMemory, store_answers
from sim.node.gradients import RefusedMessage, TrainingHost, gradient_payload

MODEL = Model((50, 60), 16, 1, (16,), (1,))
GPU = GpuProfile("g", 4.0, 64.0, 64, 1, 1.0, kernel_us=0.0)
"""Launches of 1,000 cycles, 256 bytes a cycle."""
STEP = 0x1_0007


class Host:
    """The host of node 1, which owns table 1, in step 65,543; records its messages and their times.
    """

    def __init__(self, window: int = 64):
        self.events, self.store = EventQueue(), RowStore(MODEL, 5)
        self.sent: list[tuple[float, np.ndarray]] = []
        self.silent_after = float("inf")
        memory = GpuMemory(1, self.store, lambda tables, rows: tables == 1, GPU, 24, self.events,
                           self._send, awake=lambda end: end if end < self.silent_after
                           else float("inf"))
        self.training = TrainingHost(1, memory, window, min(24, window // 2), self.events,
                                     self._send)
        self.training.open(STEP)

    def _send(self, packet, now):
        self.sent.append((now, packet))

    def begin(self, samples: int = 2) -> "Host":
        share = Samples(np.zeros((samples, 1), np.float32), np.zeros(samples, np.float32),
                        np.ones((samples, 2), np.int32), np.tile([0, 1], samples),
                        np.arange(2 * samples))
        self.training.gradients(share, np.ones((samples, 2, 16), np.float32), 10.0)
        self.run()
        return self

    def run(self, until: float = float("inf")):
        for time, action in self.events.until(until):
            action(time)

    def take(self, packet, now: float = 100.0, **header: int) -> bool:
        packet = packet.copy()
        packet[:1] |= header_beat(0, **{"node": 0, "step": 0, "count": 0, "version": 0, **header})
        return self.training.packet(packet, parse_header(packet[0]), now)

    def news(self, *news: StepNews, step: int = STEP, now: float = 100.0, **header):
        self.take(step_packet(Opcode.STEP_REPORTS, list(news), node=1, step=step), now, **header)

    def partials(self, opcode, rows, *, table: int = 1, beats=0, level: int = 0, step: int = STEP,
                 value: float = 2.0, now: float = 100.0):
        for packet in partial_packets(
                opcode, np.full(len(rows), table), np.array(rows), beats,
                np.full((len(rows), 16), value, np.float32), node=1, step=step, level=level,
                payload_beats=24):
            self.take(packet, now)

    def ask(self, rows, landings, table: int = 1, now: float = 100.0):
        records = pack_records(LookupRecord, table=np.full(len(rows), table), row=np.array(rows),
                               landing=np.array(landings))
        self.take(np.concatenate((header_beat(
            Opcode.STATE_REQUESTS, node=1, step=STEP, count=len(rows)),
            records_to_beats(records))), now)

    @property
    def opcodes(self) -> list[int]:
        return [parse_header(packet[0]).opcode for _, packet in self.sent]


def test_gradients_leave_in_their_time_and_end_with_an_empty_record():
    host = Host().begin()
    assert [time for time, _ in host.sent] == [10.0, 10.0] and host.training.busy
    assert host.opcodes == [Opcode.GRADIENTS] * 2
    head = parse_header(host.sent[1][1][0])
    assert (head.step, head.count, head.source) == (7, 1, 1)
    fields = parse_records(GradientRecord, host.sent[1][1][1:], 1)
    assert fields["kind"].tolist() == [RecordKind.EMPTY]


def test_packets_leave_room_for_credit_that_is_not_reported():
    config = preset("kaggle")
    assert gradient_payload(config) == 64
    assert gradient_payload(config.with_fields(gradient_beats=256)) == 64
    assert gradient_payload(config.with_fields(
        host_payload_beats=100, gradient_beats=256)) == (256 - 102) // 2


def test_a_node_without_samples_sends_the_end_alone():
    assert Host().begin(0).opcodes == [Opcode.GRADIENTS]


def test_packets_wait_for_what_is_acknowledged():
    """32 bags of a single key: a packet of 8 beats contains 7, and a window of 16 beats two
    packets."""
    host = Host(16).begin(16)
    assert [len(packet) - 1 for _, packet in host.sent] == [8, 8] and host.training.waiting == 4
    host.news(StepNews(StepKind.PASSED), acknowledge=5, now=50.0)
    assert len(host.sent) == 2
    host.news(StepNews(StepKind.PASSED), acknowledge=8, now=60.0)
    assert len(host.sent) == 3 and host.sent[2][0] == 60.0
    host.news(StepNews(StepKind.PASSED), acknowledge=24, now=70.0)
    assert [len(packet) - 1 for _, packet in host.sent[3:]] == [8, 5, 1]
    assert not host.training.waiting and host.training.busy


def test_spilled_beats_go_back_when_all_are_there_and_the_pass_is_over():
    host = Host().begin()
    host.partials(Opcode.SPILLED, [3, 4], level=1)
    host.partials(Opcode.SPILLED, [5], table=0)
    assert len(host.sent) == 2
    host.news(StepNews(StepKind.PASSED, 3, 1), now=200.0)
    assert len(host.sent) == 2
    host.partials(Opcode.SPILLED, [9], level=1, now=300.0)
    (time, packet), = host.sent[2:]
    assert time == 300.0
    head = parse_header(packet[0])
    assert (head.opcode, head.count, head.step) == (Opcode.RETURNED, 3, 7)
    back = parse_partials(packet, 3)
    assert back.rows.tolist() == [3, 4, 9] and back.levels.tolist() == [1, 1, 1]
    assert (back.values == 2).all()
    host.news(StepNews(StepKind.PASSED, 1, 0), now=400.0)
    assert parse_partials(host.sent[3][1], 1).tables.tolist() == [0]
    assert host.training.spilled == [1, 3] and host.training.passes == [1, 1]


def test_states_are_read_by_a_gather_and_rows_written_by_scatters():
    host = Host().begin()
    key = np.array([1 << 36 | 30])
    host.store.write(key, np.ones((1, 16), np.float32), np.array([7.0], np.float32))
    host.ask([30, 31], [5, 900])
    host.run()
    time, packet = host.sent[-1]
    assert time == pytest.approx(1100 + 2 * 64 / 256)
    assert parse_header(packet[0]).opcode == Opcode.STATES
    landings, states = parse_states(packet, 2)
    assert landings.tolist() == [5, 900] and states.tolist() == [7.0, 0.0]
    host.sent.clear()
    # The first scatter takes the present rows; later rows go with the second scatter.
    host.partials(Opcode.ROW_UPDATES, [30], now=2000.0)
    host.partials(Opcode.ROW_UPDATES, [31], now=2010.0)
    host.take(state_packets(Opcode.STATE_UPDATES, np.array([900, 5]),
                            np.array([1.5, 2.5], np.float32), node=1, step=STEP,
                            payload_beats=4)[0], 2020.0)
    host.run(3000.0)
    assert host.store.read(key)[0][0, 0] == 1.0 and host.training.memory.unfinished
    host.run()
    assert host.opcodes == [Opcode.WRITTEN] * 2
    assert [parse_steps(packet, 1)[0].count for _, packet in host.sent] == [1, 4]
    assert [time for time, _ in host.sent] == pytest.approx(
        [3000 + 0.25, 4000 + 0.25 + 3 * 0.25])
    vectors, states = host.store.read(np.array([1 << 36 | 30, 1 << 36 | 31]))
    assert (vectors == 2).all() and states.tolist() == [2.5, 1.5]
    assert not host.training.memory.unfinished
    host.news(StepNews(StepKind.DONE), now=5000.0)
    assert host.training.finished == 5000.0 and not host.training.busy
    assert host.training.keys.tolist() == [1 << 36 | 30, 1 << 36 | 31]


def test_a_landing_may_be_asked_under_again_before_its_update_is_here():
    """Different blocks send requests and updates; each block sends in the order of rows."""
    host = Host().begin()
    host.ask([30], [5])
    host.ask([31], [5], now=200.0)
    host.run()
    host.take(state_packets(Opcode.STATE_UPDATES, np.array([5, 5]),
                            np.array([1.0, 2.0], np.float32), node=1, step=STEP,
                            payload_beats=4)[0], 9000.0)
    host.run()
    assert host.store.read(np.array([1 << 36 | 30, 1 << 36 | 31]))[1].tolist() == [1.0, 2.0]


def test_a_silent_gpu_writes_nothing():
    host = Host().begin()
    host.silent_after = 500.0
    host.partials(Opcode.ROW_UPDATES, [30])
    host.ask([30], [5])
    host.run()
    assert len(host.sent) == 2 and host.training.memory.unfinished


def test_rows_are_answered_as_they_are_now():
    store = RowStore(MODEL, 5)
    keys = np.array([7, 1 << 36 | 9])
    store.write(keys[:1], np.full((1, 16), 3, np.float32), np.zeros(1, np.float32))
    records = pack_records(LookupRecord, table=np.array([0, 1]), row=np.array([7, 9]),
                           landing=np.array([4, 8]))
    packet, = store_answers(store, 1, 24)(records, STEP)
    assert parse_header(packet[0]).step == 7
    assert packet[1].view(np.uint16)[:2].tolist() == [4, 8]
    assert np.array_equal(packet[2:].view(np.float32), store.read(keys)[0])
    assert (packet[2].view(np.float32) == 3).all()


def test_refused_messages_are_kept():
    host = Host().begin()
    host.training.errors(np.array([0xFFFFFFFF, 5]), np.array([6, 7]),
                         np.array([Status.STEP, Status.ROW]))
    assert host.training.refused == [RefusedMessage(6, Status.STEP)]


def spilled_of_two_levels(host):
    records = np.concatenate([record_fields_of(level) for level in (0, 1)])
    host.take(np.concatenate((header_beat(Opcode.SPILLED, node=1, step=STEP, count=2),
                              records_to_beats(records), np.zeros((2, 16), np.uint32))))


def record_fields_of(level):
    packet, = partial_packets(Opcode.SPILLED, np.array([1]), np.array([2]), 0,
                              np.zeros((1, 16), np.float32), node=1, step=STEP, level=level,
                              payload_beats=4)
    record = packet[1].view(np.uint64)[:1]
    assert record_fields(LookupRecord, record)["row"] == 2
    return record


@pytest.mark.parametrize(("action", "said"), [
    (lambda host: host.news(StepNews(StepKind.DONE), step=6), "opcode 0x2b of step 6, which is no"),
    (lambda host: host.news(StepNews(StepKind.END)), "reported a step record of kind 0"),
    (lambda host: host.news(StepNews(StepKind.PASSED), acknowledge=99),
     "acknowledged 99 beats of gradients, of which 6 were sent"),
    (lambda host: host.partials(Opcode.ROW_UPDATES, [3], table=0), "named a row that it does not"),
    (lambda host: host.partials(Opcode.ROW_UPDATES, [60]), "named a row that it does not own"),
    (lambda host: host.partials(Opcode.ROW_UPDATES, [3], table=2), "named a row that it does not"),
    (lambda host: host.partials(Opcode.ROW_UPDATES, [3], beats=1), "updated beat 1 of a row, whic"),
    (lambda host: host.ask([3], [1], table=0), "a row that it does not own to its host"),
    (lambda host: host.take(state_packets(
        Opcode.STATE_UPDATES, np.array([6]), np.zeros(1, np.float32), node=1, step=STEP,
        payload_beats=4)[0]), "updated the state of landing 6, for which no state was requested"),
    (lambda host: [host.partials(Opcode.ROW_UPDATES, [3, 3]), host.run(),
                   host.news(StepNews(StepKind.DONE))], "updated a row twice in a step"),
    (lambda host: [host.partials(Opcode.ROW_UPDATES, [3]), host.news(StepNews(StepKind.DONE))],
     "ended step 65543 with rows or states not written"),
    (lambda host: [host.ask([3], [1]), host.run(), host.news(StepNews(StepKind.DONE))],
     "ended step 65543 with rows or states not written"),
    (lambda host: [host.partials(Opcode.SPILLED, [3]), host.news(StepNews(StepKind.DONE))],
     "ended step 65543 with spilled beats not returned"),
    (lambda host: [host.news(StepNews(StepKind.PASSED, 2)), host.news(StepNews(StepKind.DONE))],
     "ended step 65543 with spilled beats not returned"),
    (lambda host: [host.partials(Opcode.SPILLED, [3]), host.news(StepNews(StepKind.PASSED))],
     "spilled 1 beats at level LOCAL, and reported 0"),
    (lambda host: [host.partials(Opcode.SPILLED, [3, 4]), host.news(StepNews(StepKind.PASSED, 1))],
     "spilled 2 beats at level LOCAL, and reported 1"),
    (lambda host: [host.news(StepNews(StepKind.PASSED, 1)), host.news(StepNews(StepKind.PASSED))],
     "ended a pass before it had spilled the previous pass completely"),
    (spilled_of_two_levels, "spilled beats of two levels in a packet"),
    (lambda host: [host.news(StepNews(StepKind.DONE)), host.news(StepNews(StepKind.DONE))],
     "sent opcode 0x2b of step 7, which is not open"),
])
def test_a_nic_that_breaks_the_protocol_is_found_out(action, said):
    host = Host().begin()
    with pytest.raises(ProtocolError, match=said):
        action(host)


def test_a_step_cannot_end_before_its_gradients_have():
    with pytest.raises(ProtocolError, match="ended step 65543 with gradients not begun"):
        Host().news(StepNews(StepKind.DONE))
    host = Host(16).begin(16)
    with pytest.raises(ProtocolError, match="ended step 65543 with gradients not sent"):
        host.news(StepNews(StepKind.DONE))


def test_parts_of_rows_do_not_do():
    host = Host()
    host.training.memory._beats = 2
    host.begin()
    host.partials(Opcode.ROW_UPDATES, [3], beats=1)
    host.training.memory._unwritten = 0
    with pytest.raises(ProtocolError, match="updated only a part of a row"):
        host.news(StepNews(StepKind.DONE))
