"""Connections of the reliable link to the other blocks of a SmartNIC."""

from types import SimpleNamespace

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import wiring

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
            "link_probes": Probes(config.nodes)}


def connect_link(m: Module, config: NicConfig, blocks: SimpleNamespace, csr: RegisterBlock,
                 credits: CreditCounter) -> None:
    """Connect the signals of the link, besides its streams.

    ``blocks.link_sender`` and ``blocks.net_receiver`` are connected to each other, to the rejoin
    block, to the credit counters, to registers and to the host reporter.
    """
    sender, receiver = blocks.link_sender, blocks.net_receiver
    rejoin, account = blocks.link_rejoin, blocks.link_credits
    join_ends(m, sender, receiver, rejoin)
    taken = sender.headers
    m.d.comb += [
        credits.node[-1].eq(sender.credit_node), sender.lookup_credit.eq(credits.value[-1]),
        blocks.host_reporter.failed.eq(sender.failed),
        csr.link_given_up.eq(sender.lost),
        rejoin.order.valid.eq(csr.link_rejoins), csr.link_rejoining.eq(rejoin.working),
        Cat(rejoin.order.epoch, rejoin.order.node).eq(csr.link_rejoin),
        rejoin.renewed.eq(account.renewed),
        account.held.eq(rejoin.held.node), account.renew.eq(rejoin.renew),
        account.returned.eq(blocks.net_parser.credit), rejoin.cleared.eq(credits.cleared),
        credits.clear.valid.eq(rejoin.clear), credits.clear.node.eq(rejoin.held.node),
        account.asked.eq(blocks.lookup_receiver.kept),
        account.refused.eq(blocks.lookup_check.refused),
        account.leaving.valid.eq(taken.valid & taken.ready),
        account.leaving.node.eq(taken.payload.destination),
        account.leaving.opcode.eq(taken.payload.opcode),
        account.leaving.count.eq(taken.payload.count),
    ]
    # While a peer is held, no block begins work for it.
    m.d.sync += rejoin.settled.eq(account.settled & blocks.lost_misses.idle)
    for block in (blocks.lost_misses, blocks.link_probes, blocks.lookup_packager,
                  *((blocks.training_path,) if config.training else ())):
        m.d.comb += block.lost.eq(sender.lost)
    waiting, heard, owed = blocks.link_probes, receiver.acknowledged, blocks.peer_answers.counters
    m.d.comb += [waiting.came.valid.eq(heard.valid), waiting.came.node.eq(heard.node)]
    m.d.sync += waiting.waiting.eq((owed.asked != owed.answered)
                                   | (blocks.training_path.waits if config.training else 0))
    if config.training:
        m.d.comb += [blocks.training_path.credit_node.eq(sender.credit_node),
                     sender.gradient_credit.eq(blocks.training_path.credit)]


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
