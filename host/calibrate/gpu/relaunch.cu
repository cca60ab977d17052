// Graphs that the GPU launches itself: a program by itself, since device code that launches graphs
// must be linked with CUDA's device runtime, which NVRTC alone cannot do. nvcc -rdc=true builds it.
//
//     relaunch NODES ROUNDS
//
// A graph of one kernel polls a word in page-locked host memory, launches a graph of NODES kernels
// for each number that the host stores there (fire and forget), and now and then itself again. The
// first and the last kernel of a graph store the number to host memory. Prints a line per step:
// microseconds from the host's store until it sees the first and the last.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#include "../kernels/flags.cuh"

static const unsigned LAST = 0xFFFFFFFFu;
static const unsigned COPIES = 8;  // of the graph: one that still runs cannot be launched again
static const unsigned TURNS = 64;  // launches of a graph's kernel, of at most 120 that are allowed
static const unsigned long long LIMIT_NS = 2000000000ull;

#define CHECK(call)                                                                          \
    do {                                                                                     \
        const cudaError_t error = (call);                                                    \
        if (error != cudaSuccess) {                                                          \
            std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error));              \
            return 1;                                                                        \
        }                                                                                    \
    } while (0)

struct Words {  // each in a line of its own
    unsigned bell, pad0[31], first, pad1[31], last, pad2[31];
};

__device__ cudaGraphExec_t graphs[COPIES];
__device__ unsigned step;  // the number that the running graph stores

__global__ void nothing() {}
__global__ void tell(unsigned *word, const unsigned *number) { store_flag(word, *number); }

__global__ void schedule(const unsigned *bell) {
    for (unsigned turn = 0; turn < TURNS; ++turn) {
        const unsigned long long start = nanoseconds();
        unsigned next = load_flag(bell);
        while (next == step)
            if (nanoseconds() - start > LIMIT_NS) return;
            else next = load_flag(bell);
        if (next == LAST) return;
        step = next;
        __threadfence();
        cudaGraphLaunch(graphs[next % COPIES], cudaStreamGraphFireAndForget);
    }
    cudaGraphLaunch(cudaGetCurrentGraphExec(), cudaStreamGraphTailLaunch);
}

static double microseconds() {
    using namespace std::chrono;
    return duration<double, std::micro>(steady_clock::now().time_since_epoch()).count();
}

static bool await(const unsigned *word, unsigned value) {
    const double start = microseconds();
    for (unsigned looks = 0; __atomic_load_n(word, __ATOMIC_ACQUIRE) != value; ++looks)
        if (looks % 1024 == 1023 && microseconds() - start > 2e6) return false;
    return true;
}

int main(int count, char **argument) {
    if (count != 3) return 2;
    const int nodes = std::atoi(argument[1]), rounds = std::atoi(argument[2]);
    Words *words;
    unsigned *number;
    cudaStream_t stream;
    CHECK(cudaHostAlloc(&words, sizeof *words, cudaHostAllocMapped));
    *words = {};
    CHECK(cudaGetSymbolAddress(reinterpret_cast<void **>(&number), step));
    CHECK(cudaStreamCreate(&stream));
    cudaGraphExec_t made[COPIES], scheduler;
    for (auto &each : made) {
        cudaGraph_t graph;
        CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
        for (int node = 0; node < nodes; ++node)
            if (node == 0) tell<<<1, 1, 0, stream>>>(&words->first, number);
            else if (node < nodes - 1) nothing<<<1, 32, 0, stream>>>();
            else tell<<<1, 1, 0, stream>>>(&words->last, number);
        CHECK(cudaStreamEndCapture(stream, &graph));
        CHECK(cudaGraphInstantiate(&each, graph, cudaGraphInstantiateFlagDeviceLaunch));
        CHECK(cudaGraphUpload(each, stream));
    }
    CHECK(cudaMemcpyToSymbol(graphs, made, sizeof made));
    {
        cudaGraph_t graph;
        CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
        schedule<<<1, 1, 0, stream>>>(&words->bell);
        CHECK(cudaStreamEndCapture(stream, &graph));
        CHECK(cudaGraphInstantiate(&scheduler, graph, cudaGraphInstantiateFlagDeviceLaunch));
        CHECK(cudaGraphUpload(scheduler, stream));
    }
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaGraphLaunch(scheduler, stream));
    std::vector<double> first, last;
    bool seen = true;
    for (int round = 1; round <= rounds && seen; ++round) {
        const double start = microseconds();
        __atomic_store_n(&words->bell, static_cast<unsigned>(round), __ATOMIC_RELEASE);
        seen = await(&words->first, round);
        first.push_back(microseconds() - start);
        seen = seen && (nodes == 1 || await(&words->last, round));
        last.push_back(microseconds() - start);
    }
    __atomic_store_n(&words->bell, LAST, __ATOMIC_RELEASE);
    CHECK(cudaStreamSynchronize(stream));
    if (!seen) {
        std::fprintf(stderr, "a graph did not store its number in time\n");
        return 1;
    }
    for (std::size_t i = 0; i < first.size(); ++i) std::printf("%.3f %.3f\n", first[i], last[i]);
    return 0;
}
