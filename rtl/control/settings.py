"""The control registers as data, for the register map."""

from collections.abc import Iterator

from amaranth.utils import ceil_log2

from rtl.config import NicConfig
from rtl.formats import InteractionMode, OptimizerMode

__all__ = ["controls"]


def controls(config: NicConfig) -> Iterator[tuple[str, int, int, int, int, str]]:
    """Yield name, width, reset value, smallest and largest value, and description of every control
    register, in address order.

    A register drives the input ports of its name (:func:`rtl.nic_control.control`).
    """
    share = config.lookup_beats // config.nodes
    batch = 8 * config.host_payload_beats
    largest, word = 0xFFFF, (1 << 32) - 1
    yield "node", 8, 0, 0, config.nodes - 1, "this node's number"
    yield "nodes", 8, 1, 1, config.nodes, "nodes of the cluster"
    yield ("vector_beats", config.vector_beats.bit_length(), config.vector_beats, 1,
           config.vector_beats, "beats of a vector")
    yield ("vector_packing", 2, config.vector_packing, config.vector_packing, 2,
           "log2 of the vectors in a beat of a packet; counts while vector_beats is 1")
    yield "pooling_mean", 1, 0, 0, 1, "bags pool to their mean, not their sum"
    yield ("interaction_mode", 2, 0, 0, int(InteractionMode.CAT),
           "results are 0 pooled vectors, 1 dots, 2 concatenations; 1 needs dot_units")
    yield "interaction_itself", 1, 0, 0, 1, "dots pair a vector with itself too"
    yield ("unique_delivery", 1, 0, 0, int(config.unique_keys > 0),
           "the host gets each different vector of a share once, if interaction_mode is 0")
    yield "local_cache_enable", 1, 1, 0, 1, "the local cache keeps rows"
    yield ("local_cache_sets", config.local_cache_sets.bit_length(), config.local_cache_sets, 1,
           config.local_cache_sets, "sets of the local cache in use")
    yield "remote_cache_enable", 1, 1, 0, 1, "the remote cache keeps rows"
    yield ("remote_cache_sets", config.remote_cache_sets.bit_length(), config.remote_cache_sets, 1,
           config.remote_cache_sets, "sets of the remote cache in use")
    yield "requester_merge", 1, 1, 0, 1, "identical keys on their way to other nodes travel once"
    yield "dedupe_enable", 1, 1, 0, 1, "the dedupe table merges lookups of a key"
    yield "request_batch", 16, min(64, batch), 1, batch, "lookups of a request list to the host"
    for name, what in (("request", "request list to the host"), ("lookup", "lookups packet"),
                       ("vector", "vectors packet"), ("result", "results packet"),
                       ("index", "indices packet")):
        yield f"{name}_timeout", 16, 64, 0, largest, f"cycles after which an open {what} leaves"
    yield ("lookup_window", 16, config.lookup_window, 1, config.lookup_beats,
           "lookup beats that may be on their way to one owner")
    yield ("output_queues", 1, 0, 0, 1,
           "lookups wait for credit in a queue of their owner, not in one for all; set it before "
           "the first lookup, reset to change it")
    yield ("lookup_share", 16, share, 1, config.lookup_beats,
           "lookup beats that one requester may have waiting here")
    yield "tap_select", 2, 0, 0, 2, "whose lookups the access tap logs: 1 local, 2 remote cache"
    yield "step_floor", 16, 0, 0, largest, "smallest step still in use"
    yield ("completion_base_low", 32, 0, 0, word,
           f"address of the ring of completions, a multiple of {4 * config.completion_slots}, "
           "bits 31 to 0")
    yield "completion_base_high", 32, 0, 0, word, "the same, bits 63 to 32"
    yield "completion_flush", 1, 1, 0, 1, "a completion waits until what was written before is seen"
    yield "step_timeout", 32, 0, 0, word, "cycles after which an open step is completed, 0 is never"
    yield from _ring_controls(config)
    yield ("mac_base_low", 32, 0x4D420000, 0, word,
           "MAC address of node 0, bits 31 to 0")
    yield "mac_base_high", 16, 0x0245, 0, largest, "MAC address of node 0, bits 47 to 32"
    yield "ip_base", 32, 0x0A450000, 0, word, "IPv4 address of node 0"
    yield "udp_port", 16, 0x4853, 0, largest, "UDP port, source and destination"
    if config.link:
        yield from _link_controls(config)
    if config.training:
        yield from _training_controls(config)
    yield ("counters_hold", 1, 0, 0, 1,
           "reads of counters return all counters as of the cycle in which this became 1")
    yield ("flush", 2, 0, 0, 3,
           "a bit that rises empties, in mid-traffic too, 0 the caches of this node's rows, 1 that "
           "of other nodes' rows: rows changed in memory are fetched again")


