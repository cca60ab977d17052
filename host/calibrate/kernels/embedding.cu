// Looks up and pools the bags of all tables at once: one kernel for the whole embedding stage.
// The tables lie one after the other in `rows`, that of number t from row `first[t]`; bag b is that
// of sample b / tables and table b % tables and has the keys offsets[b] to offsets[b + 1]. Rows are
// `width` float4, added in the order of their keys; an empty bag pools to +0.

extern "C" __global__ void embedding(const float4 *rows, const long long *first,
                                     const long long *keys, const int *offsets, float4 *out,
                                     unsigned bags, unsigned tables, unsigned width) {
    const unsigned long long all = (unsigned long long)bags * width;
    const unsigned long long stride = (unsigned long long)gridDim.x * blockDim.x;
    for (unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; i < all;
         i += stride) {
        const unsigned bag = (unsigned)(i / width), lane = (unsigned)(i % width);
        const float4 *table = rows + (unsigned long long)first[bag % tables] * width + lane;
        const int begin = offsets[bag], end = offsets[bag + 1];
        float4 sum = {0.0f, 0.0f, 0.0f, 0.0f};
        for (int k = begin; k < end; ++k) {
            const float4 row = table[(unsigned long long)keys[k] * width];
            if (k == begin) {
                sum = row;
            } else {
                sum.x += row.x;
                sum.y += row.y;
                sum.z += row.z;
                sum.w += row.w;
            }
        }
        out[i] = sum;
    }
}
