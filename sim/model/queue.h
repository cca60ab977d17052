// Queues between the blocks of a NIC, and the clock that they share.
//
// Blocks are stepped once a cycle, those further down the path first. So a queue that was read in
// this cycle still counts what was in it when the cycle began: there is room only a cycle later, as
// behind the registered `ready` of the hardware.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ember {

using Cycle = uint64_t;
constexpr Cycle NEVER = ~Cycle(0);

struct Clock {
    Cycle now = 0;
    Cycle soon = 0;      // what was put into a queue is there by then
    bool moved = false;  // something changed in this cycle
};

// First in, first out: an item is there `latency` cycles after it was put in, one a cycle.
template <class T>
class Queue {
public:
    Queue() = default;

    // Depth 0: there is always room. Registered: one more item lies in an output register, and is
    // not counted (rtl.stream.StreamFIFO); otherwise rtl.stream.SkidBuffer with latency 1, depth 2.
    void init(Clock* clock, Cycle latency, size_t depth, bool registered = false) {
        clock_ = clock;
        latency_ = latency;
        depth_ = depth;
        registered_ = registered;
        items_.resize(4);
    }
    void skid(Clock* clock) { init(clock, 1, 2); }
    void fifo(Clock* clock, size_t depth, Cycle latency = 2) { init(clock, latency, depth, true); }

    bool has() const {
        return count_ && popped_ != clock_->now && items_[head_].at <= clock_->now;
    }
    bool room() const { return !depth_ || level(clock_->now) < depth_; }
    bool empty() const { return !count_; }
    size_t size() const { return count_; }
    // As the cycle began.
    size_t held() const { return count_ + (popped_ == clock_->now); }
    // When the first item is there, if that is not past: what was there and was not taken waits for
    // something else.
    Cycle next() const {
        return count_ && items_[head_].at >= clock_->now ? items_[head_].at : NEVER;
    }
    const T& front() const { return items_[head_].value; }
    T& front() { return items_[head_].value; }
    // Of the item `place` behind the first: when it is there.
    Cycle at(size_t place) const { return items_[(head_ + place) & (items_.size() - 1)].at; }

    T pop() {
        T value = items_[head_].value;
        head_ = (head_ + 1) & (items_.size() - 1);
        count_--;
        popped_ = clock_->now;
        clock_->moved = true;
        return value;
    }
    void push(const T& value) {
        const Cycle at = clock_->now + latency_;
        if (at > clock_->soon) clock_->soon = at;
        clock_->moved = true;
        put(value, at);
    }
    // An arrival at a time of its own, which must not decrease.
    void put(const T& value, Cycle at) {
        if (count_ == items_.size()) grow();
        items_[(head_ + count_++) & (items_.size() - 1)] = {at, value};
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
        for (size_t k = 0; k < count_; k++) larger[k] = items_[(head_ + k) & (items_.size() - 1)];
        items_.swap(larger);
        head_ = 0;
    }

    Clock* clock_ = nullptr;
    Cycle latency_ = 1, popped_ = NEVER;
    size_t depth_ = 0, head_ = 0, count_ = 0;
    bool registered_ = false;
    std::vector<Item> items_;
};

// Hand an item on where there is one and room for it.
template <class T>
void wire(Queue<T>& from, Queue<T>& to) {
    if (from.has() && to.room()) to.push(from.pop());
}

}  // namespace ember
