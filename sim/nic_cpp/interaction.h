// The interaction on the NIC: requests for dense vectors, their concatenation with pooled ones, and
// packets of results.
#pragma once
#include <vector>

#include "dots.h"
#include "landing.h"
#include "packets.h"

namespace ember {

struct DenseSlot {
    uint32_t sample;
    uint16_t step;
};

// rtl.interaction.result_frames and result_groups: packs results of equal length into packets.
class ResultFrames {
public:
    uint64_t results = 0, packets = 0;
    Departure out;

    void init(Clock* clock, const Config& config, Packets* packets) {
        clock_ = clock;
        config_ = &config;
        made_ = packets;
        most_ = config.host_payload_beats;
        out.init(clock);
        beats_.fifo(clock, 2 * most_);
        sizes_.skid(clock);
        groups_.fifo(clock, config.result_groups);
    }
    Cycle timer() const {
        if (!open_) return NEVER;
        return std::max(opened_ + config_->result_timeout, clock_->now);
    }
    void step(Queue<VectorBeat>& in, uint16_t credit) {
        if (!current_ && !open_ && !old_ && in.empty() && sizes_.empty() && groups_.empty()) return;
        leave(credit);
        group();
        const bool fills = length_ == most_ - 2;
        if (in.has() && beats_.room() && sizes_.room()) measure(in.pop(), fills);
    }

private:
    struct Size {
        uint32_t beats, sample, first;
        uint16_t step;
        bool part, last;
    };

    void leave(uint16_t credit) {
        if (!current_) {
            if (!groups_.has() || !out.headers.room() || !out.payload.room()) return;
            current_ = groups_.pop();
            current_->credit = credit;
            left_ = current_->beats - 1;
            tags_ = current_->tags - 1;
            out.headers.push(current_);
            out.payload.push({current_, false});
            packets++;
            if (current_->opcode == opcode::RESULTS) results += current_->count;
            return;
        }
        if (!out.payload.room() || (!tags_ && !beats_.has())) return;
        if (tags_) tags_--;
        else beats_.pop();
        out.payload.push({current_, --left_ == 0});
        if (!left_) current_ = nullptr;
    }

    void group() {
        const bool fresh = count_ % 16 == 0, valid = sizes_.has();
        const bool fits = used_ + length_of_ + fresh <= most_;
        const Size item = valid ? sizes_.front() : Size{};
        const bool same = !item.part && item.beats == length_of_ && item.step == step_;
        const bool closing = open_ && (!fits || old_ || (valid && !same));
        const bool close = closing && groups_.room();
        const bool opens = valid && !item.part && (!open_ || close);
        const bool joins = valid && open_ && !closing;
        const bool parts = valid && item.part && !open_ && groups_.room();
        const bool old = open_ && !close
                         && uint32_t(clock_->now - opened_) >= config_->result_timeout;
        if (old != old_) clock_->moved = true;
        old_ = old;
        if (close) {
            Packet* packet = made_->get(opcode::RESULTS, 0, step_);
            packet->count = count_;
            packet->tags = (count_ + 15) / 16;
            packet->beats = beats_of_ + packet->tags;
            packet->words = samples_;
            packet->answers = count_;
            groups_.push(packet);
        }
        if (parts) {
            Packet* packet = made_->get(opcode::RESULT_PART, 0, item.step);
            packet->count = item.beats;
            packet->tags = 1;
            packet->beats = item.beats + 1;
            packet->words.assign(DATA_WORDS, 0);
            part_tag::sample.set(packet->words.data(), item.sample);
            part_tag::first_beat.set(packet->words.data(), item.first);
            part_tag::last.set(packet->words.data(), item.last);
            packet->answers = item.last;
            groups_.push(packet);
            results += item.last;
        }
        if (opens) {
            open_ = true;
            length_of_ = item.beats;
            step_ = item.step;
            count_ = 1;
            beats_of_ = item.beats;
            used_ = item.beats + 1;
            opened_ = clock_->now;
            samples_.assign(1, item.sample);
        } else if (close) {
            open_ = false;
        } else if (joins) {
            used_ += length_of_ + fresh;
            beats_of_ += length_of_;
            count_++;
            samples_.push_back(item.sample);
        }
        if (opens || joins || parts) sizes_.pop();
    }

