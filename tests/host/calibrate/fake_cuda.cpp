// As much of libcuda as the calibration calls, on the CPU: streams are threads, graphs are lists,
// and the kernels of host/calibrate/kernels are compiled as C++. A block's threads run one after the
// other, the first last, on one thread of the CPU; so a kernel may wait for its block (__syncthreads)
// only to let its first thread end, or with blocks of one thread. Blocks run side by side.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

struct float4 { float x, y, z, w; };
struct Index { unsigned x; };
static thread_local Index threadIdx, blockIdx, blockDim, gridDim;

#define __global__
#define __device__
#define __shared__ static thread_local
#define __syncthreads()
static void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
static unsigned atomicAdd(unsigned *at, unsigned by) {
    return __atomic_fetch_add(at, by, __ATOMIC_SEQ_CST);
}
static unsigned load_flag(const unsigned *flag) {
    std::this_thread::yield();
    return __atomic_load_n(flag, __ATOMIC_ACQUIRE);
}
static unsigned long long load_pair(const unsigned long long *pair) {
    std::this_thread::yield();
    return __atomic_load_n(pair, __ATOMIC_ACQUIRE);
}
static void store_flag(unsigned *flag, unsigned value) {
    __atomic_store_n(flag, value, __ATOMIC_RELEASE);
}
static void store_pair(unsigned long long *pair, unsigned long long value) {
    __atomic_store_n(pair, value, __ATOMIC_RELEASE);
}
static unsigned long long nanoseconds() {
    using namespace std::chrono;
    return duration_cast<std::chrono::nanoseconds>(
        steady_clock::now().time_since_epoch()).count();
}

static float __fmul_rn(float a, float b) { return a * b; }
static float __fadd_rn(float a, float b) { return a + b; }

#include "embedding.cu"
#include "expand.cu"
#include "gather.cu"
#include "released.cu"
#include "resident.cu"
#include "stores.cu"
#include "touch.cu"

namespace {

using Work = std::function<void()>;
using Kernel = std::function<Work(unsigned, unsigned, void **)>;

void run_grid(unsigned grid, unsigned block, const Work &thread) {
    auto run_block = [=](unsigned number) {
        gridDim = {grid};
        blockDim = {block};
        blockIdx = {number};
        for (unsigned i = block; i-- > 0;) {
            threadIdx = {i};
            thread();
        }
    };
    std::vector<std::thread> blocks;
    for (unsigned number = 1; number < grid; ++number) blocks.emplace_back(run_block, number);
    run_block(0);
    for (auto &each : blocks) each.join();
}

template <class... A, std::size_t... I>
Kernel kernel_of(void (*function)(A...), std::index_sequence<I...>) {
    return [function](unsigned grid, unsigned block, void **arguments) -> Work {
        // The arguments are read at the launch, as the driver does.
        const std::tuple<A...> values(*static_cast<A *>(arguments[I])...);
        return [=] { run_grid(grid, block, [=] { std::apply(function, values); }); };
    };
}
template <class... A> Kernel kernel(void (*function)(A...)) {
    return kernel_of(function, std::index_sequence_for<A...>{});
}

std::map<std::string, Kernel> kernels = {
    {"embedding", kernel(embedding)}, {"expand", kernel(expand)},
    {"gather", kernel(gather)},   {"released", kernel(released)},
    {"resident", kernel(resident)},   {"stores", kernel(stores)}, {"touch", kernel(touch)},
    {"nothing", kernel(nothing)}};

struct Stream {
    std::deque<Work> queue;
    std::vector<Work> *captured = nullptr;
    bool busy = false;
    std::mutex mutex;
    std::condition_variable changed;

    Stream() {
        std::thread([this] {
            for (;;) {
                std::unique_lock<std::mutex> lock(mutex);
                changed.wait(lock, [this] { return !queue.empty(); });
                Work work = std::move(queue.front());
                queue.pop_front();
                busy = true;
                lock.unlock();
                work();
                lock.lock();
                busy = false;
                changed.notify_all();
            }
        }).detach();
    }
    int add(Work work) {
        std::lock_guard<std::mutex> lock(mutex);
        if (captured) {
            captured->push_back(std::move(work));
        } else {
            queue.push_back(std::move(work));
            changed.notify_all();
        }
        return 0;
    }
    int wait() {
        std::unique_lock<std::mutex> lock(mutex);
        if (captured) return 900;  // cudaErrorStreamCaptureUnsupported
        changed.wait(lock, [this] { return queue.empty() && !busy; });
        return 0;
    }
};

Stream &stream_of(void *handle) {
    static Stream *other = new Stream;
    return handle ? *static_cast<Stream *>(handle) : *other;
}

}  // namespace

