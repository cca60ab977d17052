"""Connections of the gradient path to the other blocks of a SmartNIC with training."""

from types import SimpleNamespace

from amaranth.hdl import Module

__all__ = ["connect_training"]


def connect_training(m: Module, blocks: SimpleNamespace) -> None:
    """Connect the signals of ``blocks.training_path``, besides its streams, to parsers, local
    cache, dispatcher, dedupe table and reporter."""
    training, cache = blocks.training_path, blocks.local_cache
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
        training.forgetting.eq(blocks.dedupe.forgetting),
    ]
