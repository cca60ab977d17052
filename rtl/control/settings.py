"""The control registers as data, for the register map."""

from collections.abc import Iterator

from amaranth.utils import ceil_log2

from rtl.config import NicConfig
from rtl.formats import InteractionMode, OptimizerMode, ValueFormat

__all__ = ["controls"]


def controls(config: NicConfig) -> Iterator[tuple[str, int, int, int, int, str]]:
    """Yield name, width, reset value, smallest and largest value, and description of every control
    register, in address order.

    A register drives the input ports of its name (:func:`rtl.nic_control.control`).
    """
    share = config.lookup_beats // config.nodes
    batch = 8 * config.host_payload_beats
    largest, word = 0xFFFF, (1 << 32) - 1
    yield "node", 8, 0, 0, config.nodes - 1, "number of this node"
    yield "nodes", 8, 1, 1, config.nodes, "number of nodes in the cluster"
    yield ("vector_beats", config.vector_beats.bit_length(), config.vector_beats, 1,
           config.vector_beats, "beats of a vector")
    yield ("vector_packing", 2, config.vector_packing, config.vector_packing, 2,
           "log2 of the vectors per beat of a packet; used only if vector_beats is 1")
    if config.short_vectors:
        yield from _value_controls(config)
    yield "pooling_mean", 1, 0, 0, 1, "1: bags pool to their mean; 0: to their sum"
    yield ("interaction_mode", 2, 0, 0, int(InteractionMode.CAT),
           "0: results are pooled vectors; 1: dots (needs dot_units); 2: concatenations")
    yield "interaction_itself", 1, 0, 0, 1, "1: dots include each vector with itself"
    yield ("unique_delivery", 1, 0, 0, int(config.unique_keys > 0),
           "1: the host gets each distinct vector of a share once, if interaction_mode is 0")
    yield "local_cache_enable", 1, 1, 0, 1, "1: the local cache stores rows"
    yield ("local_cache_sets", config.local_cache_sets.bit_length(), config.local_cache_sets, 1,
           config.local_cache_sets, "sets of the local cache in use")
    yield "remote_cache_enable", 1, 1, 0, 1, "1: the remote cache stores rows"
    yield ("remote_cache_sets", config.remote_cache_sets.bit_length(), config.remote_cache_sets, 1,
           config.remote_cache_sets, "sets of the remote cache in use")
    yield "requester_merge", 1, 1, 0, 1, "1: merge identical keys in flight to other nodes"
    yield "dedupe_enable", 1, 1, 0, 1, "1: the dedupe table merges lookups of a key"
    yield "request_batch", 16, min(64, batch), 1, batch, "lookups per request list to the host"
    for name, what in (("request", "request list to the host"), ("lookup", "lookups packet"),
                       ("vector", "vectors packet"), ("result", "results packet"),
                       ("index", "indices packet")):
        yield f"{name}_timeout", 16, 64, 0, largest, f"cycles until an open {what} leaves"
    yield ("lookup_window", 16, config.lookup_window, 1, config.lookup_beats,
           "lookup beats that may be in flight to one owner")
    yield ("output_queues", 1, 0, 0, 1,
           "1: lookups wait for credit in a queue per owner; 0: in one queue. Write it before the "
           "first lookup; reset the NIC to change it")
    yield ("lookup_share", 16, share, 1, config.lookup_beats,
           "lookup beats of one requester that may wait in this NIC")
    yield ("tap_select", 2, 0, 0, 2,
           "cache whose lookups the access tap logs: 0 off, 1 local, 2 remote")
    yield ("step_floor", 16, 0, 0, largest,
           "smallest step in use; dedupe.retired_early counts evictions from this step on")
    yield ("completion_base_low", 32, 0, 0, word,
           f"address of the ring of completions, a multiple of {4 * config.completion_slots}, "
           "bits 31 to 0")
    yield ("completion_base_high", 32, 0, 0, word,
           "address of the ring of completions, bits 63 to 32")
    yield ("completion_flush", 1, 1, 0, 1,
           "1: a completion waits until earlier writes are visible (FLUSH)")
    yield ("step_timeout", 32, 0, 0, word,
           "cycles until an open step completes with status TIMEOUT; 0: never")
    yield from _ring_controls(config)
    yield ("mac_base_low", 32, 0x4D420000, 0, word,
           "MAC address of node 0, bits 31 to 0")
    yield "mac_base_high", 16, 0x0245, 0, largest, "MAC address of node 0, bits 47 to 32"
    yield "ip_base", 32, 0x0A450000, 0, word, "IPv4 address of node 0"
    yield "udp_port", 16, 0x4853, 0, largest, "UDP port, source and destination"
    if config.owner_bags:
        yield from _bag_controls(config)
    if config.link:
        yield from _link_controls(config)
    if config.training:
        yield from _training_controls(config)
    yield ("counters_hold", 1, 0, 0, 1,
           "1: reads of counters return a snapshot of the cycle in which this became 1")
    yield ("flush", 2, 0, 0, 3,
           "a rising bit empties caches, also during traffic, to fetch changed rows again: bit 0 "
           "the caches of rows of this node, bit 1 the cache of rows of other nodes")