extern "C" {

int cuInit(unsigned) { return 0; }
int cuDriverGetVersion(int *version) { return *version = 13000, 0; }
int cuStreamCreate(void **stream, unsigned flags) {
    if (flags != 1) return 1;
    return *stream = new Stream, 0;
}
int cuModuleLoadData(void **module, const void *image) {
    // What NVRTC makes is machine code, an ELF file, or PTX, a text.
    const char *text = static_cast<const char *>(image);
    if (std::memcmp(text, "\177ELF", 4) != 0 && std::strstr(text, ".target") == nullptr) return 200;
    return *module = const_cast<void *>(image), 0;
}
int cuModuleGetFunction(void **function, void *, const char *name) {
    auto found = kernels.find(name);
    if (found == kernels.end()) return 500;
    return *function = &found->second, 0;
}
int cuLaunchKernel(void *function, unsigned grid, unsigned y, unsigned z, unsigned block, unsigned v,
                   unsigned w, unsigned shared, void *stream, void **arguments, void **extra) {
    if (y != 1 || z != 1 || v != 1 || w != 1 || shared || extra || !grid || !block || block > 1024)
        return 1;
    return stream_of(stream).add((*static_cast<Kernel *>(function))(grid, block, arguments));
}
int cuStreamSynchronize(void *stream) { return stream_of(stream).wait(); }
int cuStreamBeginCapture_v2(void *stream, int) {
    return stream_of(stream).captured = new std::vector<Work>, 0;
}
int cuStreamEndCapture(void *stream, void **graph) {
    Stream &each = stream_of(stream);
    *graph = each.captured;
    each.captured = nullptr;
    return *graph ? 0 : 901;
}
int cuGraphInstantiateWithFlags(void **executable, void *graph, unsigned long long flags) {
    if (flags) return 1;
    return *executable = graph, 0;
}
int cuGraphUpload(void *, void *) { return 0; }
int cuGraphLaunch(void *graph, void *stream) {
    for (const Work &work : *static_cast<std::vector<Work> *>(graph)) stream_of(stream).add(work);
    return 0;
}
// Branches are done one after the other, which a graph may.
int cuGraphCreate(void **graph, unsigned flags) {
    if (flags) return 1;
    return *graph = new std::vector<Work>, 0;
}
int cuGraphAddChildGraphNode(void **node, void *graph, const void *before, size_t count, void *child) {
    if (!before != !count) return 1;
    auto &whole = *static_cast<std::vector<Work> *>(graph);
    for (const Work &work : *static_cast<std::vector<Work> *>(child)) whole.push_back(work);
    return *node = graph, 0;
}
struct Wait {  // CUstreamBatchMemOpParams of a wait
    unsigned operation;
    uint64_t address, value;
    unsigned flags;
};
struct Waits {  // CUDA_BATCH_MEM_OP_NODE_PARAMS
    void *context;
    unsigned count;
    const char *list;
    unsigned flags;
};
int cuGraphAddBatchMemOpNode(void **node, void *graph, const void *before, size_t count,
                             const Waits *waits) {
    if (!before != !count || waits->count != 1 || waits->flags || !waits->context) return 1;
    Wait wait;
    std::memcpy(&wait, waits->list, sizeof wait);
    if (wait.operation != 1 || wait.flags != 1) return 1;  // a word of 32 bits, equal
    static_cast<std::vector<Work> *>(graph)->push_back([=] {
        while (load_flag(reinterpret_cast<unsigned *>(wait.address)) != unsigned(wait.value)) {}
    });
    return *node = graph, 0;
}
int cuCtxGetCurrent(void **context) {
    static int one;
    return *context = &one, 0;
}

// Does what the tests give in place of a graph, in the stream.
int doInStream(void *function, void *stream) {
    return stream_of(stream).add([=] { reinterpret_cast<void (*)()>(function)(); });
}

// NVRTC looks whether the driver has something for it.
int cuGetExportTable(const void **table, const void *) { return *table = nullptr, 500; }

int cuGetProcAddress_v2(const char *name, void **function, int, uint64_t, int *status) {
    static const std::map<std::string, void *> known = {
        {"cuInit", (void *)cuInit},
        {"cuDriverGetVersion", (void *)cuDriverGetVersion},
        {"cuStreamCreate", (void *)cuStreamCreate},
        {"cuModuleLoadData", (void *)cuModuleLoadData},
        {"cuModuleGetFunction", (void *)cuModuleGetFunction},
        {"cuLaunchKernel", (void *)cuLaunchKernel},
        {"cuStreamSynchronize", (void *)cuStreamSynchronize},
        {"cuStreamBeginCapture", (void *)cuStreamBeginCapture_v2},
        {"cuStreamEndCapture", (void *)cuStreamEndCapture},
        {"cuGraphInstantiate", (void *)cuGraphInstantiateWithFlags},
        {"cuGraphInstantiateWithFlags", (void *)cuGraphInstantiateWithFlags},
        {"cuGraphUpload", (void *)cuGraphUpload},
        {"cuGraphLaunch", (void *)cuGraphLaunch},
        {"cuGraphCreate", (void *)cuGraphCreate},
        {"cuGraphAddChildGraphNode", (void *)cuGraphAddChildGraphNode},
        {"cuGraphAddBatchMemOpNode", (void *)cuGraphAddBatchMemOpNode},
        {"cuCtxGetCurrent", (void *)cuCtxGetCurrent},
        {"cuGetProcAddress", (void *)cuGetProcAddress_v2}};
    auto found = known.find(name);
    *function = found == known.end() ? nullptr : found->second;
    if (status) *status = *function ? 0 : 1;
    return *function ? 0 : 500;
}
int cuGetProcAddress(const char *name, void **function, int version, uint64_t flags) {
    return cuGetProcAddress_v2(name, function, version, flags, nullptr);
}

}  // extern "C"
