// Copies `size` float4 between host and GPU memory by loads and stores, then sets a flag: what a
// copy engine would do for a small copy, without its start.
#include "flags.cuh"

extern "C" __global__ void stores(const float4 *from, float4 *to, unsigned size, unsigned *done,
                                  unsigned *flag, unsigned value) {
    const unsigned stride = gridDim.x * blockDim.x;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < size; i += stride) to[i] = from[i];
    __threadfence_system();
    __syncthreads();
    // The last block to end says so; `done` is 0 again for the next copy.
    if (threadIdx.x == 0 && atomicAdd(done, 1u) == gridDim.x - 1) {
        *done = 0;
        __threadfence_system();
        store_flag(flag, value);
    }
}
