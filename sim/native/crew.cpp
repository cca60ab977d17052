// A thread pool that advances the nodes of a cluster by a quantum. Reference: sim.cluster.crew.Crew,
// whose threads contend for Python's lock with each other and with the background threads.
#include <atomic>
#include <cstdint>
#include <deque>
#include <system_error>
#include <thread>
#include <vector>

namespace {

// Polls before a waiting thread sleeps: half a millisecond to a millisecond. Waking up takes a
// twentieth of a quantum, and the next one comes soon.
constexpr int LOOKS = 1 << 14;
// Parts of a quantum. A thread runs one part of every node that it can claim before the next part, so
// that the wait at the end is short: mostly one part of one node. Many parts would change nodes so
// often that a node's data leave the processor's caches.
constexpr uint64_t PARTS = 3;

void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

// Wait until `number` is not `old`, and return it.
uint64_t changed(const std::atomic<uint64_t>& number, uint64_t old) {
    for (int look = 0; look < LOOKS; look++) {
        const uint64_t now = number.load(std::memory_order_acquire);
        if (now != old) return now;
        // Let other threads use this processor.
        if (look % 64 == 63) std::this_thread::yield();
        else relax();
    }
    number.wait(old, std::memory_order_acquire);
    return number.load(std::memory_order_acquire);
}

typedef uint64_t Advance(void* host, uint64_t end, bool timed);

struct Node {
    void* host;
    Advance* advance;
    uint64_t count = 0;              // what the last advance returned
    std::atomic<uint64_t> state{0};  // twice the parts done, plus one while a thread has claimed it

    Node(void* host, Advance* advance) : host(host), advance(advance) {}
};

class Crew {
public:
    Crew(uint64_t threads, uint64_t cycle)
        : threads_(threads), parts_(threads > 1 ? PARTS : 1), cycle_(cycle) {
        try {
            for (uint64_t own = 1; own < threads; own++)
                helpers_.emplace_back([this, own] { help(own); });
        } catch (...) {
            dismiss();
            throw;
        }
    }
    ~Crew() { dismiss(); }
    Crew(const Crew&) = delete;

    // Not while nodes are being advanced.
    void add(void* host, Advance* advance) { nodes_.emplace_back(host, advance); }

    void advance(uint64_t end, bool timed, uint64_t* counts) {
        for (uint64_t part = 1; part <= parts_; part++)
            ends_[part - 1] = cycle_ + (end - cycle_) * part / parts_;
        cycle_ = end;
        timed_ = timed;
        left_.store(nodes_.size() * parts_, std::memory_order_relaxed);
        begin();
        work(0, quantum_.load(std::memory_order_relaxed));
        for (uint64_t left; (left = left_.load(std::memory_order_acquire));) changed(left_, left);
        for (const auto& node : nodes_) *counts++ = node.count;
    }

private:
    void dismiss() {
        over_ = true;
        begin();
        for (auto& helper : helpers_) helper.join();
    }
    void begin() {
        quantum_.fetch_add(1, std::memory_order_release);
        quantum_.notify_all();
    }
    void help(uint64_t own) {
        uint64_t quantum = 0;
        while (true) {
            quantum = changed(quantum_, quantum);
            if (over_) return;
            work(own, quantum);
        }
    }
    // A thread begins with its own nodes, whose data may still be in its processor's cache, and then
    // helps the other threads with their last nodes.
    void work(uint64_t own, uint64_t quantum) {
        for (uint64_t part = 0; part < parts_; part++) {
            const uint64_t before = 2 * ((quantum - 1) * parts_ + part);
            for (uint64_t at = own; at < nodes_.size(); at += threads_)
                take(nodes_[at], before, ends_[part]);
            for (uint64_t at = nodes_.size(); at-- > 0;) take(nodes_[at], before, ends_[part]);
        }
    }
    // Claim and run a part if it is unclaimed and its predecessors are done. A thread that is late, in
    // a quantum that is over, finds none.
    void take(Node& node, uint64_t before, const uint64_t& end) {
        uint64_t state = before;
        if (!node.state.compare_exchange_strong(state, before + 1, std::memory_order_acq_rel))
            return;
        node.count = node.advance(node.host, end, timed_);
        node.state.store(before + 2, std::memory_order_release);
        if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) left_.notify_all();
    }

    const uint64_t threads_, parts_;
    std::deque<Node> nodes_;
    std::vector<std::thread> helpers_;
    std::atomic<bool> over_{false};
    uint64_t cycle_, ends_[PARTS];
    bool timed_ = false;
    alignas(64) std::atomic<uint64_t> quantum_{0};
    alignas(64) std::atomic<uint64_t> left_{0};
};

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

// Returns null if that many threads cannot be started.
EXPORT Crew* ember_crew_new(uint64_t threads, uint64_t cycle) {
    try {
        return new Crew(threads, cycle);
    } catch (const std::system_error&) {
        return nullptr;
    }
}

EXPORT void ember_crew_free(Crew* crew) { delete crew; }

EXPORT void ember_crew_add(Crew* crew, void* host, Advance* advance) { crew->add(host, advance); }

// Advance every node to `end`; the value that each returned goes to `counts`.
EXPORT void ember_crew_advance(Crew* crew, uint64_t end, bool timed, uint64_t* counts) {
    crew->advance(end, timed, counts);
}
