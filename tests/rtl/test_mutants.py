"""Hardware faults that random values do not reveal, each with the test that finds it.

Most are comparisons that wrap, that compare fewer bits, or that are off by one.
"""

import pytest

from rtl.bags.check import BagCheck
from rtl.bags.landing import BagLanding
from rtl.bags.lost import LostBags
from rtl.bags.places import OwnerPlaces
from rtl.bags.pool import BagPool
from rtl.bags.word_ring import WordRing
from rtl.bags.word_store import WordStore
from rtl.cache.fills import FillWriter
from rtl.dedupe.table import DedupeTable
from rtl.delivery.indices import IndexPackager
from rtl.delivery.share import ShareDelivery
from rtl.delivery.unique import UniqueFinder
from rtl.float.accumulator import FloatAccumulator
from rtl.float.half import HalfConverter
from rtl.float.pairing import Pairing
from rtl.gradient.optimizer import RowOptimizer
from rtl.gradient.partial_receiver import PartialReceiver
from rtl.gradient.reducer import GradientReducer
from rtl.gradient.rows_end import RowsEnd
from rtl.interaction.decoder import VectorDecoder
from rtl.interaction.landing import LandingCheck
from rtl.interaction.result_frames import ResultFrames
from rtl.interaction.result_groups import ResultGrouper
from rtl.network.frame_check import FrameCheck
from rtl.network.link.deadlines import Deadlines
from rtl.network.link.ends import first_deadline
from rtl.network.link.overdue import Overdue
from rtl.network.link.peer_credits import PeerCredits
from rtl.network.link.round_trips import RoundTrips
from rtl.network.link.sender import LinkSender
from rtl.network.packet_pool import PacketPool
from rtl.network.parser import PacketParser
from rtl.query.dispatcher import Dispatcher
from rtl.query.repeats import BagRepeats
from rtl.rings.completion import CompletionWriter
from rtl.rings.list_ring import ListRing
from rtl.rings.step_table import StepTable
from rtl.rings.vector_ring import VectorRing
from rtl.training.barrier import StepBarrier
from rtl.training.passes import PassSource
from rtl.training.step_counter import StepCounter
from tests.mutants import Mutant, edited
from tests.rtl.float.code_mutants import CODE_MUTANTS

