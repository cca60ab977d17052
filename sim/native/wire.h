// Where fields lie in the beats between a NIC and its host, and opcodes: filled in by Python.
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
    // Of a record.
    uint64_t of(uint64_t record) const {
        return record >> bit & (bits < 64 ? (uint64_t{1} << bits) - 1 : ~uint64_t(0));
    }
    void set(uint32_t* words, uint64_t value) const {
        for (uint32_t k = 0; k < bits; k++)
            words[(bit + k) / 32] |= uint32_t(value >> k & 1) << (bit + k) % 32;
    }
};

// Every member is a uint32, in the order of sim.native.wire.
struct Wire {
    // Opcodes.
    uint32_t lookups, vectors, queries, gpu_vectors, dense_vectors_op, lookup_requests, pooled,
        credit, dense_requests, results, result_part, errors;
    // Fields: of a header beat, a record, a tag beat of pooled vectors, one of a part of a result.
    Field opcode, source, destination, step, credit_field, count, version;
    Field lookup_row, lookup_table, lookup_landing, query_row, query_table, query_kind,
        sample_number, sample_slots_field, dense_sample, dense_landing, error_sample, error_status;
    Field tag_sample, tag_first, tag_last, part_sample, part_first, part_last;
    uint32_t version_value, beat_words, last_bit, keep_word, keep_words;
};

// Record `k` behind the header beat of a packet.
inline uint64_t record_at(const Wire& wire, const uint32_t* words, uint64_t k) {
    const uint32_t* record = words + (1 + k / RECORDS_PER_BEAT) * wire.beat_words
                             + 2 * (k % RECORDS_PER_BEAT);
    return record[0] | uint64_t{record[1]} << 32;
}

}  // namespace ember
