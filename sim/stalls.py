"""What NICs waited for, by cause, from their registers' counts."""

from collections.abc import Mapping, Sequence

__all__ = ["CAUSES", "stalls"]

CAUSES: dict[str, tuple[str, str]] = {
    "host_assembler.stall_output": ("host", "packets waited because PCIe took none"),
    "gpu_answers.stall_answers": ("gpu", "rows were owed by the GPU or its host and none came"),
    "dense_answers.stall_answers": ("dense", "dense vectors were owed by the host and none came"),
    "net_assembler.stall_output": ("network", "frames waited because the link took none"),
    "peer_answers.stall_answers": ("peers", "vectors were owed by other nodes and none came"),
    "lookup_packager.stall_credit": ("peers", "lookups waited for credit of their owner"),
    "hold_buffer.stall_full": ("samples", "slots waited for a free place in the hold buffer"),
    "hold_buffer.stall_waiting": ("samples", "the oldest slot waited for its vector"),
    "dispatcher.stall_hold": ("samples", "a slot waited for a place in the hold buffer"),
    "dispatcher.stall_dense": ("samples", "a slot waited until its dense vector could be ordered"),
    "dense_ring.stall_full": ("samples", "samples waited for a place for their dense vector"),
    "dense_ring.stall_waiting": ("samples", "the oldest sample waited for its dense vector"),
    "dense_ring.stall_buffers": ("samples", "requests for dense vectors waited for a buffer"),
    "concatenator.stall_dense": ("samples", "pooled vectors waited for their dense one"),
    "dispatcher.stall_local": ("lookups", "a slot waited for room towards the dedupe table"),
    "dispatcher.stall_remote": ("lookups", "a slot waited for room towards other nodes"),
    "remote_cache.stall_in_flight": ("lookups", "the remote cache had no free miss id"),
    "remote_cache.stall_waiters": ("lookups", "the remote cache had no free scatter node"),
    "remote_cache.stall_output": ("lookups", "the remote cache could not ask or answer"),
    "dedupe.stall_in_flight": ("lookups", "the dedupe table had no free entry in flight"),
    "dedupe.stall_waiters": ("lookups", "the dedupe table had no free scatter node"),
    "dedupe.stall_output": ("lookups", "the dedupe table could not ask or answer"),
    "local_cache.stall_in_flight": ("lookups", "the local cache had no free miss id"),
    "local_cache.stall_waiters": ("lookups", "the local cache had no free scatter node"),
    "local_cache.stall_output": ("lookups", "the local cache could not ask or answer"),
    "lookup_packager.stall_buffers": ("lookups", "lookups waited for a packet buffer"),
    "request_packager.stall_buffers": ("lookups", "requests to the GPU waited for a buffer"),
    "vector_packager.stall_buffers": ("vectors", "vectors waited for a packet buffer"),
    "pooler.stall_adder": ("vectors", "sums waited for the adder"),
    "interaction.stall_input": ("results", "vectors waited for the interaction"),
    "interaction.stall_output": ("results", "dots waited for room for their results"),
}
"""Cause and meaning of each stall counter. What is outside the NIC is a cause by itself; the others
are what it leads to inside: ``samples`` that wait, ``lookups``, ``vectors`` or ``results`` held
up."""


def stalls(counters: Sequence[Mapping[str, int]]) -> dict:
    """Return the stall cycles of all nodes.

    Parameters: ``counters`` of each node.

    ``counters`` of the result has every stall counter's cycles, a number for each node;
    ``by_cause`` names for each cause the counter that counted most at one node, longest first:
    ``cause``, ``counter``, ``node``, ``cycles``, ``means``. A cause that nothing waited for is
    left out.
    """
    found = {name: [node[name] for node in counters] for name in counters[0]
             if name.partition(".")[2].startswith("stall_")}
    longest: dict[str, dict] = {}
    for name, cycles in found.items():
        cause, means = CAUSES.get(name, (name.partition(".")[0], name))
        most = max(cycles)
        if most > longest.get(cause, {"cycles": 0})["cycles"]:
            longest[cause] = {"cause": cause, "counter": name, "node": cycles.index(most),
                              "cycles": most, "means": means}
    return {"by_cause": sorted(longest.values(), key=lambda stall: -stall["cycles"]),
            "counters": found}