def _value_controls(config: NicConfig):
    """Yield the registers of vectors of other values than float32, as :func:`controls` does."""
    last = ValueFormat.INT8_ROW if config.code_vectors else ValueFormat.BFLOAT16
    yield ("value_format", int(last).bit_length(), 0, 0, int(last),
           "values of vectors that the NIC pools: 0: float32; 1: float16; 2: bfloat16" + (
               "; 3: int8 in groups of 32; 4: int8 in one group" if config.code_vectors else ""))
    if config.code_vectors:
        yield ("value_count", config.max_dimension.bit_length(), config.max_dimension, 1,
               config.max_dimension, "values of a vector of int8, without padding")
    yield ("value_beats", config.vector_beats.bit_length(), config.vector_beats, 1,
           config.vector_beats, "beats of a vector as float32")
    yield ("value_packing", 2, config.vector_packing, config.vector_packing, 2,
           "log2 of the float32 vectors per beat of a packet; used only if value_beats is 1")


def _ring_controls(config: NicConfig):
    """Yield the registers of the rings in GPU memory, and of row reads, as :func:`controls` does.
    """
    word = (1 << 32) - 1
    yield "gpu_rings", 1, 0, 0, 1, "1: request lists and vectors use rings in GPU memory"
    longest = {"list": config.net_payload_beats + 1, "vector": config.host_payload_beats}
    for ring, what in (("list", "request lists"), ("vector", "vectors, one slot per list")):
        shift = 6 + ceil_log2(longest[ring])
        yield f"{ring}_ring_low", 32, 0, 0, word, f"address of the ring of {what}, bits 31 to 0"
        yield f"{ring}_ring_high", 32, 0, 0, word, "address of the ring, bits 63 to 32"
        yield f"{ring}_ring_shift", 4, 8, 0, 15, "log2 of the ring's slots"
        yield f"{ring}_slot_shift", 5, shift, shift, 31, "log2 of the bytes of a slot"
        yield (f"{ring}_index_low", 32, 0, 0, word,
               f"address of the word with the count of {ring} slots that the NIC has finished, "
               "bits 31 to 0; the upper bits are those of the ring's address")
    yield "vector_every", 8, 1, 0, 255, "vector slots read per write of their count; 0: 1"
    yield "row_reads", 1, 0, 0, 1, "1: read rows from GPU memory by DMA, if gpu_rings is 0"
    yield ("rows_base_low", 32, 0, 0, word,
           "address in GPU memory to which bases of tables are relative, bits 31 to 0")
    yield "rows_base_high", 32, 0, 0, word, "bits 63 to 32 of the address in rows_base_low"
    yield "lists_consumed", 16, 0, 0, 0xFFFF, "lists that the GPU kernel has read, modulo 2^16"
    yield ("vectors_produced", 16, 0, 0, 0xFFFF,
           "vector slots that the GPU kernel has filled, modulo 2^16")