MUTANTS = [
    # Rings: counts that wrap, places that are reserved twice, and numbers compared in part.
    Mutant(ListRing, "(written - consumed)[:INDEX_BITS] < slots",
           "(written - consumed) < slots",
           "rings/test_list_ring.py::test_a_kernel_that_consumes_nothing[65534]"),
    Mutant(ListRing, "told.eq(record.index)", "told.eq(self.answerable)",
           "rings/test_list_ring.py::test_what_is_not_told_of_is_not_consumed"),
    Mutant(VectorRing, ">= self._lists - 1)", ">= self._lists)",
           "rings/test_vector_ring.py::test_as_many_lists_wait_as_it_has_places_for"),
    Mutant(VectorRing, "(read - out)[:INDEX_BITS] < self._outstanding",
           "(read - out) < self._outstanding",
           "rings/test_vector_ring.py::test_reads_that_nobody_answers[65534]"),
    Mutant(CompletionWriter, "(opened - freed)[:INDEX_BITS] < self._slots",
           "(opened - freed) < self._slots",
           "rings/test_completion.py::test_a_consumer_that_never_returns_a_slot[65535]"),
    Mutant(CompletionWriter, "event.tag == tag", "event.tag[:8] == tag[:8]",
           "rings/test_completion.py::test_steps_and_tags_are_compared_in_all_their_bits"),
    Mutant(StepTable, "step == of[1].step for", "step[:10] == of[1].step[:10] for",
           "rings/test_completion.py::test_steps_and_tags_are_compared_in_all_their_bits"),
    Mutant(StepTable, "step == error.step for", "step[:10] == error.step[:10] for",
           "rings/test_completion.py::test_steps_and_tags_are_compared_in_all_their_bits"),
    Mutant(VectorRing, "full.eq((sent - out)[:INDEX_BITS] >=",
           "full.eq((sent - out) >=",
           "rings/test_vector_ring.py::test_as_many_lists_wait_as_it_has_places_for[65534]"),
    # A slot that stays late, an unneeded flush, and slots that are announced too late.
    Mutant(StepTable,
           "late.eq((late | self._bit(found, slot)) & ~self._bit(opens, event.slot))",
           "late.eq(late | self._bit(found, slot))", "rings/test_completion.py::"
           "test_a_flush_without_answer_does_not_hold_up_the_ring"),
    Mutant(CompletionWriter, "with m.If(self.flush & ~late):", "with m.If(self.flush):",
           "rings/test_completion.py::test_a_flush_without_answer_does_not_hold_up_the_ring"),
    Mutant(VectorRing, "(ahead >= self.every)", "(ahead > self.every)",
           "rings/test_vector_ring.py::"
           "test_slots_are_told_of_when_there_are_as_many_as_asked_for"),
    # The id of an invalid beat taken for the id of the previous beat.
    Mutant(FillWriter, "with m.If(came):", "with m.If(came | 1):",
           "cache/test_fills.py::"
           "test_good_vectors_are_written_and_told_and_bad_ones_counted[4-2-0.2-0.3]"),
    # Steps of training, compared modulo 1,024, and written rows modulo 65,536.
    Mutant(StepBarrier, "step == self.open_step, named",
           "step[:10] == self.open_step[:10], named",
           "training/test_barrier.py::test_a_step_that_is_not_open_is_no_end"),
    Mutant(StepBarrier, "self.own.payload != self.open_step",
           "self.own.payload[:10] != self.open_step[:10]",
           "training/test_barrier.py::test_a_step_that_is_not_open_is_no_end"),
    Mutant(StepCounter, "enough & ~gone & (here != wanted)",
           "enough & ~gone & (here[:8] != wanted[:8])",
           "training/test_step_counter.py::test_partials_too_many_are_counted"),
    Mutant(PassSource, "self.returned.payload.step == step",
           "self.returned.payload.step[:10] == step[:10]",
           "training/test_passes.py::test_what_is_lost_on_its_way_back_is_not_waited_for"),
    Mutant(PassSource, "self.lost.step == step", "self.lost.step[:10] == step[:10]",
           "training/test_passes.py::test_what_is_lost_on_its_way_back_is_not_waited_for"),
    Mutant(FloatAccumulator, "operation.first & ~operation.take", "operation.first",
           "float/test_accumulator.py::test_sums_of_few_terms"),
    *(Mutant(Pairing, old, new,
             "float/test_pairing.py::test_a_result_waits_where_all_places_are_full")
      for old, new in (("before & ~load", "0"),
                       ("load.eq(~(waits & ~same & there.all() & prefers))", "load.eq(1)"))),
    Mutant(FloatAccumulator, "(quiet | (operation.take == taking))", "1",
           "float/test_accumulator.py::test_each_term_is_added_once[same]"),
    Mutant(GradientReducer, "front.beat.step == step",
           "front.beat.step[:10] == step[:10]",
           "gradient/test_reducer.py::test_steps_are_compared_in_all_their_bits"),
    Mutant(GradientReducer, "given.step == before", "given.step[:10] == before[:10]",
           "gradient/test_reducer.py::test_steps_are_compared_in_all_their_bits"),
    Mutant(GradientReducer, "step != answer.step", "step[:10] != answer.step[:10]",
           "gradient/test_reducer.py::test_steps_are_compared_in_all_their_bits"),
    Mutant(PartialReceiver, "split.coming.step == self.open_step",
           "split.coming.step[:10] == self.open_step[:10]",
           "gradient/test_partial_receiver.py::test_partials_leave_one_by_one[16-stalls2]"),
    Mutant(PartialReceiver, "user.step == self.open_step",
           "user.step[:10] == self.open_step[:10]",
           "gradient/test_partial_receiver.py::"
           "test_what_waits_is_of_the_step_that_is_open_when_it_leaves[1-1024]"),
    Mutant(RowsEnd, "self.sent == self.written",
           "self.sent[:16] == self.written[:16]",
           "gradient/test_rows_end.py"),
    # Places of the optimizer and of waiting packets of indices: the last places are kept free.
    Mutant(RowOptimizer, "olds.level < halves - 2", "olds.level < halves",
           "gradient/test_optimizer.py::test_what_waits_for_the_output_is_not_lost"),
    Mutant(IndexPackager, "packets.level <= PACKETS - 2",
           "packets.level <= PACKETS - 1",
           "delivery/test_indices.py::test_packets_that_wait_are_all_sent[64]"),
    Mutant(IndexPackager, "beats.level <= 2 * self._room",
           "beats.level <= 2 * self._room + 1",
           "delivery/test_indices.py::test_packets_that_wait_are_all_sent[3]"),
    # Packets of two steps, or without a timeout, and lookups that leave too early.
    Mutant(ResultGrouper, "(self.time - opened)[:32] >= self.timeout",
           "(self.time - opened) >= self.timeout",
           "interaction/test_result_groups.py::"
           "test_a_packet_leaves_when_its_first_result_is_old[4294967280]"),
    Mutant(ResultFrames, "item.step == last_step",
           "item.step[:10] == last_step[:10]",
           "interaction/test_result_frames.py::test_steps_are_compared_in_all_their_bits"),
    Mutant(PacketPool, "(same & (self.step != item.step))",
           "(same & (self.step[:10] != item.step[:10]))",
           "network/test_packet_pool.py::test_places_and_full_packets[1-2-17]"),
    Mutant(PacketPool, "(~same & (self.step != found.step))",
           "(~same & (self.step[:10] != found.step[:10]))",
           "network/test_packet_pool.py::test_places_and_full_packets[1-2-17]"),
    Mutant(BagPool, "self.limit + 1 - _SHORTEST", "self.limit + 1",
           "bags/test_pool.py::test_words_and_full_packets[3-24-65535-3-None]"),
    Mutant(WordStore, "row.eq(beat + (k < start))", "row.eq(beat)",
           "bags/test_word_store.py::test_words_of_segments[4-3]"),
    # Sizes of bags' vectors: too long, too short, and that of the longest vector.
    Mutant(FrameCheck, "(ember.final_beat >= self.vector_beats)",
           "(ember.final_beat > self.vector_beats)",
           "network/test_frame_check.py::test_every_count_of_bags"),
    Mutant(BagLanding, "take & (number == final)", "take",
           "bags/test_landing.py::test_only_what_is_owed_lands_and_once"),
    Mutant(BagLanding, "take & (number == final)", "take & (number >= final)",
           "bags/test_landing.py::test_only_what_is_owed_lands_and_once"),
    Mutant(OwnerPlaces, "sizes.write_data.eq(item.final_beat + 1)",
           "sizes.write_data.eq(self._beats)",
           "bags/test_places.py::test_every_bag_returns_to_its_origin"),
    Mutant(LandingCheck, "ends = stage.beat == sizes.read_data", "ends = stage.ends",
           "interaction/test_bag_slots.py::test_the_hold_buffer_keeps_the_keys_of_a_bag"),
    # Bags of lost owners: a bag of which only the head is drained, and one that is drained although
    # its head has left.
    Mutant(LostBags, "drains.eq(~heads.o.valid)", "drains.eq(0)",
           "bags/test_lost.py::test_each_bag_of_a_lost_node_is_answered[0-1-LostBags]"),
    Mutant(LostBags, "self.bags.valid & ~drains", "self.bags.valid & ~heads.lost.any()",
           "bags/test_lost.py::test_each_bag_of_a_lost_node_is_answered[2-1-LostBags]"),
    # A restarted peer that is taken back while its former self has bags here.
    Mutant(PeerCredits, "(owed + passed.value[0])[:CREDIT_BITS]", "owed",
           "network/link/test_rejoin.py::test_bags_of_a_peer_are_settled_when_beats_and_answers_"
           "are_gone"),
    Mutant(BagCheck,
           "self.passed.valid.eq(answered)", "self.passed.valid.eq(take & segment.tail)",
           "bags/test_check.py::test_only_good_bags_pass[0.0-0.0-0.5-0.0]"),
    Mutant(Dispatcher, "slot.step == next_step", "slot.step[:10] == next_step[:10]",
           "query/test_dispatcher.py::test_no_step_but_the_next_overtakes[1025]"),
    # Steps of delivery and of the dedupe table.
    Mutant(IndexPackager, "item.step == step", "item.step[:10] == step[:10]",
           "delivery/test_indices.py::test_steps_are_compared_in_all_their_bits"),
    Mutant(ShareDelivery, "here.slot.mine & ~ends", "here.slot.mine",
           "delivery/test_share.py::test_a_share_that_nobody_ends_ends_where_another_step_begins"),
    Mutant(ShareDelivery, "slot.step != step", "slot.step[:10] != step[:10]",
           "delivery/test_share.py::test_steps_are_compared_in_all_their_bits"),
    Mutant(UniqueFinder, "slot.step != step", "slot.step[:10] != step[:10]",
           "delivery/test_unique.py::test_steps_are_compared_in_all_their_bits"),
    Mutant(UniqueFinder, "lost == of)", "lost[:8] == of[:8])",
           "delivery/test_unique.py::test_entries_of_any_earlier_step_are_not_retired_early"),
    Mutant(DedupeTable, "Cat(request.key, request.step)",
           "Cat(request.key, request.step[:10])",
           "dedupe/test_table.py::test_steps_are_compared_in_all_their_bits"),
    Mutant(DedupeTable, "early = entries.evicted.valid & ~ahead[-1]",
           "early = entries.evicted.valid & (entries.evicted.key[Key.size:] >= self.step_floor)",
           "dedupe/test_table.py::test_entries_of_finished_steps_make_room"),
    # The timing of the link's recovery: backoff, wraps of time, Karn's rule, and a cycle early.
    Mutant(Overdue, "Mux(record.tries <= 2, 0, record.tries - 2)",
           "Mux(record.tries <= 3, 0, record.tries - 3)",
           "network/link/test_recovery.py::test_a_packet_is_overdue_to_the_cycle"),
    Mutant(Overdue, "((at - best)[31] | ~some)", "((at < best) | ~some)",
           "network/link/test_recovery.py::test_a_packet_is_overdue_to_the_cycle"),
    Mutant(Deadlines, "(at - best)[31] | ~some", "(at < best) | ~some",
           "network/link/test_recovery.py::test_the_earliest_deadline_is_told_across_the_wrap"),
    Mutant(Deadlines, "(at - best)[31] | ~some", "(best - at)[31] | ~some",
           "network/link/test_recovery.py::test_the_earliest_deadline_is_told_across_the_wrap"),
    Mutant(first_deadline,
           "(sender.deadline - receiver.deadline)[31]", "(sender.deadline < receiver.deadline)",
           "network/link/test_recovery.py::test_the_earlier_deadline_of_both_sides_is_told"),
    Mutant(RoundTrips,
           "Mux(read.deviation > read.mean[4:], read.deviation,", "Mux(1, read.deviation,",
           "network/link/test_recovery.py::test_a_time_out_without_scatter"),
    Mutant(LinkSender, "& (record.tries == 1)", "",
           "network/link/test_recovery_sender.py::"
           "test_a_packet_that_was_sent_twice_measures_nothing"),
    Mutant(LinkSender, "& (record.tries == 1)", "& (record.tries <= 2)",
           "network/link/test_recovery_sender.py::"
           "test_a_packet_that_was_sent_twice_measures_nothing"),
    Mutant(Overdue, "age >= limit", "age + 1 >= limit",
           "network/link/test_recovery.py::test_a_packet_is_overdue_to_the_cycle"),
    Mutant(Overdue, "now + (limit - age)", "now + (limit - age) - 1",
           "network/link/test_recovery.py::test_a_packet_is_overdue_to_the_cycle"),
    Mutant(Deadlines,
           "over.eq(~(self.time - at)[31])", "over.eq(~(self.time + 1 - at)[31])",
           "network/link/test_recovery.py::test_the_earliest_deadline_is_told_across_the_wrap"),
    # Packets that are freed while they are sent again, or never; LINK messages of other lengths.
    Mutant(LinkSender,
           "blocked.eq(repeats.holds & (repeats.held == found.first))", "blocked.eq(0)",
           "network/link/test_recovery_sender.py::"
           "test_beats_of_a_packet_that_is_sent_again_stay_in_the_pool"),
    Mutant(LinkSender, "blocked.eq(blocked & repeats.holds)", "blocked.eq(0)",
           "network/link/test_recovery_sender.py::"
           "test_beats_of_a_packet_that_is_sent_again_stay_in_the_pool"),
    Mutant(LinkSender,
           "drops.valid.eq(came.valid & lost.bit_select(came.node, 1))", "drops.valid.eq(0)",
           "network/link/test_recovery_sender.py::"
           "test_a_packet_that_ends_after_its_peer_was_given_up_leaves_the_pool"),
    Mutant(FrameCheck,
           "(head1.count != RECORDS_PER_BEAT)", "(head1.count > RECORDS_PER_BEAT)",
           "network/link/test_recovery.py::test_a_link_message_has_eight_words"),
    Mutant(FrameCheck, "(head1.count != RECORDS_PER_BEAT)", "0",
           "network/link/test_recovery.py::test_a_link_message_has_eight_words"),
    # Doublings and bounds of the link's timeouts.
    Mutant(RoundTrips, "doubled.read_data == MOST_SHIFT, MOST_SHIFT", "0, 0",
           "network/link/test_recovery.py::test_a_time_out_without_scatter"),
    Mutant(RoundTrips,
           "Mux(step[2] | ~shifts_count, 0, Mux(", "Mux(~shifts_count, 0, Mux(",
           "network/link/test_recovery.py::test_a_time_out_without_scatter"),
    Mutant(Overdue, "Mux(more > MOST_SHIFT, MOST_SHIFT, more)", "more",
           "network/link/test_recovery.py::test_a_packet_is_overdue_to_the_cycle"),
    Mutant(Overdue, "Mux(more > self.doublings,", "Mux(1,",
           "network/link/test_recovery.py::test_a_packet_is_overdue_to_the_cycle"),
    Mutant(Overdue,
           "once.eq(Mux(last, doubled, doubled << 1))", "once.eq(doubled << 1)",
           "network/link/test_recovery.py::test_a_packet_is_overdue_to_the_cycle"),
    Mutant(Overdue,
           "once.eq(Mux(last, doubled, doubled << 1))", "once.eq(doubled)",
           "network/link/test_recovery.py::test_a_packet_is_overdue_to_the_cycle"),
    Mutant(Overdue,
           "longer.eq(Mux(beyond_once, self.most, once))", "longer.eq(once)",
           "network/link/test_recovery.py::test_a_packet_is_overdue_to_the_cycle"),
    Mutant(Overdue,
           "limit.eq(Mux(beyond, self.most, doubled))", "limit.eq(doubled)",
           "network/link/test_recovery.py::test_a_packet_is_overdue_to_the_cycle"),
    Mutant(Overdue,
           "self.late.valid.eq(self.over & late)", "self.late.valid.eq(self.over)",
           "network/link/test_recovery.py::test_a_packet_is_overdue_to_the_cycle"),
    Mutant(Overdue, "late.eq(late | doubles)", "late.eq(1)",
           "network/link/test_recovery.py::test_a_packet_is_overdue_to_the_cycle"),
    Mutant(Overdue,
           "record.tries > self.doublings + 1", "record.tries > self.doublings",
           "network/link/test_recovery.py::test_a_packet_is_overdue_to_the_cycle"),
    Mutant(Overdue, "doubles.eq((record.tries == 1) | (", "doubles.eq(0 | (",
           "network/link/test_recovery.py::test_a_packet_is_overdue_to_the_cycle"),
    # Bags that repeat: comparisons of a part, and records and words of a sample before.
    *(Mutant(BagRepeats, old, new, f"query/test_repeats.py::{test}") for old, new, test in (
        ("slot.step == step", "slot.step[1:] == step[1:]",
         "test_steps_and_numbers_are_compared_in_all_their_bits"),
        ("slot.sample == sample", "slot.sample[:16] == sample[:16]",
         "test_steps_and_numbers_are_compared_in_all_their_bits"),
        ("item.known & item.follows & record.valid & item.begins",
         "item.known & item.follows & item.begins",
         "test_bags_beyond_the_sizes_are_looked_up_and_counted[64-8-6]"),
        ("record.head == item.head", "record.head.table == item.head.table",
         "test_heads_of_equal_words"),
        ("position < before", "position != self._positions",
         "test_a_shorter_sample_forgets_the_rest"),
        ("position < NEAR - 1", "position < NEAR - 2",
         "test_each_bag_that_equals_its_predecessor_repeats[2-stalls0]"),
        ("near.eq(NEAR - 1)", "near.eq(NEAR - 2)",
         "test_each_bag_that_equals_its_predecessor_repeats[1-stalls0]"),
        ("base <= here.margin", "base < here.margin",
         "test_a_ring_that_is_exactly_full"),
        ("Mux(here.first, 0, own) + added", "own + added",
         "test_bags_beyond_the_sizes_are_looked_up_and_counted[64-8-6]"),
        ("here.change[0].eq(-gone)", "here.change[0].eq(0)",
         "test_bags_beyond_the_sizes_are_looked_up_and_counted[64-8-6]"),
        ("item.head.eq(item.head)", "item.head.keys.eq(item.head.keys)",
         "test_each_bit_of_keys_and_weights_counts[13]"))),
    *(Mutant(WordRing, old, new, "bags/test_word_ring.py::test_every_used_bit_counts")
      for old, new in (
        ("number == size - 1", "number == size"), ("segment.keys[1:] == number", "number == 7"),
        ("flags[4].compares, so_far", "flags[4].compares, 1"),
        ("(k < item.old[:_LANE_BITS])", "(k <= item.old[:_LANE_BITS])"),
        ("turn[0].eq(item.old[:_LANE_BITS] - item.new[:_LANE_BITS])",
         "turn[0].eq(item.old[:_LANE_BITS])"))),
    # The jitter of the link's timeouts.
    Mutant(Overdue, "limit.eq(limit + spread)", "limit.eq(limit)",
           "network/link/test_recovery.py::test_a_packet_is_overdue_to_the_cycle"),
    Mutant(Overdue, "scale(chance, limit >> 2)", "scale(chance, limit >> 1)",
           "network/link/test_recovery.py::test_a_packet_is_overdue_to_the_cycle"),
    Mutant(Overdue, "with m.If(last):\n", "with m.If(0):\n",
           "network/link/test_recovery.py::test_a_packet_is_overdue_to_the_cycle"),
    Mutant(Overdue, "Cat(packet.sequence, self.own, packet.node, tries[:8])",
           "Cat(packet.sequence, self.own ^ packet.node, packet.node ^ self.own, tries[:8])",
           "network/link/test_recovery.py::test_a_packet_is_overdue_to_the_cycle"),
    Mutant(Overdue,
           "self._chance(record.tries + 1)", "self._chance(record.tries)",
           "network/link/test_recovery.py::test_a_packet_is_overdue_to_the_cycle"),
    # Vectors of 16-bit values: subnormals and NaN, half beats that are lost, doubled or misplaced.
    Mutant(HalfConverter, "(127 - 15) - zeros", "(127 - 14) - zeros",
           "float/test_half.py::test_by_hand"),
    Mutant(HalfConverter, "half[:9] << zeros << 1", "half[:9] << zeros",
           "float/test_half.py::test_by_hand"),
    Mutant(HalfConverter, "self.i[7:15].all()", "self.i[8:15].all()",
           "float/test_half.py::test_all_values[bfloat16]"),
    Mutant(PacketParser, "Mux(values, self.value_beats - 1, final_part)", "final_part",
           "network/test_mixed_vectors.py"),
    Mutant(PacketParser, "Mux(vector_index[0], tags_here >> TAG_BITS, tags_here)", "tags_here",
           "network/test_mixed_vectors.py"),
    Mutant(FrameCheck, "Mux(head1.dense, self.value_packing, packing)", "packing",
           "network/test_mixed_vectors.py"),
    Mutant(VectorDecoder, "~(item.beat_last & self.value_beats[0])", "~self.value_beats[0]",
           "interaction/test_decoder.py::test_vectors_are_those_of_the_codec"),
    Mutant(VectorDecoder, "credit.some & ~upper", "credit.some",
           "interaction/test_decoder.py::test_a_beat_a_cycle"),
    Mutant(VectorDecoder, "credit.down.eq(taken)", "credit.down.eq(taken & ~upper)",
           "interaction/test_decoder.py::test_vectors_are_those_of_the_codec"),
    Mutant(VectorDecoder, "chosen.beat_last.eq(ends)", "chosen.beat_last.eq(1)",
           "interaction/test_decoder.py::test_a_beat_a_cycle"),
    *CODE_MUTANTS,
]


