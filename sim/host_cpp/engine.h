// An engine, called through its C functions.
#pragma once
#include <algorithm>

#include "beats.h"

namespace ember {

class Engine {
public:
    explicit Engine(const EnginePort& port) : port_(port) {}

    void run(uint64_t until) { port_.run(port_.engine, until); }
    uint64_t cycle() const { return port_.cycle(port_.engine); }
    uint64_t next_event() const { return port_.next_event(port_.engine); }
    // Fetch the new output; returns all beats that were not dropped yet.
    Beats& received() {
        const uint64_t count = port_.pop(port_.engine, port_.from_, 0, nullptr, nullptr);
        if (!count) return received_;
        const size_t before = received_.cycles.size();
        received_.words.resize((before + count) * BEAT_WORDS);
        received_.cycles.resize(before + count);
        port_.pop(port_.engine, port_.from_, count, &received_.words[before * BEAT_WORDS],
                  &received_.cycles[before]);
        return received_;
    }
    const Beats& sent() const { return received_; }
    void push(uint64_t beats, const uint32_t* words, const uint64_t* cycles) {
        port_.push(port_.engine, port_.to, beats, words, cycles);
    }
    // Write a register.
    void access(ember::Access* access, uint32_t address, uint32_t data, uint64_t cycle) {
        access(port_.engine, address, data, cycle, 1);
    }
    // A packet without framing.
    void arrive(uint32_t* words, uint32_t beats, const uint64_t* cycles) {
        for (uint32_t beat = 0; beat < beats; beat++)
            std::fill_n(words + beat * BEAT_WORDS + KEEP_WORD, KEEP_WORDS, ~uint32_t(0));
        words[(beats - 1) * BEAT_WORDS + LAST_BIT / 32] |= uint32_t(1) << LAST_BIT % 32;
        push(beats, words, cycles);
    }

private:
    EnginePort port_;
    Beats received_;
};

}  // namespace ember
