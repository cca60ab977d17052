// What EN's graph does with the different vectors of a share: expands them, pools each bag in the
// order of its slots and interacts, one kernel for all. A block takes a sample at a time.
//
// Sample s has `tables` bags of `pooled` slots; slot i names its vector by index[i], 16 bits. Vectors
// are `width` float4. The result of a sample is its dense vector, then the dot products of all pairs
// of its vectors, the dense one first, row by row below the diagonal. Products are added in order.

#define MOST_VECTORS 40
#define MOST_VALUES 64

extern "C" __global__ void expand(const float4 *vectors, const unsigned short *index,
                                  const float4 *dense, float *out, unsigned samples,
                                  unsigned tables, unsigned pooled, unsigned width) {
    // One value more than a vector has, so that threads of a warp read different banks.
    __shared__ float held[MOST_VECTORS * (MOST_VALUES + 1)];
    const unsigned values = 4 * width, apart = values + 1, pairs = tables * (tables + 1) / 2;
    for (unsigned sample = blockIdx.x; sample < samples; sample += gridDim.x) {
        for (unsigned i = threadIdx.x; i < (tables + 1) * width; i += blockDim.x) {
            const unsigned vector = i / width, lane = i % width;
            float4 sum;
            if (vector == 0) {
                sum = dense[(unsigned long long)sample * width + lane];
            } else {
                const unsigned short *slots =
                    index + ((unsigned long long)sample * tables + vector - 1) * pooled;
                sum = vectors[(unsigned long long)slots[0] * width + lane];
                for (unsigned k = 1; k < pooled; ++k) {
                    const float4 row = vectors[(unsigned long long)slots[k] * width + lane];
                    sum.x += row.x;
                    sum.y += row.y;
                    sum.z += row.z;
                    sum.w += row.w;
                }
            }
            float *to = held + vector * apart + 4 * lane;
            to[0] = sum.x;
            to[1] = sum.y;
            to[2] = sum.z;
            to[3] = sum.w;
        }
        __syncthreads();
        float *result = out + (unsigned long long)sample * (values + pairs);
        for (unsigned i = threadIdx.x; i < values; i += blockDim.x) result[i] = held[i];
        for (unsigned p = threadIdx.x; p < pairs; p += blockDim.x) {
            unsigned row = 1, before = 0;  // pairs of the rows before
            while (before + row <= p) before += row++;
            const float *left = held + row * apart, *right = held + (p - before) * apart;
            float sum = __fmul_rn(left[0], right[0]);
            for (unsigned k = 1; k < values; ++k)
                sum = __fadd_rn(sum, __fmul_rn(left[k], right[k]));
            result[values + p] = sum;
        }
        __syncthreads();
    }
}
