// What a NIC is built and set for, and where fields lie in beats: filled in by Python.
#pragma once
#include <cstdint>

namespace ember {

constexpr uint32_t DATA_WORDS = 16;  // 32-bit words of a beat
constexpr uint32_t RECORDS_PER_BEAT = 8;

struct Field {
    uint32_t bit, bits;

    uint64_t get(const uint32_t* words) const {
        uint64_t value = words[bit / 32] >> bit % 32;
        for (uint32_t taken = 32 - bit % 32, word = bit / 32 + 1; taken < bits; taken += 32)
            value |= uint64_t{words[word++]} << taken;
        return bits < 64 ? value & ((uint64_t{1} << bits) - 1) : value;
    }
    void set(uint32_t* words, uint64_t value) const {
        for (uint32_t k = 0; k < bits; k++)
            words[(bit + k) / 32] |= uint32_t(value >> k & 1) << (bit + k) % 32;
    }
};

// Every member is a uint32, in the order of sim.model.layout.
struct Config {
    // Sizes (rtl.config.NicConfig).
    uint32_t nodes, query_beats, sample_slots, hold_vectors, lookup_beats, net_payload_beats,
        host_payload_beats, dense_vectors, remote_ways, remote_in_flight, local_ways,
        local_in_flight, dedupe_ways, dedupe_in_flight, scatter_entries, dot_units,
        interaction_vectors, wide;
    // Registers.
    uint32_t node, cluster, vector_beats, vector_packing, mean, interaction, itself, local_enable,
        local_sets, remote_enable, remote_sets, requester_merge, dedupe_enable, dedupe_sets,
        request_batch, request_timeout, lookup_timeout, vector_timeout, result_timeout,
        lookup_window;
    // Latencies in cycles, of the docstrings and constants of rtl (sim.model.latencies).
    uint32_t parser_header, adder, reciprocal, divider, hits_ahead, bags, pooled_beats,
        ring_beats, request_fifo, assembled, dot_first, dot_reuse, dot_room;
    // Opcodes.
    uint32_t lookups, vectors, queries, gpu_vectors, dense_vectors_op, lookup_requests, pooled,
        credit, dense_requests, results, result_part;
    // Kinds of query records; of descriptors.
    uint32_t key, key_end, empty, head, by_row, everywhere, owner_bits;
    // Fields: of a header beat, a record, a tag beat of pooled vectors, one of a part of a result.
    Field opcode, source, destination, step, credit_field, count, version;
    Field lookup_row, lookup_table, lookup_landing, query_row, query_table, query_kind,
        sample_number, sample_slots_field, dense_sample, dense_landing;
    Field tag_sample, tag_first, tag_last, part_sample, part_first, part_last;
    uint32_t version_value, beat_words, last_bit, keep_word, keep_words;
};

// Where the rows of each table are, and the hash of keys (host.shard).
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
