// Packets from a host to its NIC. Reference: sim.node.node.Node and sim.node.host_port.HostPort.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "gathers.h"

namespace ember {

class Outbox {
public:
    uint64_t bytes = 0;  // bytes sent

    Outbox(uint32_t node, uint64_t latency, double cycles_per_byte)
        : node_(node), latency_(double(latency)), cycles_per_byte_(cycles_per_byte) {}

    // Send a packet at `now`, or as soon as the link is free. `more` bytes occupy the link before
    // it. Returns its words, zero after the header. The NIC reads the first `shown` beats. The
    // pointer is valid until the next call.
    uint32_t* send(uint32_t opcode, uint32_t step, uint32_t count, uint64_t beats, uint64_t shown,
                   double now, uint64_t more = 0) {
        bytes += beats * BEAT_BYTES + more;
        double begins = std::max(now, free_);
        free_ = begins + double(beats * BEAT_BYTES + more) * cycles_per_byte_;
        begins += double(more) * cycles_per_byte_;
        packets_.push_back({words_.size(), arrivals_.size(), uint32_t(beats)});
        for (uint64_t beat = 1; beat <= beats; beat++)
            arrivals_.push_back(uint64_t(std::ceil(
                begins + double(beat) * (double(BEAT_BYTES) * cycles_per_byte_) + latency_)));
        words_.resize(words_.size() + shown * BEAT_WORDS, 0);
        uint32_t* words = &words_[packets_.back().words];
        header::version.set(words, VERSION);
        header::opcode.set(words, opcode);
        header::source.set(words, node_);
        header::destination.set(words, node_);
        header::step.set(words, step & 0xFFFF);
        header::count.set(words, count);
        return words;
    }
    // Send the vectors of a list's records, at most `most` in a packet; if vectors have values,
    // `fill` writes the vector of record k. `final_beat`: of bags' vectors, in the header.
    template <class Fill>
    void send_vectors(uint32_t opcode, const List& list, const Field& landing, uint64_t dimension,
                      uint64_t most, double now, bool values, Fill fill, uint64_t more = 0,
                      uint32_t final_beat = 0) {
        for (uint64_t first = 0; first < list.records.size(); first += most) {
            const uint64_t count = std::min<uint64_t>(most, list.records.size() - first);
            const uint64_t tags = tag_beats(count), beats = 1 + tags + value_beats(count, dimension);
            uint32_t* words = send(opcode, list.step, uint32_t(count), beats,
                                   values ? beats : 1 + tags, now, more);
            header::final_beat.set(words, final_beat);
            put_vectors(words, list, first, count, landing, dimension, values, fill);
        }
    }
    // Send the vectors of a whole list in answer to a read with `tag`.
    template <class Fill>
    void send_read(const List& list, uint32_t tag, const Field& landing, uint64_t dimension, double now,
                   bool values, Fill fill) {
        const uint64_t count = list.records.size(), tags = tag_beats(count);
        const uint64_t beats = tags + value_beats(count, dimension);
        uint32_t* words = send(opcode::READ_DATA, 0, uint32_t(RECORDS_PER_BEAT * beats), 1 + beats,
                               1 + (values ? beats : tags), now);
        header::acknowledge.set(words, tag);
        put_vectors(words, list, 0, count, landing, dimension, values, fill);
    }
    // Deliver all packets to the NIC and return 2^64 - 1. If the cycle of the first beat has
    // passed, deliver no packet and return the cycle.
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

    // Write tags and vectors of `count` records of a list, from `first` on, behind a header.
    template <class Fill>
    void put_vectors(uint32_t* words, const List& list, uint64_t first, uint64_t count,
                     const Field& landing, uint64_t dimension, bool values, Fill fill) {
        vector_.resize(dimension);
        uint32_t* data = words + (1 + tag_beats(count)) * BEAT_WORDS;
        for (uint64_t k = 0; k < count; k++) {
            words[(1 + k / TAGS_PER_BEAT) * BEAT_WORDS + k % TAGS_PER_BEAT / 2] |=
                uint32_t(landing.of(list.records[first + k])) << 16 * (k % 2);
            if (!values) continue;
            fill(first + k, vector_.data());
            put(data, k * dimension);
        }
    }

    // Write the current vector from value `at` on, into consecutive beats.
    void put(uint32_t* data, uint64_t at) const {
        for (uint64_t done = 0; done < vector_.size();) {
            const uint64_t some = std::min<uint64_t>(vector_.size() - done,
                                                     DATA_WORDS - at % DATA_WORDS);
            std::memcpy(data + at / DATA_WORDS * BEAT_WORDS + at % DATA_WORDS,
                        &vector_[done], some * sizeof(float));
            done += some;
            at += some;
        }
    }

    const uint32_t node_;
    const double latency_, cycles_per_byte_;
    double free_ = 0;
    std::vector<Packet> packets_;
    std::vector<uint32_t> words_;
    std::vector<uint64_t> arrivals_;
    std::vector<float> vector_;
};

}  // namespace ember
