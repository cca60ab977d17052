// Queries of a host: steps take turns, packets leave as the NIC's credits allow.
// Reference: sim.node.queries.Queries.
#pragma once
#include <algorithm>
#include <cstdint>
#include <deque>

#include "answers.h"
#include "outbox.h"

namespace ember {

class Queries {
public:
    Queries(const HostConfig& config, Outbox& outbox, Completions& completions)
        : in_flight_(config.in_flight), buffer_(config.buffer_beats),
          // The NIC reports credits when a quarter of the buffer has become free, at the latest.
          most_(RECORDS_PER_BEAT * std::min(config.payload_beats, config.buffer_beats / 2)),
          outbox_(outbox), completions_(completions) {}

    bool left() const { return !packets_.empty() || !steps_.empty(); }
    // Packets held back for lack of credit.
    size_t waiting() const { return packets_.size(); }
    void add(Step* step) { steps_.push_back(step); }
    void ended() { going_--; }
    // Returns whether the NIC has taken more queries. A packet gets its credit before it is queued:
    // a newer credit may overtake it.
    bool consumed(uint32_t credit) {
        const int16_t ahead = int16_t(uint16_t(credit - consumed_));
        if (ahead > 0) consumed_ += uint64_t(ahead);
        return ahead > 0;
    }
    // Start the steps whose turn it is. `begins` is called for a step without queries.
    template <class Begins>
    void start(double now, Begins begins) {
        while (!steps_.empty() && going_ < in_flight_
               && (!steps_.front()->sends() || completions_.reserve())) {
            Step* step = steps_.front();
            steps_.pop_front();
            going_++;
            if (!step->sends()) begin(*step, now, begins);
            for (size_t first = 0, count; first < step->kept.size(); first += count) {
                count = packet_words(step->kept, first);
                packets_.push_back({step, first, count,
                                    (count + RECORDS_PER_BEAT - 1) / RECORDS_PER_BEAT});
            }
        }
    }
    // Send the packets that fit the NIC's buffer. `begins` is called before the first packet of a
    // step, `sent` after each packet.
    template <class Begins, class Sent>
    void send(double now, Begins begins, Sent sent) {
        while (!packets_.empty()) {
            const Packet packet = packets_.front();
            if (sent_ + packet.beats - consumed_ > buffer_) return;
            packets_.pop_front();
            sent_ += packet.beats;
            Step& step = *packet.step;
            step.sent += packet.count;
            begin(step, now, begins);
            uint32_t* words = outbox_.send(opcode::QUERIES, uint32_t(step.step),
                                           uint32_t(packet.count), packet.beats + 1,
                                           packet.beats + 1, now);
            for (size_t k = 0; k < packet.count; k++) {
                const uint64_t record = step.kept[packet.first + k];
                uint32_t* place = words + (1 + k / RECORDS_PER_BEAT) * BEAT_WORDS
                                  + 2 * (k % RECORDS_PER_BEAT);
                place[0] = uint32_t(record);
                place[1] = uint32_t(record >> 32);
            }
            sent(step);
        }
    }

private:
    struct Packet {
        Step* step;
        size_t first, count, beats;
    };

    template <class Begins>
    void begin(Step& step, double now, Begins begins) {
        if (step.begun) return;
        step.begun = true;
        step.started = now;
        begins(step);
    }
    // Words of the packet that begins with word `first`: no packet cuts a bag, which fits a packet.
    size_t packet_words(const std::vector<uint64_t>& words, size_t first) const {
        size_t end = first + item_words(words[first]);
        while (end < words.size() && end + item_words(words[end]) <= first + most_)
            end += item_words(words[end]);
        return end - first;
    }

    const uint64_t in_flight_, buffer_, most_;
    Outbox& outbox_;
    Completions& completions_;
    std::deque<Step*> steps_;
    std::deque<Packet> packets_;
    uint64_t going_ = 0, sent_ = 0, consumed_ = 0;
};

}  // namespace ember
