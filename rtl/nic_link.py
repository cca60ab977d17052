"""Connections of the reliable link to the other blocks of a SmartNIC that has one."""

from types import SimpleNamespace

from amaranth.hdl import Module, Signal

from rtl.config import NicConfig
from rtl.control.csr import RegisterBlock
from rtl.network import CreditCounter
from rtl.network.link.ends import join_ends

__all__ = ["connect_link"]


def connect_link(m: Module, config: NicConfig, blocks: SimpleNamespace, csr: RegisterBlock,
                 credits: CreditCounter) -> None:
    """Join the two sides of the link, ``blocks.link_sender`` and ``blocks.net_receiver``, to each
    other, to what counts credits, to registers and to the host reporter, besides their streams."""
    sender, receiver = blocks.link_sender, blocks.net_receiver
    join_ends(m, sender, receiver)
    m.d.comb += [
        credits.node[-1].eq(sender.credit_node), sender.lookup_credit.eq(credits.value[-1]),
        blocks.host_reporter.failed.eq(sender.failed),
    ]
    given_up = Signal(config.nodes)
    with m.If(sender.failed.valid):
        m.d.sync += given_up.bit_select(sender.failed.node, 1).eq(1)
    m.d.comb += [csr.link_given_up.eq(given_up), blocks.net_receiver.lost.eq(given_up),
                 blocks.lost_misses.lost.eq(given_up), blocks.lookup_packager.lost.eq(given_up)]
    if config.training:
        m.d.comb += [blocks.training_path.credit_node.eq(sender.credit_node),
                     sender.gradient_credit.eq(blocks.training_path.credit),
                     blocks.training_path.lost.eq(given_up)]
