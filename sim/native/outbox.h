// Packets on their way from a host to its NIC.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "wire.h"

namespace ember {

class Outbox {
public:
    uint64_t bytes = 0;  // that were sent

    Outbox(const Wire& wire, uint32_t node, uint64_t latency, double cycles_per_byte)
        : wire_(wire), node_(node), latency_(double(latency)), cycles_per_byte_(cycles_per_byte) {}

    // Let a packet begin its way at `now`, or when the link is free; returns its words, zero behind
    // the header, of which the NIC looks at `shown` beats. They stay where they are until the next.
    uint32_t* send(uint32_t opcode, uint32_t step, uint32_t count, uint64_t beats, uint64_t shown,
                   double now) {
        constexpr uint64_t BYTES = sizeof(uint32_t) * DATA_WORDS;
        bytes += beats * BYTES;
        const double begins = std::max(now, free_);
        free_ = begins + double(beats * BYTES) * cycles_per_byte_;
        packets_.push_back({words_.size(), arrivals_.size(), uint32_t(beats)});
        for (uint64_t beat = 1; beat <= beats; beat++)
            arrivals_.push_back(uint64_t(std::ceil(
                begins + double(beat) * (double(BYTES) * cycles_per_byte_) + latency_)));
        words_.resize(words_.size() + shown * wire_.beat_words, 0);
        uint32_t* words = &words_[packets_.back().words];
        wire_.version.set(words, wire_.version_value);
        wire_.opcode.set(words, opcode);
        wire_.source.set(words, node_);
        wire_.destination.set(words, node_);
        wire_.step.set(words, step & 0xFFFF);
        wire_.count.set(words, count);
        return words;
    }
    // Give the NIC all of it; returns the first cycle of a beat when that is past, and nothing is
    // given, else the highest number.
    template <class Nic>
    uint64_t deliver(Nic& nic) {
        uint64_t late = ~uint64_t(0);
        if (!arrivals_.empty() && arrivals_[0] < nic.cycle()) late = arrivals_[0];
        else
            for (const auto& packet : packets_)
                nic.arrive(&words_[packet.words], packet.beats, &arrivals_[packet.first]);
        packets_.clear();
        words_.clear();
        arrivals_.clear();
        return late;
    }

private:
    struct Packet {
        uint64_t words, first;
        uint32_t beats;
    };
    const Wire& wire_;
    const uint32_t node_;
    const double latency_, cycles_per_byte_;
    double free_ = 0;
    std::vector<Packet> packets_;
    std::vector<uint32_t> words_;
    std::vector<uint64_t> arrivals_;
};

}  // namespace ember
