// Rows of embedding tables. References: host.dlrm.rows.row_values, with the same 64-bit hashes and the
// same float64 value rounded once; host.wire.rows.GivenRows.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>

#include "formats.h"
#include "mix.h"

namespace ember {

// 2u + 1 - 2^24 is exact in a 32-bit integer, as it is in numpy's float64.
inline float value(uint64_t bits, double scale) {
    return static_cast<float>(static_cast<double>(static_cast<int32_t>(2 * bits) - 0xFFFFFF)
                              * scale);
}

inline bool inside(const Rows& rows, uint64_t table, uint64_t row) {
    return table < rows.tables && row < static_cast<uint64_t>(rows.sizes[table]);
}

inline void copy(const Rows& rows, uint64_t table, uint64_t row, float* __restrict vector) {
    const int64_t *strides = rows.strides + 2 * table, length = rows.lengths[table];
    const float* from = rows.given[table] + static_cast<int64_t>(row) * strides[0];
    if (strides[1] == 1) std::copy_n(from, length, vector);
    else
        for (int64_t d = 0; d < length; d++) vector[d] = from[d * strides[1]];
    std::fill(vector + length, vector + rows.dimension, 0.0f);
}

inline void fill(const Rows& rows, uint64_t table, uint64_t row, float* __restrict vector) {
    if (rows.given) return copy(rows, table, row, vector);
    const uint64_t number = row + static_cast<uint64_t>(rows.firsts[table]);
    const uint64_t base = mix64(number ^ rows.seeds[table]), *steps = rows.steps + rows.pairs[table];
    const double scale = rows.scales[table];
    const uint64_t length = rows.lengths[table];
    for (uint64_t pair = 0; pair < length / 2; pair++) {
        const uint64_t hash = mix64(base + steps[pair]);
        vector[2 * pair] = value(hash >> 40, scale);
        vector[2 * pair + 1] = value(hash >> 16 & 0xFFFFFF, scale);
    }
    if (length % 2) vector[length - 1] = value(mix64(base + steps[length / 2]) >> 40, scale);
    std::fill(vector + length, vector + rows.dimension, 0.0f);
}

// Every NaN becomes 0x7FC00000. Reference: host.dlrm.float32.canonical.
inline void canonical(float* __restrict values, uint64_t count) {
    for (uint64_t k = 0; k < count; k++)
        if (std::isnan(values[k])) values[k] = std::numeric_limits<float>::quiet_NaN();
}

// End the sum of `length` vectors, as host.dlrm.dlrm.pool does; a sum of one vector is kept
// unchanged.
inline void end_bag(float* __restrict bag, uint64_t dimension, int64_t length, bool mean) {
    if (mean && length > 1)
        for (uint64_t d = 0; d < dimension; d++) bag[d] /= static_cast<float>(length);
    if (mean || length > 1) canonical(bag, dimension);
}

}  // namespace ember
