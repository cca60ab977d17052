// Rows of embedding tables, pooled and packed on the way: sums in the order of the bag.
// Compiled with -ffp-contract=off.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "rows.h"

// Where the fields of a lookup record and of a packet's header lie.
struct Wire {
    uint32_t row_bits, table_shift, table_bits, tag_shift;
    uint32_t beat_bytes, tags_per_beat, step_byte, count_byte;
};

namespace {

constexpr uint64_t mask(uint32_t bits) { return (uint64_t{1} << bits) - 1; }

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

// pooled [bags][dimension] of keys joined in bag order; false when a key is outside the model.
EXPORT bool ember_pooled(const Rows* rows, const int64_t* tables, const int64_t* numbers,
                         const int64_t* lengths, uint64_t bags, bool mean, float* pooled) {
    const uint64_t dimension = rows->dimension;
    std::vector<float> next(dimension);
    for (uint64_t bag = 0; bag < bags; bag++, pooled += dimension) {
        if (!lengths[bag]) std::fill_n(pooled, dimension, 0.0f);
        for (int64_t place = 0; place < lengths[bag]; place++, tables++, numbers++) {
            if (!inside(*rows, *tables, *numbers)) return false;
            if (place == 0) {
                fill(*rows, *tables, *numbers, pooled);
                continue;
            }
            fill(*rows, *tables, *numbers, next.data());
            for (uint64_t d = 0; d < dimension; d++) pooled[d] += next[d];
        }
        if (mean && lengths[bag] > 1)
            for (uint64_t d = 0; d < dimension; d++) pooled[d] /= static_cast<float>(lengths[bag]);
    }
    return true;
}

// Packets of at most `most` vectors that answer lookup records, one behind the other: `header` with
// step and count, tags, vectors, zeros in what is left of a beat. False when a key is outside the
// model.
EXPORT bool ember_row_packets(const Rows* rows, const Wire* wire, const char* header, uint16_t step,
                              const uint64_t* records, uint64_t count, uint64_t most,
                              uint8_t* packets) {
    const uint64_t beat = wire->beat_bytes, bytes = rows->dimension * sizeof(float);
    for (uint64_t first = 0; first < count; first += most) {
        const uint16_t held = static_cast<uint16_t>(std::min(most, count - first));
        std::memcpy(packets, header, beat);
        std::memcpy(packets + wire->step_byte, &step, sizeof step);
        std::memcpy(packets + wire->count_byte, &held, sizeof held);
        uint8_t* tags = packets + beat;
        uint8_t* vectors = tags + (held + wire->tags_per_beat - 1) / wire->tags_per_beat * beat;
        uint8_t* end = vectors + (held * bytes + beat - 1) / beat * beat;
        std::memset(tags, 0, vectors - tags);
        std::memset(vectors + held * bytes, 0, end - vectors - held * bytes);
        for (uint16_t at = 0; at < held; at++) {
            const uint64_t record = records[first + at];
            const uint64_t row = record & mask(wire->row_bits);
            const uint64_t table = record >> wire->table_shift & mask(wire->table_bits);
            if (!inside(*rows, table, row)) return false;
            const uint16_t tag = static_cast<uint16_t>(record >> wire->tag_shift);
            std::memcpy(tags + at * sizeof tag, &tag, sizeof tag);
            fill(*rows, table, row, reinterpret_cast<float*>(vectors + at * bytes));
        }
        packets = end;
    }
    return true;
}
