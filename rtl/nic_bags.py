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

With ``config.repeat_words``, ``bag_repeats`` is behind the query checker: a bag that repeats a bag
of the previous sample becomes an EMPTY slot. ``repeat_store`` behind the pooler gives it the vector
of that bag, or the finder of ``delivery`` its index. A slot waits there for the tail of its bag,
whose words have room behind those of earlier bags; the slots of these bags have left.

In training, the host's bags of gradients join the bags on the way to their owners, and leave there
in the lists for the GPU::

    host_parser.bag_gradients -> bag_gradients -> bag_arbiter -> bag_packager
    bag_check -> gradient_lists -> list_arbiter -> bag_lists

They wait at the requester for credit of their owner, and at the owner for ``host_tx``, or for bags
before them. They have no answer, so ``bag_credit_return`` reports their credit in step records.

A bag at its requester waits for its step, a place of the hold buffer, an id and credit of its
owner; at its owner for a place. A place waits only for the GPU and ``net_tx``, or, for a bag of
this node, for the hold buffer, which has a place for its vector.
"""

from types import SimpleNamespace

from amaranth.hdl import Module, ValueLike
from amaranth.lib import wiring

from rtl.bags import (
    BagCheck,
    BagCredit,
    BagCreditReturn,
    BagGradients,
    BagLanding,
    BagPackager,
    BagReceiver,
    BagSender,
    GradientLists,
    OwnerPlaces,
)
from rtl.bags.layouts import OutgoingSegment
from rtl.config import NicConfig
from rtl.formats import Opcode, VectorBeat
from rtl.interaction import RepeatStore
from rtl.monitor.answers import AnswerCounter
from rtl.network import CreditCounter, VectorPackager, VectorRouter
from rtl.query import BagRepeats
from rtl.stream import Arbiter

__all__ = ["bag_blocks", "bag_credits", "bag_routers", "connect_bags"]

_READERS = ("bag_packager", "bag_vectors")
"""Blocks whose packets carry the credit of received bags."""


def bag_blocks(config: NicConfig) -> dict[str, wiring.Component]:
    """Return the blocks of owner-pooled bags by name."""
    trains = config.training
    blocks: dict[str, wiring.Component] = {
        "bag_sender": BagSender(gradients=trains), "bag_landing": BagLanding(config),
        "bag_packager": BagPackager(config.nodes, config.net_payload_beats, Opcode.BAGS, True,
                                    pauses=True, unreported=trains),
        "bag_receiver": BagReceiver(config), "bag_check": BagCheck(config),
        "owner_places": OwnerPlaces(config, own=True),
        "bag_lists": BagPackager(1, config.net_payload_beats, Opcode.BAG_LISTS, False, buffers=4,
                                 most_bags=True),
        "bag_vectors": VectorPackager(config, opcode=Opcode.BAG_VECTORS, sized=True),
        "bag_answers": AnswerCounter(), "gpu_bag_answers": AnswerCounter(),
    } | ({"bag_gradients": BagGradients(config), "gradient_lists": GradientLists(),
          "bag_credit_return": BagCreditReturn(config.nodes)} if trains else {})
    if config.repeat_positions:
        blocks |= {"bag_repeats": BagRepeats(config), "repeat_store": RepeatStore(config)}
    return blocks


def bag_routers(config: NicConfig) -> dict[str, wiring.Component]:
    """Return the blocks without counters, by name."""
    blocks: dict[str, wiring.Component] = {
        "bag_router": VectorRouter(sized=True),
        "local_arbiter": Arbiter(VectorBeat, 2, last=lambda beat: beat.last)}
    if config.training:
        for name in ("bag_arbiter", "list_arbiter"):
            blocks[name] = Arbiter(OutgoingSegment, 2, last=lambda item: item.segment.tail)
        blocks["bag_credit"] = BagCredit()
    return blocks


def bag_credits(config: NicConfig) -> CreditCounter:
    """Return the counter of beats of bags that were consumed; the last reader is the link. In
    training, the reader before it is the return of credits."""
    return CreditCounter(config.nodes, len(_READERS) + config.training + config.link)


def connect_bags(m: Module, config: NicConfig, blocks: SimpleNamespace,
                 credits: CreditCounter) -> None:
    """Connect the signals of the bags' blocks, besides their streams."""
    asked, slots = blocks.owner_places.o, blocks.dispatcher
    credit = blocks.net_parser.bag_credit
    if config.training:
        credit = _connect_gradients(m, config, blocks, credits)
    for port, name in enumerate(_READERS):
        packager = getattr(blocks, name)
        m.d.comb += [credits.node[port].eq(packager.credit_node),
                     packager.credit.eq(credits.value[port])]
    m.d.comb += [
        credits.freed.eq(blocks.bag_check.freed),
        blocks.bag_packager.moving.eq(slots.reserve.valid & slots.reserve.ready),
        blocks.bag_packager.waiting.eq(slots.waiting),
        blocks.bag_packager.credit_in.eq(
            blocks.link_bag_credits.credit if config.link else credit),
        blocks.bag_lists.credit.eq(blocks.query_checker.consumed),
        blocks.bag_landing.asked.eq(blocks.bag_sender.asked),
        blocks.bag_answers.asked.eq(blocks.bag_sender.asked.valid),
        blocks.bag_answers.answered.eq(blocks.bag_landing.landed),
        blocks.gpu_bag_answers.asked.eq(
            asked.valid & asked.ready & asked.payload.segment.head),
        blocks.gpu_bag_answers.answered.eq(blocks.owner_places.landed),
    ]


def _connect_gradients(m: Module, config: NicConfig, blocks: SimpleNamespace,
                       credits: CreditCounter) -> ValueLike:
    """Connect the signals of the blocks for bags of gradients; return the event of bag credits."""
    training, gradients = blocks.training_path, blocks.bag_gradients
    returns, steps, port = blocks.bag_credit_return, blocks.net_parser.steps, len(_READERS)
    m.d.comb += [
        training.bags_idle.eq(gradients.idle), training.bags_consumed.eq(gradients.consumed),
        gradients.gradient_step.eq(training.open_step),
        blocks.bag_check.step.eq(training.counted_step), blocks.bag_check.open.eq(training.counts),
        returns.freed.eq(blocks.bag_check.freed), returns.counted.eq(blocks.bag_check.counted),
        returns.step.eq(training.open_step), credits.node[port].eq(returns.credit_node),
        returns.credit.eq(credits.value[port]),
        blocks.bag_credit.header.eq(blocks.net_parser.bag_credit),
        blocks.bag_credit.valid.eq(steps.valid & steps.ready),
        blocks.bag_credit.beat.eq(steps.payload),
    ]
    if config.link:
        m.d.comb += gradients.lost.eq(blocks.link_sender.lost)
    return blocks.bag_credit.o
