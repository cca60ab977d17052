"""Connections of the reliable link to the other blocks of a SmartNIC."""

from types import SimpleNamespace

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring

from rtl.bags import BufferedLostBags
from rtl.cache.lost_misses import LostMisses
from rtl.config import NicConfig
from rtl.control.csr import RegisterBlock
from rtl.network import CreditCounter
from rtl.network.link.ends import first_deadline, join_ends
from rtl.network.link.peer_credits import PeerCredits
from rtl.network.link.probes import Probes
from rtl.network.link.rejoin import LinkRejoin
from rtl.network.link.sender import LinkSender

__all__ = ["await_deadline", "connect_link", "link_blocks"]


def link_blocks(config: NicConfig) -> dict[str, wiring.Component]:
    """Return the blocks of the link, besides the receiver, by name."""
    return {"link_sender": LinkSender(config), "link_rejoin": LinkRejoin(),
            "link_credits": PeerCredits(config.nodes), "lost_misses": LostMisses(config),
            "link_probes": Probes(config.nodes)} | ({
                "link_bag_credits": PeerCredits(config.nodes, bags=True),
                "lost_bags": BufferedLostBags(config)} if config.owner_bags else {})


def connect_link(m: Module, config: NicConfig, blocks: SimpleNamespace, csr: RegisterBlock,
                 credits: CreditCounter, bag_credits: CreditCounter | None = None) -> None:
    """Connect the signals of the link, besides its streams.

    ``blocks.link_sender`` and ``blocks.net_receiver`` are connected to each other, to the rejoin
    block, to the credit counters, to registers and to the host reporter. ``bag_credits``: counter
    of consumed beats of bags, with ``config.owner_bags``.
    """
    sender, receiver = blocks.link_sender, blocks.net_receiver
    rejoin, account = blocks.link_rejoin, blocks.link_credits
    join_ends(m, sender, receiver, rejoin)
    taken = sender.headers
    clear, cleared, renew, renewed = rejoin.clear, credits.cleared, rejoin.renew, account.renewed
    settled, waits = blocks.lost_misses.idle, _waits(blocks.peer_answers)
    if bag_credits is not None:
        settled, waits = settled & blocks.lost_bags.settled & blocks.link_bag_credits.settled, (
            waits | _waits(blocks.bag_answers))
        clear, cleared = _both(m, clear, cleared, bag_credits.clear.valid, bag_credits.cleared)
        renew, renewed = _both(m, renew, renewed, blocks.link_bag_credits.renew,
                               blocks.link_bag_credits.renewed)
        _connect_bags(m, blocks, bag_credits)
    m.d.comb += [
        credits.node[-1].eq(sender.credit_node), sender.lookup_credit.eq(credits.value[-1]),
        blocks.host_reporter.failed.eq(sender.failed),
        csr.link_given_up.eq(sender.lost),
        rejoin.order.valid.eq(csr.link_rejoins), csr.link_rejoining.eq(rejoin.working),
        Cat(rejoin.order.epoch, rejoin.order.node).eq(csr.link_rejoin),
        rejoin.renewed.eq(renewed),
        account.held.eq(rejoin.held.node), account.renew.eq(renew),
        account.returned.eq(blocks.net_parser.credit), rejoin.cleared.eq(cleared),
        credits.clear.valid.eq(clear), credits.clear.node.eq(rejoin.held.node),
        account.asked.eq(blocks.lookup_receiver.kept),
        account.refused.eq(blocks.lookup_check.refused),
        account.leaving.valid.eq(taken.valid & taken.ready),
        account.leaving.node.eq(taken.payload.destination),
        account.leaving.opcode.eq(taken.payload.opcode),
        account.leaving.count.eq(taken.payload.count),
    ]
    # While a peer is held, no block begins work for it.
    m.d.sync += rejoin.settled.eq(account.settled & settled)
    for block in (blocks.lost_misses, blocks.link_probes, blocks.lookup_packager,
                  *((blocks.training_path,) if config.training else ())):
        m.d.comb += block.lost.eq(sender.lost)
    waiting, heard = blocks.link_probes, receiver.acknowledged
    m.d.comb += [waiting.came.valid.eq(heard.valid), waiting.came.node.eq(heard.node)]
    m.d.sync += waiting.waiting.eq(waits | (blocks.training_path.waits if config.training else 0))
    if config.training:
        m.d.comb += [blocks.training_path.credit_node.eq(sender.credit_node),
                     sender.gradient_credit.eq(blocks.training_path.credit)]


def _waits(answers: wiring.Component) -> Value:
    """Return whether one of the counted ``answers`` has not come."""
    return answers.counters.asked != answers.counters.answered


def _both(m: Module, asks: Signal, event: Value, other: Value,
          other_event: Value) -> tuple[Value, Value]:
    """Ask two parts until each has answered once, by its event. Drive the request ``other``; return
    the request to the first part, and whether both have answered."""
    done, over = Signal(2, name=f"{asks.name}_done"), Signal(name=f"{asks.name}_over")
    answers = done | Cat(event, other_event)
    m.d.comb += [over.eq(answers.all()), other.eq(asks & ~done[1])]
    m.d.sync += done.eq(Mux(asks & ~over, answers, 0))
    return asks & ~done[0], over


def _connect_bags(m: Module, blocks: SimpleNamespace, credits: CreditCounter) -> None:
    """Connect the blocks of bags to the link, besides their streams."""
    sender, account = blocks.link_sender, blocks.link_bag_credits
    kept, returned = blocks.bag_receiver.kept, blocks.net_parser.bag_credit
    if hasattr(blocks, "bag_credit"):
        returned = blocks.bag_credit.o
    m.d.comb += [
        credits.node[-1].eq(sender.credit_node), sender.bag_credit.eq(credits.value[-1]),
        credits.clear.node.eq(blocks.link_rejoin.held.node),
        account.held.eq(blocks.link_rejoin.held.node),
        account.asked.valid.eq(kept.valid), account.asked.node.eq(kept.node),
        account.asked.beats.eq(1), account.refused.eq(blocks.bag_check.freed),
        account.passed.eq(blocks.bag_check.passed),
        account.returned.eq(returned),
        account.leaving.eq(blocks.link_credits.leaving),
        blocks.lost_bags.lost.eq(sender.lost), blocks.bag_packager.lost.eq(sender.lost),
    ]


def await_deadline(m: Module, nic: wiring.Component, blocks: SimpleNamespace) -> Value:
    """Drive ``waits`` and ``deadline`` of ``nic`` with the earliest deadline of the blocks of its
    link.

    Return whether the deadline has passed.
    """
    ends, probes = (SimpleNamespace(waits=Signal(reset_less=True, name=f"{name}_waits"),
                                    deadline=Signal(32, reset_less=True, name=f"{name}_deadline"))
                    for name in ("ends", "probes"))
    waits, deadline = first_deadline(blocks.link_sender, blocks.net_receiver)
    m.d.sync += [
        ends.waits.eq(waits), ends.deadline.eq(deadline),
        probes.waits.eq(blocks.link_probes.waits), probes.deadline.eq(blocks.link_probes.deadline),
    ]
    waits, deadline = first_deadline(ends, probes)
    m.d.sync += [nic.waits.eq(waits), nic.deadline.eq(deadline)]
    return nic.waits & ~(nic.time - nic.deadline)[31]
