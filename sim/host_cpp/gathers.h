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

// Launches gathers: all lists that wait when a stream and the thread are free share a gather.
class Gathers {
public:
    uint64_t launches = 0, rows = 0;

    Gathers(const GpuTimes& times, LaunchThread& thread)
        : times_(times), thread_(thread), free_(times.streams) {}

    double launch() const { return times_.launch; }
    Gather arrive(double time, List list) {
        waiting_.push_back(std::move(list));
        return start(time);
    }
    // Remove a gather that ends, and return its lists.
    std::vector<List> take(size_t place) {
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
        uint64_t count = 0;
        for (const auto& list : waiting_) count += list.records.size();
        const double begun = time + times_.launch;
        memory_free_ = std::max(begun, memory_free_) + double(count) * times_.cycles_per_row;
        const double end = std::max(begun + times_.kernel, memory_free_);
        launches++;
        rows += count;
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
    const GpuTimes times_;
    LaunchThread& thread_;
    uint64_t free_;
    double memory_free_ = 0;
    std::vector<List> waiting_;
    std::vector<std::vector<List>> under_way_;
    std::vector<size_t> places_;
};

// The bottom MLP of consecutive mini-batches.
class BottomMlp {
public:
    explicit BottomMlp(const GpuTimes& times) : times_(times) {}
    // Run it for some samples; returns when its outputs are ready.
    double compute(double time, uint64_t samples) {
        computed_ = std::max(time + times_.mlp_launch, computed_)
                    + double(samples) * times_.cycles_per_sample;
        return computed_;
    }

private:
    const GpuTimes times_;
    double computed_ = 0;
};

}  // namespace ember
