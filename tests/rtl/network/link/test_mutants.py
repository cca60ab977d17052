"""Mutants of the link's recovery: each must fail the check that the link itself passes."""

import pytest

from rtl.network.frame_check import FrameCheck
from rtl.network.link.deadlines import Deadlines
from rtl.network.link.ends import first_deadline
from rtl.network.link.overdue import Overdue
from rtl.network.link.round_trips import RoundTrips
from rtl.network.link.sender import LinkSender
from tests.formal.mutants import broken
from tests.rtl.network.link import timing

CHECKS = {
    "round-trips": (RoundTrips, timing.check_round_trips),
    "deadlines": (Deadlines, timing.check_deadlines),
    "ends": (first_deadline, timing.check_first_deadline),
    "overdue": (Overdue, timing.check_overdue),
    "counts": (FrameCheck, timing.check_link_counts),
    "karn": (LinkSender, timing.check_karn),
    "repeat": (LinkSender, timing.check_repeat_keeps_beats),
    "given-up": (LinkSender, timing.check_given_up),
}
MUTANTS = {
    "backoff-one-try-late": ("overdue", "Mux(record.tries <= 2, 0, record.tries - 2)",
                             "Mux(record.tries <= 3, 0, record.tries - 3)"),
    "walk-earliest-without-wrap": ("overdue", "((at - best)[31] | ~some)",
                                   "((at < best) | ~some)"),
    "earliest-without-wrap": ("deadlines", "(at - best)[31] | ~some", "(at < best) | ~some"),
    "ends-without-wrap": ("ends", "(sender.deadline - receiver.deadline)[31]",
                          "(sender.deadline < receiver.deadline)"),
    "shrinks-to-the-mean": ("round-trips", "Mux(read.deviation > read.mean[4:], read.deviation,\n"
                            "                                          read.mean[4:])",
                            "read.deviation"),
    "karn-dropped": ("karn", "& (record.tries == 1)", ""),
    "karn-one-try-late": ("karn", "& (record.tries == 1)", "& (record.tries <= 2)"),
    "freed-while-sent": ("repeat", "blocked.eq(repeats.holds & (repeats.held == found.first))",
                         "blocked.eq(0)"),
    "freed-a-cycle-later": ("repeat", "blocked.eq(blocked & repeats.holds)", "blocked.eq(0)"),
    "overdue-a-cycle-early": ("overdue", "age >= limit", "age + 1 >= limit"),
    "walk-deadline-a-cycle-early": ("overdue", "now + (limit - age)", "now + (limit - age) - 1"),
    "deadline-a-cycle-early": ("deadlines", "over.eq(~(self.time - at)[31])",
                               "over.eq(~(self.time + 1 - at)[31])"),
    "left-in-the-pool": ("given-up", "drops.valid.eq(came.valid & lost.bit_select(came.node, 1))",
                         "drops.valid.eq(0)"),
    "short-link-message": ("counts", "(head1.count != RECORDS_PER_BEAT)",
                           "(head1.count > RECORDS_PER_BEAT)"),
    # Others than those of recovery's timing alone.
    "link-message-of-any-length": ("counts", "(head1.count != RECORDS_PER_BEAT)", "0"),
    "doublings-wrap": ("round-trips", "doubled.read_data == MOST_SHIFT, MOST_SHIFT", "0, 0"),
    "doublings-stay": ("round-trips", "Mux(step[2] | ~swept, 0, Mux(", "Mux(~swept, 0, Mux("),
    "shift-wraps": ("overdue", "Mux(more > MOST_SHIFT, MOST_SHIFT, more)", "more"),
    "doublings-of-the-peer-ignored": ("overdue", "Mux(more > self.doublings,", "Mux(1,"),
    "second-wait-doubled": ("overdue", "once.eq(Mux(last, doubled, doubled << 1))",
                            "once.eq(doubled << 1)"),
    "next-wait-not-doubled": ("overdue", "once.eq(Mux(last, doubled, doubled << 1))",
                              "once.eq(doubled)"),
    "next-wait-not-bounded": ("overdue", "longer.eq(Mux(beyond_once, self.most, once))",
                              "longer.eq(once)"),
    "wait-not-bounded": ("overdue", "limit.eq(Mux(beyond, self.most, doubled))",
                         "limit.eq(doubled)"),
    "late-without-a-repeat": ("overdue", "self.late.valid.eq(self.over & repeated)",
                              "self.late.valid.eq(self.over)"),
    "latest-in-place-of-earliest": ("deadlines", "(at - best)[31] | ~some",
                                    "(best - at)[31] | ~some"),
    "no-jitter": ("overdue", "limit.eq(limit + spread)", "limit.eq(limit)"),
    "jitter-beyond-a-quarter": ("overdue", "scale(chance, limit >> 2)",
                                "scale(chance, limit >> 1)"),
    "jitter-of-the-first-wait": ("overdue", "with m.If(last):\n", "with m.If(0):\n"),
    "same-jitter-at-both-ends": ("overdue",
                                 "Cat(packet.sequence, self.own, packet.node, tries[:8])",
                                 "Cat(packet.sequence, self.own ^ packet.node, "
                                 "packet.node ^ self.own, tries[:8])"),
    "jitter-of-the-try-before": ("overdue", "self._chance(record.tries + 1)",
                                 "self._chance(record.tries)"),
}


@pytest.mark.parametrize("name", CHECKS)
def test_the_link_recovers_in_time(name):
    block, check = CHECKS[name]
    check(block)


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=[pytest.mark.slow] if CHECKS[check][0] is LinkSender else [])
    for name, (check, *_) in MUTANTS.items()])
def test_a_mutant_fails(name):
    check, old, new = MUTANTS[name]
    block, fails = CHECKS[check]
    with pytest.raises((AssertionError, TimeoutError)):
        fails(broken(block, old, new))
