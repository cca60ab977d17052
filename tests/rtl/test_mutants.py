"""Faults of the hardware that values at random do not show, each with the test that finds it.

Most are comparisons that wrap, that look at fewer bits, or that are off by one place.
"""

import pytest

from tests.rtl.mutation import Mutant

MUTANTS = [
    # Rings: counts that wrap, places that are taken twice, and numbers compared in part.
    Mutant("rtl/rings/list_ring.py", "(written - consumed)[:INDEX_BITS] < slots",
           "(written - consumed) < slots",
           "rings/test_list_ring.py::test_a_kernel_that_consumes_nothing[65534]"),
    Mutant("rtl/rings/list_ring.py", "told.eq(record.index)", "told.eq(self.answerable)",
           "rings/test_list_ring.py::test_what_is_not_told_of_is_not_consumed"),
    Mutant("rtl/rings/vector_ring.py", ">= self._lists - 1)", ">= self._lists)",
           "rings/test_vector_ring.py::test_as_many_lists_wait_as_it_has_places_for"),
    Mutant("rtl/rings/vector_ring.py", "(read - out)[:INDEX_BITS] < self._outstanding",
           "(read - out) < self._outstanding",
           "rings/test_vector_ring.py::test_reads_that_nobody_answers[65534]"),
    Mutant("rtl/rings/completion.py", "(opened - freed)[:INDEX_BITS] < self._slots",
           "(opened - freed) < self._slots",
           "rings/test_completion.py::test_a_consumer_that_never_returns_a_slot[65535]"),
    Mutant("rtl/rings/completion.py", "event.tag == tag", "event.tag[:8] == tag[:8]",
           "rings/test_completion.py::test_steps_and_tags_are_compared_in_all_their_bits"),
    Mutant("rtl/rings/step_table.py", "step == of[1].step for", "step[:10] == of[1].step[:10] for",
           "rings/test_completion.py::test_steps_and_tags_are_compared_in_all_their_bits"),
    Mutant("rtl/rings/step_table.py", "step == error.step for", "step[:10] == error.step[:10] for",
           "rings/test_completion.py::test_steps_and_tags_are_compared_in_all_their_bits"),
    Mutant("rtl/rings/vector_ring.py", "full.eq((sent - out)[:INDEX_BITS] >=",
           "full.eq((sent - out) >=",
           "rings/test_vector_ring.py::test_as_many_lists_wait_as_it_has_places_for[65534]"),
    # A slot that stays late, a flush for nothing, and slots that are told of too late.
    Mutant("rtl/rings/step_table.py",
           "late.eq((late | self._bit(found, slot)) & ~self._bit(opens, event.slot))",
           "late.eq(late | self._bit(found, slot))", "rings/test_completion.py::"
           "test_a_flush_without_answer_does_not_hold_up_the_ring"),
    Mutant("rtl/rings/completion.py", "with m.If(self.flush & ~late):", "with m.If(self.flush):",
           "rings/test_completion.py::test_a_flush_without_answer_does_not_hold_up_the_ring"),
    Mutant("rtl/rings/vector_ring.py", "(ahead >= self.every)", "(ahead > self.every)",
           "rings/test_vector_ring.py::"
           "test_slots_are_told_of_when_there_are_as_many_as_asked_for"),
    # The id of a beat that is not valid taken for that of the beat before.
    Mutant("rtl/cache/fills.py", "with m.If(came):", "with m.If(came | 1):",
           "cache/test_fills.py::"
           "test_good_vectors_are_written_and_told_and_bad_ones_counted[4-2-0.2-0.3]"),
    # Steps of training, compared modulo 1,024, and written rows modulo 65,536.
    Mutant("rtl/training/barrier.py", "step == self.open_step, named",
           "step[:10] == self.open_step[:10], named",
           "training/test_barrier.py::test_a_step_that_is_not_open_is_no_end"),
    Mutant("rtl/training/barrier.py", "self.own.payload != self.open_step",
           "self.own.payload[:10] != self.open_step[:10]",
           "training/test_barrier.py::test_a_step_that_is_not_open_is_no_end"),
    Mutant("rtl/training/step_counter.py", "enough & ~gone & (here != wanted)",
           "enough & ~gone & (here[:8] != wanted[:8])",
           "training/test_step_counter.py::test_partials_too_many_are_counted"),
    Mutant("rtl/training/passes.py", "self.returned.payload.step == step",
           "self.returned.payload.step[:10] == step[:10]",
           "training/test_passes.py::test_what_is_lost_on_its_way_back_is_not_waited_for"),
    Mutant("rtl/training/passes.py", "self.lost.step == step", "self.lost.step[:10] == step[:10]",
           "training/test_passes.py::test_what_is_lost_on_its_way_back_is_not_waited_for"),
    Mutant("rtl/gradient/reducer.py", "front.beat.step == step",
           "front.beat.step[:10] == step[:10]",
           "gradient/test_reducer.py::test_steps_are_compared_in_all_their_bits"),
    Mutant("rtl/gradient/reducer.py", "given.step == before", "given.step[:10] == before[:10]",
           "gradient/test_reducer.py::test_steps_are_compared_in_all_their_bits"),
    Mutant("rtl/gradient/reducer.py", "step != answer.step", "step[:10] != answer.step[:10]",
           "gradient/test_reducer.py::test_steps_are_compared_in_all_their_bits"),
    Mutant("rtl/gradient/partial_receiver.py", "split.coming.step == self.open_step",
           "split.coming.step[:10] == self.open_step[:10]",
           "gradient/test_partial_receiver.py::test_partials_leave_one_by_one[16-stalls2]"),
    Mutant("rtl/gradient/partial_receiver.py", "user.step == self.open_step",
           "user.step[:10] == self.open_step[:10]",
           "gradient/test_partial_receiver.py::"
           "test_what_waits_is_of_the_step_that_is_open_when_it_leaves[1-1024]"),
    Mutant("rtl/gradient/rows_end.py", "self.sent == self.written",
           "self.sent[:16] == self.written[:16]",
           "gradient/test_rows_end.py"),
    # Places of the optimizer and of packets of indices that wait: the last ones are kept free.
    Mutant("rtl/gradient/optimizer.py", "olds.level < halves - 2", "olds.level < halves",
           "gradient/test_optimizer.py::test_what_waits_for_the_output_is_not_lost"),
    Mutant("rtl/delivery/indices.py", "packets.level <= PACKETS - 2",
           "packets.level <= PACKETS - 1",
           "delivery/test_indices.py::test_packets_that_wait_are_all_sent[64]"),
    Mutant("rtl/delivery/indices.py", "beats.level <= 2 * self._room",
           "beats.level <= 2 * self._room + 1",
           "delivery/test_indices.py::test_packets_that_wait_are_all_sent[3]"),
    # Packets of two steps, or that never get old, and lookups that leave too early.
    Mutant("rtl/interaction/result_groups.py", "(self.time - opened)[:32] >= self.timeout",
           "(self.time - opened) >= self.timeout",
           "interaction/test_result_groups.py::"
           "test_a_packet_leaves_when_its_first_result_is_old[4294967280]"),
    Mutant("rtl/interaction/result_frames.py", "item.step == last_step",
           "item.step[:10] == last_step[:10]",
           "interaction/test_result_frames.py::test_steps_are_compared_in_all_their_bits"),
    Mutant("rtl/network/packet_pool.py", "(same & (self.step != item.step))",
           "(same & (self.step[:10] != item.step[:10]))",
           "network/test_packet_pool.py::test_places_and_full_packets[1-2-17]"),
    Mutant("rtl/network/packet_pool.py", "(~same & (self.step != found.step))",
           "(~same & (self.step[:10] != found.step[:10]))",
           "network/test_packet_pool.py::test_places_and_full_packets[1-2-17]"),
    Mutant("rtl/query/dispatcher.py", "slot.step == next_step", "slot.step[:10] == next_step[:10]",
           "query/test_dispatcher.py::test_no_step_but_the_next_overtakes[1025]"),
    # Steps of delivery and of the dedupe table.
    Mutant("rtl/delivery/indices.py", "item.step == step", "item.step[:10] == step[:10]",
           "delivery/test_indices.py::test_steps_are_compared_in_all_their_bits"),
    Mutant("rtl/delivery/share.py", "here.slot.mine & ~ends", "here.slot.mine",
           "delivery/test_share.py::test_a_share_that_nobody_ends_ends_where_another_step_begins"),
    Mutant("rtl/delivery/share.py", "slot.step != step", "slot.step[:10] != step[:10]",
           "delivery/test_share.py::test_steps_are_compared_in_all_their_bits"),
    Mutant("rtl/delivery/unique.py", "slot.step != step", "slot.step[:10] != step[:10]",
           "delivery/test_unique.py::test_steps_are_compared_in_all_their_bits"),
    Mutant("rtl/delivery/unique.py", "lost == of)", "lost[:8] == of[:8])",
           "delivery/test_unique.py::test_entries_of_any_earlier_step_are_not_retired_early"),
    Mutant("rtl/dedupe/table.py", "Cat(request.key, request.step)",
           "Cat(request.key, request.step[:10])",
           "dedupe/test_table.py::test_steps_are_compared_in_all_their_bits"),
    Mutant("rtl/dedupe/table.py", "early = entries.evicted.valid & ~ahead[-1]",
           "early = entries.evicted.valid & (entries.evicted.key[Key.size:] >= self.step_floor)",
           "dedupe/test_table.py::test_entries_of_finished_steps_make_room"),
    # The timing of the link's recovery: backoff, wraps of time, Karn's rule, and a cycle early.
    Mutant("rtl/network/link/overdue.py", "Mux(record.tries <= 2, 0, record.tries - 2)",
           "Mux(record.tries <= 3, 0, record.tries - 3)",
           "network/link/test_recovery.py::test_a_packet_is_overdue_to_the_cycle"),
    Mutant("rtl/network/link/overdue.py", "((at - best)[31] | ~some)", "((at < best) | ~some)",
           "network/link/test_recovery.py::test_a_packet_is_overdue_to_the_cycle"),
    Mutant("rtl/network/link/deadlines.py", "(at - best)[31] | ~some", "(at < best) | ~some",
           "network/link/test_recovery.py::test_the_earliest_deadline_is_told_across_the_wrap"),
    Mutant("rtl/network/link/deadlines.py", "(at - best)[31] | ~some", "(best - at)[31] | ~some",
           "network/link/test_recovery.py::test_the_earliest_deadline_is_told_across_the_wrap"),
    Mutant("rtl/network/link/ends.py",
           "(sender.deadline - receiver.deadline)[31]", "(sender.deadline < receiver.deadline)",
           "network/link/test_recovery.py::test_the_earlier_deadline_of_both_sides_is_told"),
    Mutant("rtl/network/link/round_trips.py",
           "Mux(read.deviation > read.mean[4:], read.deviation,", "Mux(1, read.deviation,",
           "network/link/test_recovery.py::test_a_time_out_without_scatter"),
    Mutant("rtl/network/link/sender.py", "& (record.tries == 1)", "",
           "network/link/test_recovery_sender.py::"
           "test_a_packet_that_was_sent_twice_measures_nothing"),
    Mutant("rtl/network/link/sender.py", "& (record.tries == 1)", "& (record.tries <= 2)",
           "network/link/test_recovery_sender.py::"
           "test_a_packet_that_was_sent_twice_measures_nothing"),
    Mutant("rtl/network/link/overdue.py", "age >= limit", "age + 1 >= limit",
           "network/link/test_recovery.py::test_a_packet_is_overdue_to_the_cycle"),
    Mutant("rtl/network/link/overdue.py", "now + (limit - age)", "now + (limit - age) - 1",
           "network/link/test_recovery.py::test_a_packet_is_overdue_to_the_cycle"),
    Mutant("rtl/network/link/deadlines.py",
           "over.eq(~(self.time - at)[31])", "over.eq(~(self.time + 1 - at)[31])",
           "network/link/test_recovery.py::test_the_earliest_deadline_is_told_across_the_wrap"),
    # Packets that are freed while they are sent again, or never; LINK messages of other lengths.
    Mutant("rtl/network/link/sender.py",
           "blocked.eq(repeats.holds & (repeats.held == found.first))", "blocked.eq(0)",
           "network/link/test_recovery_sender.py::"
           "test_beats_of_a_packet_that_is_sent_again_stay_in_the_pool"),
    Mutant("rtl/network/link/sender.py", "blocked.eq(blocked & repeats.holds)", "blocked.eq(0)",
           "network/link/test_recovery_sender.py::"
           "test_beats_of_a_packet_that_is_sent_again_stay_in_the_pool"),
    Mutant("rtl/network/link/sender.py",
           "drops.valid.eq(came.valid & lost.bit_select(came.node, 1))", "drops.valid.eq(0)",
           "network/link/test_recovery_sender.py::"
           "test_a_packet_that_ends_after_its_peer_was_given_up_leaves_the_pool"),
    Mutant("rtl/network/frame_check.py",
           "(head1.count != RECORDS_PER_BEAT)", "(head1.count > RECORDS_PER_BEAT)",
           "network/link/test_recovery.py::test_a_link_message_has_eight_words"),
    Mutant("rtl/network/frame_check.py", "(head1.count != RECORDS_PER_BEAT)", "0",
           "network/link/test_recovery.py::test_a_link_message_has_eight_words"),
    # Doublings and bounds of the link's time-outs.
    Mutant("rtl/network/link/round_trips.py", "doubled.read_data == MOST_SHIFT, MOST_SHIFT", "0, 0",
           "network/link/test_recovery.py::test_a_time_out_without_scatter"),
    Mutant("rtl/network/link/round_trips.py",
           "Mux(step[2] | ~shifts_count, 0, Mux(", "Mux(~shifts_count, 0, Mux(",
           "network/link/test_recovery.py::test_a_time_out_without_scatter"),
    Mutant("rtl/network/link/overdue.py", "Mux(more > MOST_SHIFT, MOST_SHIFT, more)", "more",
           "network/link/test_recovery.py::test_a_packet_is_overdue_to_the_cycle"),
    Mutant("rtl/network/link/overdue.py", "Mux(more > self.doublings,", "Mux(1,",
           "network/link/test_recovery.py::test_a_packet_is_overdue_to_the_cycle"),
    Mutant("rtl/network/link/overdue.py",
           "once.eq(Mux(last, doubled, doubled << 1))", "once.eq(doubled << 1)",
           "network/link/test_recovery.py::test_a_packet_is_overdue_to_the_cycle"),
    Mutant("rtl/network/link/overdue.py",
           "once.eq(Mux(last, doubled, doubled << 1))", "once.eq(doubled)",
           "network/link/test_recovery.py::test_a_packet_is_overdue_to_the_cycle"),
    Mutant("rtl/network/link/overdue.py",
           "longer.eq(Mux(beyond_once, self.most, once))", "longer.eq(once)",
           "network/link/test_recovery.py::test_a_packet_is_overdue_to_the_cycle"),
    Mutant("rtl/network/link/overdue.py",
           "limit.eq(Mux(beyond, self.most, doubled))", "limit.eq(doubled)",
           "network/link/test_recovery.py::test_a_packet_is_overdue_to_the_cycle"),
    Mutant("rtl/network/link/overdue.py",
           "self.late.valid.eq(self.over & late)", "self.late.valid.eq(self.over)",
           "network/link/test_recovery.py::test_a_packet_is_overdue_to_the_cycle"),
    Mutant("rtl/network/link/overdue.py", "late.eq(late | doubles)", "late.eq(1)",
           "network/link/test_recovery.py::test_a_packet_is_overdue_to_the_cycle"),
    Mutant("rtl/network/link/overdue.py",
           "record.tries > self.doublings + 1", "record.tries > self.doublings",
           "network/link/test_recovery.py::test_a_packet_is_overdue_to_the_cycle"),
    Mutant("rtl/network/link/overdue.py", "doubles.eq((record.tries == 1) | (", "doubles.eq(0 | (",
           "network/link/test_recovery.py::test_a_packet_is_overdue_to_the_cycle"),
    # The jitter of the link's time-outs.
    Mutant("rtl/network/link/overdue.py", "limit.eq(limit + spread)", "limit.eq(limit)",
           "network/link/test_recovery.py::test_a_packet_is_overdue_to_the_cycle"),
    Mutant("rtl/network/link/overdue.py", "scale(chance, limit >> 2)", "scale(chance, limit >> 1)",
           "network/link/test_recovery.py::test_a_packet_is_overdue_to_the_cycle"),
    Mutant("rtl/network/link/overdue.py", "with m.If(last):\n", "with m.If(0):\n",
           "network/link/test_recovery.py::test_a_packet_is_overdue_to_the_cycle"),
    Mutant("rtl/network/link/overdue.py", "Cat(packet.sequence, self.own, packet.node, tries[:8])",
           "Cat(packet.sequence, self.own ^ packet.node, packet.node ^ self.own, tries[:8])",
           "network/link/test_recovery.py::test_a_packet_is_overdue_to_the_cycle"),
    Mutant("rtl/network/link/overdue.py",
           "self._chance(record.tries + 1)", "self._chance(record.tries)",
           "network/link/test_recovery.py::test_a_packet_is_overdue_to_the_cycle"),
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant.file}: {mutant.new}")
def test_each_is_in_its_file(mutant):
    assert compile(mutant.source, mutant.file, "exec")


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant.file}: {mutant.new}")
def test_each_is_found(mutant):
    ran = mutant.run()
    assert ran.returncode == pytest.ExitCode.TESTS_FAILED, (
        f"{mutant.test} does not find it:\n{ran.stdout[-2000:]}{ran.stderr[-2000:]}")
    # What cannot even be built is found by any test.
    assert "in elaborate" not in ran.stdout, ran.stdout[-2000:]


def test_text_that_is_gone_is_named():
    with pytest.raises(ValueError, match=r"rtl/config.py must contain 'no such text' once, not 0 "
                       "times: update the mutant"):
        Mutant("rtl/config.py", "no such text", "", "").source  # noqa: B018
