"""The two sides of a reliable link, joined to each other."""

from typing import Any

from amaranth.hdl import Module, Mux, Value

__all__ = ["first_deadline", "join_ends"]


def join_ends(m: Module, sender: Any, receiver: Any, rejoin: Any) -> None:
    """Join a :class:`rtl.network.link.sender.LinkSender` and a
    :class:`rtl.network.link.rejoin.LinkRejoin` to the receiver of the same NIC, which has the ports
    of :func:`rtl.network.link.receiver.link_ports` and ``peer``, besides their streams."""
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
    """Return whether either side waits for its deadline, and the earlier one of those that do."""
    sooner = (sender.deadline - receiver.deadline)[31]
    return sender.waits | receiver.waits, Mux(
        sender.waits & (sooner | ~receiver.waits), sender.deadline, receiver.deadline)
