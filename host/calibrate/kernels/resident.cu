// A kernel that stays on the GPU, polls a mailbox in host memory and gathers the rows of each list
// that arrives there, without a launch.
//
// The host rings by one store of 64 bits: the list's number (never 0, never that of the last list)
// in the lower half, its rows in the upper. Number 0xFFFFFFFF ends the kernel; so does silence for
// `limit_ns`. One block polls the host's memory and passes the bell on through the GPU's, which the
// others poll. The last block to end a list sets `reply` to its number. List n begins at
// lists[(n % turns) * count].
#include "flags.cuh"

// `bell`: 64 bits in GPU memory, 0 at first; `ended`: a word there, 0 at first.
extern "C" __global__ void resident(const unsigned long long *mailbox, unsigned *reply,
                                    const long long *lists, const float4 *table, float4 *out,
                                    unsigned turns, unsigned width, unsigned long long *bell,
                                    unsigned *ended, unsigned long long limit_ns) {
    const unsigned last = 0xFFFFFFFFu;
    __shared__ unsigned long long rung;
    unsigned seen = 0;
    for (;;) {
        if (threadIdx.x == 0) {
            const unsigned long long *source = blockIdx.x == 0 ? mailbox : bell;
            // The others wait a little longer, so that it is the first that gives up.
            const unsigned long long limit = blockIdx.x == 0 ? limit_ns : 2 * limit_ns;
            const unsigned long long start = nanoseconds();
            unsigned long long next = load_pair(source);
            while ((unsigned)next == seen) {
                if (nanoseconds() - start >= limit) {
                    next = last;
                    break;
                }
                next = load_pair(source);
            }
            if (blockIdx.x == 0) store_pair(bell, next);
            rung = next;
        }
        __syncthreads();
        const unsigned number = (unsigned)rung;
        if (number == last) return;
        seen = number;
        const unsigned count = (unsigned)(rung >> 32);
        const long long *rows = lists + (unsigned long long)(number % turns) * count;
        const unsigned long long all = (unsigned long long)count * width;
        const unsigned long long stride = (unsigned long long)gridDim.x * blockDim.x;
        for (unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
             i < all; i += stride)
            out[i] = table[(unsigned long long)rows[i / width] * width + i % width];
        __threadfence_system();
        __syncthreads();
        if (threadIdx.x == 0 && atomicAdd(ended, 1u) == gridDim.x - 1) {
            *ended = 0;
            __threadfence_system();
            store_flag(reply, number);
        }
    }
}
