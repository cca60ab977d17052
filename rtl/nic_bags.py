"""Blocks and connections of owner-pooled bags in a SmartNIC.

The path of a bag::

    query_checker.segments -+-> bag_sender -> bag_packager -> net_tx
    dispatcher.bags --------+       |  ^ ids
                                    |  bag_landing <- net_parser.bag_vectors
                                    |      +-> hold_buffer.remote
    net_parser.bags -> bag_receiver -> bag_check -+-> owner_places -> bag_lists -> host_tx
                                    own bags -----+      ^  |
                              host_parser.bag_vectors ---+  +-> bag_router -+-> hold_buffer.local
                                                       net_tx <- bag_vectors +

With ``config.link``, ``lost_bags`` is between ``bag_sender`` and ``bag_packager``, and between
``net_parser`` and ``bag_landing``: it answers bags of failed owners (:mod:`rtl.nic_link`).

A bag at its requester waits for its step, a place of the hold buffer, an id and credit of its
owner; at its owner for a place. A place waits only for the GPU and ``net_tx``, or, for a bag of
this node, for the hold buffer, which has a place for its vector.
"""

from types import SimpleNamespace

from amaranth.hdl import Module
from amaranth.lib import wiring

from rtl.bags import BagCheck, BagLanding, BagPackager, BagReceiver, BagSender, OwnerPlaces
from rtl.config import NicConfig
from rtl.formats import Opcode, VectorBeat
from rtl.monitor.answers import AnswerCounter
from rtl.network import CreditCounter, VectorPackager, VectorRouter
from rtl.stream import Arbiter

__all__ = ["bag_blocks", "bag_credits", "bag_routers", "connect_bags"]

_READERS = ("bag_packager", "bag_vectors")
"""Blocks whose packets carry the credit of received bags."""


def bag_blocks(config: NicConfig) -> dict[str, wiring.Component]:
    """Return the blocks of owner-pooled bags by name."""
    return {
        "bag_sender": BagSender(), "bag_landing": BagLanding(config),
        "bag_packager": BagPackager(config.nodes, config.net_payload_beats, Opcode.BAGS, True,
                                    pauses=True),
        "bag_receiver": BagReceiver(config), "bag_check": BagCheck(config),
        "owner_places": OwnerPlaces(config, own=True),
        "bag_lists": BagPackager(1, config.net_payload_beats, Opcode.BAG_LISTS, False, buffers=4,
                                 most_bags=True),
        "bag_vectors": VectorPackager(config, opcode=Opcode.BAG_VECTORS),
        "bag_answers": AnswerCounter(), "gpu_bag_answers": AnswerCounter(),
    }


def bag_routers() -> dict[str, wiring.Component]:
    """Return the blocks without counters, by name."""
    return {"bag_router": VectorRouter(),
            "local_arbiter": Arbiter(VectorBeat, 2, last=lambda beat: beat.last)}


def bag_credits(config: NicConfig) -> CreditCounter:
    """Return the counter of beats of bags that were consumed; the last reader is the link."""
    return CreditCounter(config.nodes, len(_READERS) + config.link)


def connect_bags(m: Module, config: NicConfig, blocks: SimpleNamespace,
                 credits: CreditCounter) -> None:
    """Connect the signals of the bags' blocks, besides their streams."""
    asked, slots = blocks.owner_places.o, blocks.dispatcher
    for port, name in enumerate(_READERS):
        packager = getattr(blocks, name)
        m.d.comb += [credits.node[port].eq(packager.credit_node),
                     packager.credit.eq(credits.value[port])]
    m.d.comb += [
        credits.freed.eq(blocks.bag_check.freed),
        blocks.bag_packager.moving.eq(slots.reserve.valid & slots.reserve.ready),
        blocks.bag_packager.waiting.eq(slots.waiting),
        blocks.bag_packager.credit_in.eq(
            blocks.link_bag_credits.credit if config.link else blocks.net_parser.bag_credit),
        blocks.bag_lists.credit.eq(blocks.query_checker.consumed),
        blocks.bag_landing.asked.eq(blocks.bag_sender.asked),
        blocks.bag_answers.asked.eq(blocks.bag_sender.asked.valid),
        blocks.bag_answers.answered.eq(blocks.bag_landing.landed),
        blocks.gpu_bag_answers.asked.eq(
            asked.valid & asked.ready & asked.payload.segment.head),
        blocks.gpu_bag_answers.answered.eq(blocks.owner_places.landed),
    ]
