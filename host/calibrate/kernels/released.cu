// The first node of a graph that waits for a flag in memory: launched beforehand, released later.
#include "flags.cuh"

extern "C" __global__ void released(const unsigned *bell, unsigned value,
                                    unsigned long long limit_ns) {
    const unsigned long long start = nanoseconds();
    while (load_flag(bell) != value && nanoseconds() - start < limit_ns) {}
}