def _bag_controls(config: NicConfig):
    """Yield the registers of owner pooling, as :func:`controls` does."""
    share, most = config.owner_bag_beats // config.nodes, config.owner_bag_beats
    yield ("bag_window", 16, config.bag_window, config.bag_words // 8, most,
           "beats of bags that may be in flight to one owner")
    yield ("bag_share", 16, share, 1, most,
           "beats of bags of one requester that may wait in this NIC")
    yield ("bag_timeout", 16, 64, 0, 0xFFFF,
           "cycles without a slot until open packets of bags leave, 4 times as many while a slot "
           "waits; a packet of 64 times this age leaves too")
    yield "bag_batch", 16, 64, 1, 0xFFFF, "bags per list to the host"
    yield ("pooling_by_table", 1, 0, 0, 1,
           "1: the bags of each table pool to their mean or sum, by its descriptor")
    if config.repeat_positions:
        yield ("repeats_enable", 1, 0, 0, 1,
               "1: a bag that pools at its owner and repeats that of the previous sample is not "
               "looked up")


def _link_controls(config: NicConfig):
    """Yield the registers of the reliable link, as :func:`controls` does; times in cycles."""
    longest = (1 << 23) - 1
    yield ("link_epoch", 8, 0, 0, 255,
           "number common to all nodes of a run; packets of another epoch, for example from before "
           "a restart, are rejected")
    yield ("link_delay", 16, 128, 0, 0xFFFF,
           "from the arrival of a packet to the LINK packet that acknowledges it, if needed")
    yield ("link_timeout_first", 23, 7_500, 1, longest,
           "until a packet is sent again, before a round trip to its node is measured")
    yield ("link_timeout_least", 23, 1_000, 1, longest,
           "smallest timeout after a round trip is measured")
    yield ("link_timeout_most", 23, 250_000, 1, longest,
           "largest timeout; the timeout doubles each time that the packet is sent")
    yield ("link_tries", 8, 12, 1, 255,
           "times that a packet is sent before its node is given up")
    yield ("link_probe_after", 23, 250_000, 1, longest,
           "silence of a peer, while answers are outstanding, until it gets a PROBE packet")
    yield ("link_rejoin", 16, 0, 0, (config.nodes - 1) << 8 | 0xFF,
           "a write accepts a restarted node, in bits 15 to 8, with its new epoch, in bits 7 to 0; "
           "rejected for this node, and while link_rejoining is 1")


def _training_controls(config: NicConfig):
    """Yield the registers of the gradient path, as :func:`controls` does.

    Registers of binary32 words accept any value.
    """
    share, word = config.partial_beats // config.nodes, (1 << 32) - 1
    yield ("training", 1, 0, 0, 1,
           "1: lookups of a step wait until the rows of the previous step are updated")
    yield ("overtake", 1, 0, 0, 1,
           "1: lookups of the next step leave for each owner as soon as it is done")
    yield ("local_reduction", 1, 1, 0, 1,
           "1: add gradients of the same row before they leave; 0: each leaves as a partial")
    yield ("gradient_partials", 1, 0, 0, 1,
           "sums of a node leave as 0: exact lists of binary32; 1: the nearest binary32")
    yield ("optimizer", 1, int(OptimizerMode.SGD), 0, int(OptimizerMode.ROWWISE_ADAGRAD),
           "0: SGD; 1: row-wise Adagrad")
    if config.owner_bags:
        yield ("gpu_updates", 1, 0, 0, 1,
               "1: the host gets an END of each step, and the step waits until its GPU has updated "
               "the rows of bags of gradients")
        words = 8 * config.vector_beats >> config.vector_packing
        yield ("gradient_words", words.bit_length(), words, 2, words,
               "words of 8 bytes of the gradient of a bag, whose format may differ from that of "
               "vectors")
    yield "learning_rate", 32, 0x3DCCCCCD, 0, word, "learning rate, binary32"
    yield "epsilon", 32, 0x322BCC77, 0, word, "epsilon of row-wise Adagrad, binary32"
    yield "gradient_timeout", 16, 64, 0, 0xFFFF, "cycles until an open partials packet leaves"
    yield ("gradient_window", 16, config.gradient_window, 2, config.partial_beats,
           "beats of partials that may be in flight to one owner")
    yield ("gradient_share", 16, share, 2, config.partial_beats,
           "beats of partials of one node that may wait in this NIC")
