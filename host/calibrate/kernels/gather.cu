// Copies rows of a table, chosen by number, side by side. A row is `width` float4.

extern "C" __global__ void gather(const float4 *table, const long long *rows, float4 *out,
                                  unsigned count, unsigned width) {
    const unsigned long long all = (unsigned long long)count * width;
    const unsigned long long stride = (unsigned long long)gridDim.x * blockDim.x;
    for (unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; i < all;
         i += stride)
        out[i] = table[(unsigned long long)rows[i / width] * width + i % width];
}