def _ring_controls(config: NicConfig):
    """Yield the same for the rings in GPU memory, through which a kernel there serves misses, and
    for reads of rows there."""
    word = (1 << 32) - 1
    yield "gpu_rings", 1, 0, 0, 1, "request lists go to a ring in GPU memory, vectors come from one"
    longest = {"list": config.net_payload_beats + 1, "vector": config.host_payload_beats}
    for ring, what in (("list", "request lists"), ("vector", "vectors, a slot a list")):
        shift = 6 + ceil_log2(longest[ring])
        yield f"{ring}_ring_low", 32, 0, 0, word, f"address of the ring of {what}, bits 31 to 0"
        yield f"{ring}_ring_high", 32, 0, 0, word, "the same, bits 63 to 32"
        yield f"{ring}_ring_shift", 4, 8, 0, 15, "log2 of the ring's slots"
        yield f"{ring}_slot_shift", 5, shift, shift, 31, "log2 of the bytes of a slot"
        yield (f"{ring}_index_low", 32, 0, 0, word,
               f"address of the word with the count of {ring} slots that the NIC is done with, "
               "bits 31 to 0; the others as of the ring")
    yield "vector_every", 8, 1, 0, 255, "slots read out after which their count is written"
    yield "row_reads", 1, 0, 0, 1, "rows are read from GPU memory by DMA, if gpu_rings is 0"
    yield ("rows_base_low", 32, 0, 0, word,
           "address in GPU memory from which on the bases of tables count, bits 31 to 0")
    yield "rows_base_high", 32, 0, 0, word, "the same, bits 63 to 32"
    yield "lists_consumed", 16, 0, 0, 0xFFFF, "lists that the kernel has read, modulo 2^16"
    yield "vectors_produced", 16, 0, 0, 0xFFFF, "slots of vectors it has filled, modulo 2^16"


def _link_controls(config: NicConfig):
    """Yield the same for the reliable link; times in cycles."""
    longest = (1 << 23) - 1
    yield ("link_epoch", 8, 0, 0, 255,
           "number that all nodes of a run share; a packet with another is refused, so that a node "
           "that was restarted is not taken for its former self")
    yield ("link_delay", 16, 128, 0, 0xFFFF,
           "from a packet that came to the LINK packet that acknowledges it, if no other has")
    yield ("link_timeout_first", 23, 7_500, 1, longest,
           "after which a packet is sent again, before a round trip to its node is measured")
    yield ("link_timeout_least", 23, 1_000, 1, longest,
           "the same at least, once one is measured")
    yield ("link_timeout_most", 23, 250_000, 1, longest,
           "the same at most: it doubles each time that the packet is sent")
    yield ("link_tries", 8, 12, 1, 255,
           "times that a packet is sent before its node is given up")
    yield ("link_probe_after", 23, 250_000, 1, longest,
           "while answers are outstanding, after which a peer that was silent gets a PROBE packet")
    yield ("link_rejoin", 16, 0, 0, (config.nodes - 1) << 8 | 0xFF,
           "a node that was restarted, in bits 15 to 8, is back with the epoch in bits 7 to 0: "
           "taken back at each write; refused for this node, and while link_rejoining is 1")


def _training_controls(config: NicConfig):
    """Yield the same for the gradient path; binary32 words may have any value."""
    share, words = config.partial_beats // config.nodes, (1 << 32) - 1
    yield "training", 1, 0, 0, 1, "lookups of a step wait until the rows of the one before are new"
    yield ("overtake", 1, 0, 0, 1,
           "lookups of the next step leave for owners that are done, before all are")
    yield ("local_reduction", 1, 1, 0, 1,
           "gradients to the same row are added up before they leave; without, each is a partial")
    yield ("gradient_partials", 1, 0, 0, 1,
           "sums of a node leave as 0 exact lists of binary32, 1 the nearest binary32")
    yield ("optimizer", 1, int(OptimizerMode.SGD), 0, int(OptimizerMode.ROWWISE_ADAGRAD),
           "rows follow their gradients by 0 SGD, 1 row-wise Adagrad")
    yield "learning_rate", 32, 0x3DCCCCCD, 0, words, "learning rate, binary32"
    yield "epsilon", 32, 0x322BCC77, 0, words, "of row-wise Adagrad, binary32"
    yield "gradient_timeout", 16, 64, 0, 0xFFFF, "cycles after which an open partials packet leaves"
    yield ("gradient_window", 16, config.gradient_window, 2, config.partial_beats,
           "beats of partials that may be on their way to one owner")
    yield ("gradient_share", 16, share, 2, config.partial_beats,
           "beats of partials that one node may have waiting here")
