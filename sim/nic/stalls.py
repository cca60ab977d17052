"""Stall cycles of the NICs by cause, from the registers' counts."""

from collections.abc import Mapping, Sequence

__all__ = ["BAG_CAUSES", "CAUSES", "TRAINING_CAUSES", "stalls"]

CAUSES: dict[str, tuple[str, str]] = {
    "host_assembler.stall_output": ("host", "packets waited because PCIe took none"),
    "gpu_answers.stall_answers": ("gpu", "rows were owed by the GPU or its host and none came"),
    "gpu_rings.stall_full": ("gpu", "a list waited until the GPU had read one from the ring"),
    "dense_answers.stall_answers": ("dense", "dense vectors were owed by the host and none came"),
    "net_assembler.stall_output": ("network", "frames waited because the link took none"),
    "peer_answers.stall_answers": ("peers", "vectors were owed by other nodes and none came"),
    "lookup_packager.stall_credit": ("peers", "lookups waited for credit of their owner"),
    "hold_buffer.stall_full": ("samples", "slots waited for a free place in the hold buffer"),
    "hold_buffer.stall_waiting": ("samples", "the oldest slot waited for its vector"),
    "dispatcher.stall_hold": ("samples", "a slot waited for a place in the hold buffer"),
    "dispatcher.stall_dense": ("samples", "a slot waited until its dense vector could be ordered"),
    "dispatcher.stall_step": ("samples", "a slot waited for the end of the step before"),
    "dense_ring.stall_full": ("samples", "samples waited for a place for their dense vector"),
    "dense_ring.stall_waiting": ("samples", "the oldest sample waited for its dense vector"),
    "dense_ring.stall_buffers": ("samples", "requests for dense vectors waited for a buffer"),
    "concatenator.stall_dense": ("samples", "pooled vectors waited for their dense one"),
    "delivery.stall_sweep": ("lookups", "a slot waited until the table of repeats was empty"),
    "delivery.stall_output": ("lookups", "a slot waited for the dispatcher or packets of indices"),
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
TRAINING_CAUSES: dict[str, tuple[str, str]] = {
    "row_updater.stall_written": ("gpu", "a step waited for its rows to be in GPU memory"),
    "row_updater.stall_states": ("gpu", "a row waited for its state from the host"),
    "partial_packager.stall_credit": ("peers", "partial sums waited for credit of their owner"),
    "row_updater.stall_rows": ("rows", "the oldest row to be updated waited for its vector"),
    "row_updater.stall_places": ("rows", "sums waited for a place to wait for their row"),
    "row_updater.stall_requests": ("rows", "lookups of rows or requests for states waited"),
    "row_updater.stall_output": ("rows", "new rows waited for their packets or the cache"),
    "row_packager.stall_buffers": ("rows", "new rows waited for a packet buffer"),
    "state_packager.stall_buffers": ("rows", "new states waited for a packet buffer"),
    "state_request_packager.stall_buffers": ("rows", "requests for states waited for a buffer"),
    "gradient_expander.stall_vector": ("gradients", "keys waited for the vector of their bag"),
    "gradient_expander.stall_sink": ("gradients", "gradients waited for their local sums"),
    "local_reducer.stall_step": ("gradients", "gradients waited while local sums were read"),
    "local_reducer.stall_output": ("gradients", "local sums waited to leave"),
    "local_reducer.stall_passed": ("gradients", "gradients without a local entry waited to leave"),
    "gradient_sender.stall_own": ("gradients", "partial sums waited for those of this node"),
    "gradient_sender.stall_remote": ("gradients", "partial sums waited for the packets of others"),
    "gradient_sender.stall_spilled": ("gradients", "spilled gradients waited for their packets"),
    "partial_packager.stall_buffers": ("gradients", "partial sums waited for a packet buffer"),
    "partial_receiver.stall_sink": ("gradients", "partial sums of others waited to be added"),
    "returned_receiver.stall_sink": ("gradients", "returned gradients waited to be added"),
    "global_reducer.stall_step": ("gradients", "partial sums waited while sums were read"),
    "global_reducer.stall_output": ("gradients", "sums waited for their rows"),
    "global_reducer.stall_passed": ("gradients", "partial sums without an entry waited to leave"),
    "spill_packager.stall_buffers": ("gradients", "spilled gradients waited for a packet buffer"),
    "step_packager.stall_buffers": ("gradients", "ends of steps waited for a packet buffer"),
    "report_packager.stall_buffers": ("gradients", "reports to the host waited for a buffer"),
}
"""Further causes, in NICs that train."""

BAG_CAUSES: dict[str, tuple[str, str]] = {
    "gpu_bag_answers.stall_answers": ("gpu", "vectors of bags were owed by the GPU and none came"),
    "bag_answers.stall_answers": ("peers", "vectors of bags were owed by others and none came"),
    "bag_packager.stall_credit": ("peers", "bags waited for credit of their owner"),
    "dispatcher.stall_bags": ("bags", "a slot waited for room towards the sender of bags"),
    "bag_sender.stall_ids": ("bags", "a bag waited for a free id"),
    "bag_packager.stall_buffers": ("bags", "bags waited for a packet buffer"),
    "owner_places.stall_places": ("bags", "a bag of another node waited for a free place"),
    "bag_lists.stall_buffers": ("bags", "bags for the GPU waited for a buffer"),
    "bag_vectors.stall_buffers": ("vectors", "vectors of bags waited for a packet buffer"),
}
"""Further causes, in NICs with owner pooling."""

_CAUSES = CAUSES | TRAINING_CAUSES | BAG_CAUSES
"""Cause and meaning of each stall counter. Parts outside the NIC (host, gpu, dense, network, peers)
are primary causes; the other causes name the data that back-pressure delays inside: ``samples``,
``lookups``, ``bags``, ``vectors``, ``results``, ``gradients`` or ``rows``."""


def stalls(counters: Sequence[Mapping[str, int]]) -> dict:
    """Return the stall cycles of all nodes.

    Parameters: ``counters`` of each node.

    Fields of the result: ``counters``, the cycles of every stall counter, one number per node;
    ``by_cause``, for each cause with stalls, longest first, the counter with the most cycles at any
    one node: ``cause``, ``counter``, ``node``, ``cycles``, ``means``.
    """
    found = {name: [node[name] for node in counters] for name in counters[0]
             if name.partition(".")[2].startswith("stall_")}
    longest: dict[str, dict] = {}
    for name, cycles in found.items():
        cause, means = _CAUSES.get(name, (name.partition(".")[0], name))
        most = max(cycles)
        if most > longest.get(cause, {"cycles": 0})["cycles"]:
            longest[cause] = {"cause": cause, "counter": name, "node": cycles.index(most),
                              "cycles": most, "means": means}
    return {"by_cause": sorted(longest.values(), key=lambda stall: -stall["cycles"]),
            "counters": found}
