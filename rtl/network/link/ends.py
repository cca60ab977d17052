"""The two sides of a reliable link, joined to each other."""

from typing import Any

from amaranth.hdl import Module, Mux, Value

__all__ = ["first_deadline", "join_ends"]


def join_ends(m: Module, sender: Any, receiver: Any) -> None:
    """Join a :class:`rtl.network.link.sender.LinkSender` to the receiver of the same NIC, which has
    the ports of :func:`rtl.network.link.receiver.link_ports`, besides their streams."""
    m.d.comb += [
        sender.acknowledged.eq(receiver.acknowledged), receiver.told.eq(sender.told),
        receiver.ack_node.eq(sender.ack_node), sender.ack_value.eq(receiver.ack_value),
    ]


def first_deadline(sender: Any, receiver: Any) -> tuple[Value, Value]:
    """Return whether either side waits for its deadline, and the earlier one of those that do."""
    sooner = (sender.deadline - receiver.deadline)[31]
    return sender.waits | receiver.waits, Mux(
        sender.waits & (sooner | ~receiver.waits), sender.deadline, receiver.deadline)
