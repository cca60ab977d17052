"""Connections of the gradient path to the other blocks of a SmartNIC that trains."""

from types import SimpleNamespace

from amaranth.hdl import Module
from amaranth.lib import wiring

from rtl.network import PacketMux

__all__ = ["connect_training"]


def connect_training(m: Module, blocks: SimpleNamespace, net_mux: PacketMux,
                     host_mux: PacketMux) -> None:
    """Join ``blocks.training_path`` to parsers, local cache, dispatcher, dedupe table, reporter,
    and the last ports of the two muxes."""
    training, cache = blocks.training_path, blocks.local_cache
    for parser, names in ((blocks.host_parser, ("gradients", "returned", "states", "written")),
                          (blocks.net_parser, ("partials", "steps"))):
        for name in names:
            wiring.connect(m, getattr(parser, name), getattr(training, name))
    wiring.connect(m, training.refused, blocks.host_reporter.gradients_refused)
    wiring.connect(m, training.lookups, cache.updates)
    wiring.connect(m, cache.updated, training.updated)
    wiring.connect(m, training.write, cache.write)
    for mux, headers, payload in ((net_mux, training.net_headers, training.net_payload),
                                  (host_mux, training.host_headers, training.host_payload)):
        wiring.connect(m, headers, mux.headers[-1])
        wiring.connect(m, payload, mux.payload[-1])
    m.d.comb += [
        training.credit_in.eq(blocks.net_parser.gradient_credit),
        training.host_credit.eq(blocks.query_checker.consumed),
        blocks.host_assembler.acknowledge.eq(training.acknowledge),
        blocks.host_reporter.acknowledge.eq(training.acknowledge),
        cache.frozen.eq(training.frozen),
        blocks.dispatcher.open_step.eq(training.open_step),
        blocks.dispatcher.written.eq(training.written_owners),
        blocks.query_checker.open_step.eq(training.open_step),
        training.dropped.eq(blocks.host_receiver.dropped),
        blocks.dedupe.forget.eq(training.forget), training.forgetting.eq(blocks.dedupe.forgetting),
    ]
