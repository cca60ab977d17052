// Flags and the clock that the kernels share. A flag is a word in page-locked host memory or in the
// GPU's own; whoever sees it set also sees what was written before. Needs compute capability 7.0.
#pragma once

#ifdef __CUDACC__

__device__ inline unsigned load_flag(const unsigned *flag) {
    unsigned value;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
    return value;
}

__device__ inline unsigned long long load_pair(const unsigned long long *pair) {
    unsigned long long value;
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(pair) : "memory");
    return value;
}

__device__ inline void store_flag(unsigned *flag, unsigned value) {
    asm volatile("st.release.sys.global.u32 [%0], %1;" : : "l"(flag), "r"(value) : "memory");
}

__device__ inline void store_pair(unsigned long long *pair, unsigned long long value) {
    asm volatile("st.release.sys.global.u64 [%0], %1;" : : "l"(pair), "l"(value) : "memory");
}

// Nanoseconds of the GPU's clock, for time limits only: it may advance in steps of a microsecond.
__device__ inline unsigned long long nanoseconds() {
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

#endif
