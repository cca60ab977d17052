// The check of results: bags pooled in order, and linear layers in float32. Every product and every
// sum is rounded; sums start at the first product, in ascending order of the index, the bias last.
// A NaN is 0x7FC00000.
// Reference, bit for bit: host.dlrm.embedding and host.dlrm.mlp.linear_fixed.
// Compiled with -ffp-contract=off: a fused multiply-add would round once instead of twice.
#include <algorithm>
#include <cstring>
#include <vector>

#include "rows.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

using ember::Rows;

namespace {

// As many sums as fit the registers. Compilers split 512-bit vectors by default.
#ifdef __AVX512F__
constexpr int ROWS = 8;
#define WHOLE __attribute__((min_vector_width(512)))
#else
constexpr int ROWS = 4;
#define WHOLE
#endif
constexpr int LANES = 16, VECTORS = 2, COLUMNS = LANES * VECTORS;
typedef float Vector __attribute__((vector_size(LANES * sizeof(float))));

// `rows` samples times one panel of COLUMNS outputs, weights [depth][COLUMNS].
template <int rows>
WHOLE void tile(const float* inputs, uint64_t depth, const Vector* panel, const float* biases,
          float* result) {
    Vector sums[rows][VECTORS];
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < VECTORS; v++) sums[r][v] = panel[v] * inputs[r * depth];
    for (uint64_t k = 1; k < depth; k++)
        for (int v = 0; v < VECTORS; v++)
            for (int r = 0; r < rows; r++)
                sums[r][v] += panel[k * VECTORS + v] * inputs[r * depth + k];
    Vector bias[VECTORS];
    std::memcpy(bias, biases, sizeof bias);
    for (int r = 0; r < rows; r++) {
        for (int v = 0; v < VECTORS; v++) sums[r][v] += bias[v];
        std::memcpy(result + r * COLUMNS, sums[r], sizeof sums[r]);
        ember::canonical(result + r * COLUMNS, COLUMNS);
    }
}

}  // namespace

// inputs [count][depth], weights [depth][width], biases [width], outputs [count][width].
EXPORT void ember_linear(
    const float* inputs, uint64_t count, uint64_t depth, const float* weights, uint64_t width,
    const float* biases, float* outputs) {
    std::vector<Vector> panel(depth * VECTORS);
    for (uint64_t left = 0; left < width; left += COLUMNS) {
        const uint64_t used = std::min<uint64_t>(COLUMNS, width - left);
        float bias[COLUMNS] = {}, result[ROWS * COLUMNS];
        std::memcpy(bias, biases + left, used * sizeof(float));
        std::fill(panel.begin(), panel.end(), Vector{});
        for (uint64_t k = 0; k < depth; k++)
            std::memcpy(&panel[k * VECTORS], weights + k * width + left, used * sizeof(float));
        for (uint64_t row = 0; row < count; row += ROWS) {
            const uint64_t rows = std::min<uint64_t>(ROWS, count - row);
            if (rows == ROWS) {
                tile<ROWS>(inputs + row * depth, depth, panel.data(), bias, result);
            } else {
                for (uint64_t r = 0; r < rows; r++)
                    tile<1>(inputs + (row + r) * depth, depth, panel.data(), bias,
                            result + r * COLUMNS);
            }
            for (uint64_t r = 0; r < rows; r++)
                std::memcpy(outputs + (row + r) * width + left, result + r * COLUMNS,
                            used * sizeof(float));
        }
    }
}

// pooled [bags][dimension] of keys concatenated in bag order; false if a key is outside the model.
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
        ember::end_bag(pooled, dimension, lengths[bag], mean);
    }
    return true;
}