    void measure(const VectorBeat& item, bool fills) {
        beats_.push(0);
        if (item.last || fills)
            sizes_.push({length_ + 1, item.sample, first_, item.step, long_ || !item.last,
                         item.last});
        length_++;
        if (item.last) {
            length_ = first_ = 0;
            long_ = false;
        } else if (fills) {
            length_ = 0;
            first_ += most_ - 1;
            long_ = true;
        }
    }

    Clock* clock_ = nullptr;
    const Config* config_ = nullptr;
    Packets* made_ = nullptr;
    uint32_t most_ = 0;
    Queue<char> beats_;
    Queue<Size> sizes_;
    Queue<Packet*> groups_;
    Packet* current_ = nullptr;
    uint32_t left_ = 0, tags_ = 0;
    // The incoming result; the open packet.
    uint32_t length_ = 0, first_ = 0, length_of_ = 0, count_ = 0, beats_of_ = 0, used_ = 0;
    uint16_t step_ = 0;
    bool long_ = false, open_ = false, old_ = false;
    Cycle opened_ = 0;
    std::vector<uint32_t> samples_;
};

class Interaction {
public:
    Hold places;
    Pool pool;
    Reader requests;
    Dots dots;
    ResultFrames frames;

    void init(Clock* clock, const Config& config, Packets* packets) {
        config_ = &config;
        places.init(clock, config, config.dense_vectors, true);
        pool.init(clock, packets, opcode::DENSE_REQUESTS, 1, config.one_buffers, true, 0);
        pool.limit = std::min(config.request_batch, RECORDS_PER_BEAT * config.net_payload_beats);
        pool.timeout = config.request_timeout;
        requests.init(clock);
        joined_.skid(clock);
        flat_.skid(clock);
        dots.init(clock, config);
        frames.init(clock, config, packets);
    }
    Cycle timer() const { return std::min(pool.timer(), frames.timer()); }
    void land(uint32_t place) { places.remote.push({{place, 0, 0}, true}); }

    void step(Queue<PooledBeat>& pooled, Queue<DenseSlot>& wanted, uint16_t credit) {
        const bool dot = config_->interaction == DOT;
        frames.step(dot ? dots.out : flat_, credit);
        if (dot) dots.step(joined_);
        else if (joined_.has() && flat_.room()) flatten(joined_.pop());
        join(pooled);
        requests.step(pool.closed, pool.free, [&](uint32_t) { return credit; });
        pool.step();
        places.step();
        if (wanted.has() && places.ready() && pool.input.room()) {
            const DenseSlot slot = wanted.pop();
            uint32_t words[2] = {};
            dense::sample.set(words, slot.sample);
            dense::landing.set(words, places.next_landing());
            pool.input.push({0, slot.step, words[0] | uint64_t{words[1]} << 32, true});
            places.reserve({slot.sample, slot.step, false, true, true});
        }
    }

private:
    enum { DOT = 1 };

    // rtl.interaction.concatenate: a dense vector, then the bags of its sample.
    void join(Queue<PooledBeat>& pooled) {
        if (!joined_.room()) return;
        if (bags_ && pooled.has()) {
            const PooledBeat beat = pooled.pop();
            joined_.push({beat.sample, beat.step, beat.last, beat.ends});
            if (beat.last && beat.ends) bags_ = false;
        } else if (!bags_ && places.out.has()) {
            const SlotBeat beat = places.out.pop();
            joined_.push({beat.slot.sample, beat.slot.step, beat.last, false});
            if (beat.last) bags_ = true;
        }
    }
    // rtl.interaction.vector_flatten: several short vectors per beat.
    void flatten(const VectorBeat& beat) {
        const uint32_t shared = (1u << config_->value_packing) - 1;
        const bool ends = beat.last && beat.ends, full = (index_ & shared) == shared;
        if (full || ends) flat_.push({beat.sample, beat.step, ends, false});
        index_ = full || ends ? 0 : index_ + 1;
    }

    const Config* config_ = nullptr;
    Queue<VectorBeat> joined_, flat_;
    bool bags_ = false;
    uint32_t index_ = 0;
};

}  // namespace ember
