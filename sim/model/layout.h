// What a NIC is built and set for: filled in by Python.
#pragma once
#include <cstdint>

#include "wire.h"

namespace ember {

// Every member is a uint32, in the order of sim.model.layout.
struct Config : Wire {
    // Sizes (rtl.config.NicConfig).
    uint32_t nodes, query_beats, sample_slots, hold_vectors, lookup_beats, net_payload_beats,
        host_payload_beats, dense_vectors, remote_ways, remote_in_flight, local_ways,
        local_in_flight, dedupe_ways, dedupe_in_flight, scatter_entries, dot_units, wide;
    // Registers.
    uint32_t node, cluster, vector_beats, vector_packing, mean, interaction, itself, local_enable,
        local_sets, remote_enable, remote_sets, requester_merge, dedupe_enable, dedupe_sets,
        request_batch, request_timeout, lookup_timeout, vector_timeout, result_timeout,
        lookup_window;
    // Latencies in cycles, and depths: attributes of the blocks of rtl (sim.model.layout).
    uint32_t parser_header, parser_record, adder, reciprocal, divider, loop, hits_ahead,
        cache_queue, bags, pooled_beats, ring_beats, request_fifo, node_buffers, one_buffers,
        mux_order, result_groups, credit_share, assembled, assembler_room, slice_ring,
        slice_loaded, dot_first, dot_reuse, dot_room;
    // Kinds of query records; of descriptors.
    uint32_t key, key_end, empty, head, by_row, everywhere, owner_bits;
};

// Where the rows of each table are, and the hash of keys (host.placement.shard).
struct Plan {
    const int64_t *kinds, *owner, *owners;
    const uint32_t* hash;  // [bytes of a key][256]
    uint32_t hash_bytes;

    uint32_t hash_of(uint64_t key) const {
        uint32_t value = 0;
        for (uint32_t byte = 0; byte < hash_bytes; byte++)
            value ^= hash[byte * 256 + (key >> 8 * byte & 255)];
        return value;
    }
};

}  // namespace ember
