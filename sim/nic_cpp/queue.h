// Queues between the blocks of a NIC, and their common clock.
//
// Blocks are stepped once per cycle, downstream blocks first. A queue that was read in this cycle
// therefore still counts its items at the beginning of the cycle: the freed place is usable one cycle
// later, as with the registered `ready` of the hardware.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ember {

using Cycle = uint64_t;
constexpr Cycle NEVER = ~Cycle(0);

struct Clock {
    Cycle now = 0;
    Cycle soon = 0;      // by then, all queued items have arrived
    bool moved = false;  // something changed in this cycle

    // The cycle `cycles` from now, in which an event will happen.
    Cycle later(Cycle cycles) {
        const Cycle at = now + cycles;
        if (at > soon) soon = at;
        moved = true;
        return at;
    }
};

// A FIFO: an item arrives `latency` cycles after it was pushed; one leaves per cycle.
template <class T>
class Queue {
public:
    Queue() = default;

    // Depth 0: unbounded. Registered: one more item is in an output register and is not counted
    // (rtl.stream.StreamFIFO). With latency 1 and depth 2, not registered: rtl.stream.SkidBuffer.
    void init(Clock* clock, Cycle latency, size_t depth, bool registered = false) {
        clock_ = clock;
        latency_ = latency;
        depth_ = depth;
        registered_ = registered;
        items_.resize(4);
        mask_ = 3;
    }
    void skid(Clock* clock) { init(clock, 1, 2); }
    void fifo(Clock* clock, size_t depth, Cycle latency = 2) { init(clock, latency, depth, true); }

    bool has() const {
        return count_ && popped_ != clock_->now && items_[head_].at <= clock_->now;
    }
    bool room() const { return !depth_ || level(clock_->now) < depth_; }
    bool empty() const { return !count_; }
    size_t size() const { return count_; }
    // Items at the beginning of the cycle.
    size_t held() const { return count_ + (popped_ == clock_->now); }
    // When the first item arrives, or NEVER if that has passed: an item that arrived and was not
    // taken waits for another event.
    Cycle next() const {
        return count_ && items_[head_].at >= clock_->now ? items_[head_].at : NEVER;
    }
    const T& front() const { return items_[head_].value; }
    T& front() { return items_[head_].value; }
    // The arrival time of the item `place` places after the first.
    Cycle at(size_t place) const { return items_[(head_ + place) & mask_].at; }

    T pop() {
        T value = items_[head_].value;
        head_ = (head_ + 1) & mask_;
        count_--;
        popped_ = clock_->now;
        clock_->moved = true;
        return value;
    }
    void push(const T& value) {
        put(value, clock_->later(latency_));
    }
    // Push an item that arrives in cycle `at`, which must not decrease.
    void put(const T& value, Cycle at) {
        if (count_ > mask_) grow();
        items_[(head_ + count_++) & mask_] = {at, value};
    }

private:
    struct Item {
        Cycle at;
        T value;
    };
    size_t level(Cycle now) const {
        size_t held = count_ + (popped_ == now);
        if (registered_ && (popped_ == now || (count_ && items_[head_].at <= now))) held--;
        return held;
    }
    void grow() {
        std::vector<Item> larger(2 * items_.size());
        for (size_t k = 0; k < count_; k++) larger[k] = items_[(head_ + k) & mask_];
        items_.swap(larger);
        head_ = 0;
        mask_ = items_.size() - 1;
    }

    Clock* clock_ = nullptr;
    Cycle latency_ = 1, popped_ = NEVER;
    size_t depth_ = 0, head_ = 0, count_ = 0, mask_ = 0;
    bool registered_ = false;
    std::vector<Item> items_;
};

// Places or numbers that are reserved (rtl.stream.CreditQueue, rtl.cache.number_pool). A returned
// place counts some cycles later.
class Credits {
public:
    void init(Clock* clock, uint32_t count) {
        clock_ = clock;
        left_ = count;
    }
    bool any() {
        if (due_ <= clock_->now) collect();
        return left_;
    }
    void take() {
        left_--;
        clock_->moved = true;
    }
    void give(Cycle cycles) {
        any();
        const Cycle at = clock_->later(cycles);
        back_[at % MOST] = at;
        soon_[at % MOST]++;
        if (at < due_) due_ = at;
    }

private:
    static constexpr Cycle MOST = 8;
    void collect() {
        due_ = NEVER;
        for (Cycle k = 0; k < MOST; k++) {
            if (!soon_[k]) continue;
            if (back_[k] > clock_->now) {
                if (back_[k] < due_) due_ = back_[k];
                continue;
            }
            left_ += soon_[k];
            soon_[k] = 0;
        }
    }
    Clock* clock_ = nullptr;
    uint32_t left_ = 0, soon_[MOST] = {};
    Cycle back_[MOST] = {}, due_ = NEVER;  // due_: the first cycle in which a place returns
};

// Move an item if there is one and room for it.
template <class T>
void wire(Queue<T>& from, Queue<T>& to) {
    if (from.has() && to.room()) to.push(from.pop());
}

}  // namespace ember
