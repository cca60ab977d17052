// The GPU's timing model. Reference, bit for bit: host.timing.gpu.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "formats.h"

namespace ember {

// A list of rows, or of dense vectors, that a NIC requests for a step: its records, and the dense
// vectors themselves if they have values.
struct List {
    uint32_t step = 0;
    std::vector<uint64_t> records;
    std::vector<float> dense;
};

// The beats of the tags of `count` vectors, and of their values.
inline uint64_t tag_beats(uint64_t count) { return (count + TAGS_PER_BEAT - 1) / TAGS_PER_BEAT; }
inline uint64_t value_beats(uint64_t count, uint64_t dimension) {
    return (count * dimension + DATA_WORDS - 1) / DATA_WORDS;
}

// A launched gather, if `any`: the end of its call, the time at which its vectors are ready, and
// its index among the gathers in flight.
struct Gather {
    bool any = false;
    double called = 0, end = 0;
    size_t place = 0;
};

// The host's thread, which launches gathers one at a time.
struct LaunchThread {
    double cycles;
    bool free = true;
};

// GPU memory: the time from which its bandwidth is free.
struct MemoryClock {
    double free = 0;
};

// Launches gathers: all lists that wait when a stream and the thread are free share a gather.
// `launch`: from a list to its first row.
template <class Item>
class Gathers {
public:
    uint64_t launches = 0, rows = 0;

    Gathers(const GpuTimes& times, double launch, LaunchThread& thread, MemoryClock& memory)
        : times_(times), launch_(launch), thread_(thread), memory_(memory), free_(times.streams) {}

    double launch() const { return launch_; }
    // Take a list of rows, which the GPU pools in `bags` bags, or returns if 0.
    Gather arrive(double time, Item list, uint64_t rows, uint64_t bags = 0) {
        waiting_.push_back(std::move(list));
        waiting_rows_ += rows;
        waiting_bags_ += bags;
        return start(time);
    }
    // Remove a gather that ends, and return its lists.
    std::vector<Item> take(size_t place) {
        places_.push_back(place);
        return std::move(under_way_[place]);
    }
    Gather finish(double time) {
        free_++;
        return start(time);
    }
    Gather start(double time) {
        if (!free_ || waiting_.empty() || !thread_.free) return {};
        free_--;
        thread_.free = !(thread_.cycles > 0);
        const double begun = time + launch_;
        memory_.free = std::max(begun, memory_.free) + cycles(waiting_rows_, waiting_bags_);
        const double end = std::max(begun + times_.kernel, memory_.free);
        launches++;
        rows += waiting_rows_;
        waiting_rows_ = waiting_bags_ = 0;
        if (places_.empty()) {
            places_.push_back(under_way_.size());
            under_way_.emplace_back();
        }
        const size_t place = places_.back();
        places_.pop_back();
        under_way_[place] = std::move(waiting_);
        waiting_.clear();
        return {true, time + thread_.cycles, end, place};
    }

private:
    // Of memory bandwidth. Reference: host.timing.gpu.GpuProfile.cycles_of_bags.
    double cycles(uint64_t rows, uint64_t bags) const {
        const double read = double(rows) * times_.cycles_per_row;
        return bags ? read + double(4 * rows + bags * times_.row_bytes) / times_.stream_bytes : read;
    }

    const GpuTimes times_;
    const double launch_;
    LaunchThread& thread_;
    MemoryClock& memory_;
    uint64_t free_, waiting_rows_ = 0, waiting_bags_ = 0;
    std::vector<Item> waiting_;
    std::vector<std::vector<Item>> under_way_;
    std::vector<size_t> places_;
};

// The bottom MLP of consecutive mini-batches.
class BottomMlp {
public:
    explicit BottomMlp(const GpuTimes& times) : times_(times) {}
    // Run it for some samples; returns when its outputs are ready.
    double compute(double time, uint64_t samples) {
        computed_ = std::max(time + times_.other_launch, computed_)
                    + double(samples) * times_.cycles_per_sample;
        return computed_;
    }

private:
    const GpuTimes times_;
    double computed_ = 0;
};

}  // namespace ember
