"""Connections between the two sides of a reliable link."""

from typing import Any

from amaranth.hdl import Module, Mux, Value

__all__ = ["first_deadline", "join_ends"]


def join_ends(m: Module, sender: Any, receiver: Any, rejoin: Any) -> None:
    """Connect a :class:`rtl.network.link.sender.LinkSender`, a
    :class:`rtl.network.link.rejoin.LinkRejoin` and the receiver of the same NIC, except for their
    streams.

    The receiver has ``peer`` and the ports of :func:`rtl.network.link.receiver.link_ports`.
    """
    m.d.comb += [
        sender.acknowledged.eq(receiver.acknowledged), receiver.told.eq(sender.told),
        receiver.ack_node.eq(sender.ack_node), sender.ack_value.eq(receiver.ack_value),
        rejoin.failed.eq(sender.failed), sender.close.eq(rejoin.close),
        rejoin.closed.eq(sender.closed), rejoin.empty.eq(sender.empty),
        rejoin.sender_busy.eq(sender.busy), sender.rejoined.eq(rejoin.rejoined),
        receiver.peer.eq(rejoin.peer), receiver.mark.eq(rejoin.mark),
        rejoin.passed.eq(receiver.passed), rejoin.receiver_busy.eq(receiver.busy),
        *(port.eq(getattr(rejoin, name)) for side in (sender, receiver)
          for name, port in (("held", side.held), ("wipe", side.wipe))),
    ]


def first_deadline(sender: Any, receiver: Any) -> tuple[Value, Value]:
    """Return whether either side waits for a deadline, and the earlier deadline of the waiting
    sides."""
    sooner = (sender.deadline - receiver.deadline)[31]
    return sender.waits | receiver.waits, Mux(
        sender.waits & (sooner | ~receiver.waits), sender.deadline, receiver.deadline)
