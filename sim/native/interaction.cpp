// The dot interaction of host.dlrm.interaction, 16 samples at a time, one in each lane: products of a
// slice of 16 values through a tree that adds neighbours, slices in ascending order.
// Compiled with -ffp-contract=off: every product is rounded before it is added.
#include <algorithm>
#include <cstdint>
#include <vector>

namespace {

constexpr int SAMPLES = 16, SLICE = 16;
typedef float Vector __attribute__((vector_size(SAMPLES * sizeof(float))));

// Sum of `width` products from neighbours up: ((0+1)+(2+3)) + ...
template <int width>
inline Vector tree(const Vector* a, const Vector* b) {
    if constexpr (width == 1) {
        return *a * *b;
    } else {
        return tree<width / 2>(a, b) + tree<width / 2>(a + width / 2, b + width / 2);
    }
}

inline Vector dot(const Vector* a, const Vector* b, uint64_t lanes) {
    Vector sum = tree<SLICE>(a, b);
    for (uint64_t low = SLICE; low < lanes; low += SLICE) sum += tree<SLICE>(a + low, b + low);
    return sum;
}

}  // namespace

// dense [count][dimension], pooled [count][tables][dimension], results [count][width]: the dense
// vector, then the dot of each pair (i, j) of [dense; pooled], j < i or, with itself, j <= i.
extern "C" __attribute__((visibility("default"))) void ember_dots(
    const float* dense, const float* pooled, uint64_t count, uint64_t tables, uint64_t dimension,
    bool itself, float* results) {
    const uint64_t vectors = tables + 1, lanes = (dimension + SLICE - 1) / SLICE * SLICE;
    const uint64_t width = dimension + vectors * (itself ? vectors + 1 : vectors - 1) / 2;
    // Lanes beyond the dimension stay +0.
    std::vector<Vector> z(vectors * lanes, Vector{});
    for (uint64_t first = 0; first < count; first += SAMPLES) {
        const int held = static_cast<int>(std::min<uint64_t>(SAMPLES, count - first));
        for (int s = 0; s < held; s++) {
            const float* sample = dense + (first + s) * dimension;
            std::copy_n(sample, dimension, results + (first + s) * width);
            for (uint64_t v = 0; v < vectors; v++) {
                for (uint64_t d = 0; d < dimension; d++) z[v * lanes + d][s] = sample[d];
                sample = pooled + ((first + s) * tables + v) * dimension;
            }
        }
        float* column = results + first * width + dimension;
        for (uint64_t i = itself ? 0 : 1; i < vectors; i++) {
            for (uint64_t j = 0; j < (itself ? i + 1 : i); j++, column++) {
                const Vector sum = dot(&z[i * lanes], &z[j * lanes], lanes);
                for (int s = 0; s < held; s++) column[s * width] = sum[s];
            }
        }
    }
}