EACH = pytest.mark.parametrize(
    "mutant", MUTANTS, ids=lambda mutant: f"{mutant.block.__name__}: {mutant.new}")


@pytest.mark.every
@EACH
def test_each_is_in_its_block(mutant):
    assert compile(mutant.source, mutant.block.__module__, "exec")


@pytest.mark.slow
@EACH
def test_each_is_found(mutant):
    ran = mutant.run()
    assert ran.returncode == pytest.ExitCode.TESTS_FAILED, (
        f"{mutant.test} does not find it:\n{ran.stdout[-2000:]}{ran.stderr[-2000:]}")
    # Any test finds a mutant that cannot be built.
    assert "in elaborate" not in ran.stdout, ran.stdout[-2000:]


BLOCKS = """
class Other:
    used = read - write < 4

class Fifo:
    used = (read -  # both wrap
            write < 4)

LIMIT = 3
"""


@pytest.mark.parametrize("old, new, then", [
    ("read - write < 4", "read < 4", "used = (read < 4)\n\nLIMIT = 3"),  # not the line in Other
    ("LIMIT = 3", "LIMIT = 4", "LIMIT = 4"),
    ("write<4", "write<5", "# both wrap\n            write<5)")])
def test_code_is_named_by_its_tokens_and_its_class(old, new, then):
    assert edited(BLOCKS, "Fifo", (old, new)).startswith(BLOCKS[:50])
    assert then in edited(BLOCKS, "Fifo", (old, new))


@pytest.mark.parametrize("old, found", [("rite < 4", 0), ("read - write", 2), ("used", 2)])
def test_code_that_is_not_there_once_is_rejected(old, found):
    with pytest.raises(ValueError, match=f"None must contain '{old}' once, not {found} times"):
        edited(BLOCKS, "None", (old, ""))
