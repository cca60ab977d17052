// Delivery of each distinct vector of a share once, and of the indices of its slots.
#pragma once
#include <cstring>
#include <vector>

#include "arrival.h"
#include "packets.h"

namespace ember {

// The index of a slot's vector. An item that `ends` is not a slot: the share of its step is over.
struct SlotIndex {
    uint16_t index, step;
    uint32_t sample;
    bool last, ends;
};

// rtl.delivery.share and unique: passes on the distinct keys of a share, and its bags, and sends
// indices. Its host ends each share.
class Delivery {
public:
    uint64_t slots = 0, unique = 0, repeats = 0, retired_early = 0, no_index = 0, steps = 0,
             sweeps = 0;
    Queue<Slot> way;
    Queue<SlotIndex> told;

    void init(Clock* clock, const Config& config) {
        clock_ = clock;
        config_ = &config;
        lines_.resize(size_t(config.unique_sets) * config.unique_ways);
        remembered_.resize(config.repeat_positions);
        entry_.skid(clock);
        words_.fifo(clock, config.unique_queue);
        front_.skid(clock);
        places_.init(clock, config.unique_queue);
        // Through the loop and the queue of results.
        found_.init(clock, config.tag_result + config.credit_item, 0);
        told.skid(clock);
        way.skid(clock);
        forget();
    }
    bool room() const { return entry_.room(); }
    void enter(const Slot& slot) { entry_.push(slot); }
    void step() {
        if (entry_.empty() && words_.empty() && front_.empty() && !swept_)
            return;  // no state inside can change
        leave();
        sweep();
        find();
        if (!entry_.has() || !words_.room() || !front_.room()) return;
        const Slot slot = entry_.pop();
        words_.push(slot);
        front_.push({slot, fresh_ || slot.step != step_});
        fresh_ = slot.ends;
        step_ = slot.step;
        slots++;
    }

private:
    void find() {
        if (!front_.has() || swept_ || !places_.any()) return;
        const Entry& entry = front_.front();
        if (entry.begins && final_) {
            if (found_.empty() || found_.next() == NEVER) begin_sweep();
            return;
        }
        places_.take();
        if (entry.begins) {
            epoch_ = (epoch_ + 1) % EPOCHS;
            following_ = 0;
            steps++;
            if (epoch_ == EPOCHS - 1) final_ = true;
        }
        found_.push(look_up(entry.slot));
        front_.pop();
    }
    static constexpr uint32_t EPOCHS = 1 << 10;
    struct Entry {
        Slot slot;
        bool begins;
    };
    struct Line {
        uint64_t key, used;
        uint32_t epoch;
        uint16_t index;
    };
    struct Found {
        uint16_t index;
        bool goes;
    };

    void leave() {
        if (!found_.has() || !told.room()) return;
        const Found found = found_.front();
        if (found.goes && !way.room()) return;
        found_.pop();
        places_.give(config_->place_free);
        Slot slot = words_.pop();
        told.push({found.index, slot.step, slot.sample, slot.last, slot.ends});
        if (!found.goes) return;
        slot.last = slot.ends;
        slot.sample = NO_SAMPLE;
        slot.kind = slot.ends ? record::EMPTY : record::KEY_END;
        slot.kept = false;
        way.push(slot);
    }
    Found look_up(const Slot& slot) {
        if (slot.repeat) {
            no_index += remembered_[slot.position] == NO_INDEX;
            return {remembered_[slot.position], false};
        }
        if (slot.kind == record::EMPTY) return {EMPTY_INDEX, slot.ends};
        if (slot.bag) {
            const uint16_t index = next();
            if (slot.kept) remembered_[slot.position] = index;
            return {index, true};
        }
        const uint64_t set = uint64_t{slot.hash >> 8} * config_->unique_sets >> 24;
        Line* const lines = &lines_[set * config_->unique_ways];
        Line* victim = lines;
        for (Line* line = lines; line < lines + config_->unique_ways; line++) {
            if (line->epoch == epoch_ && line->key == slot.key) {
                line->used = ++used_;
                repeats++;
                no_index += line->index == NO_INDEX;
                return {line->index, false};
            }
            if (line->used < victim->used) victim = line;
        }
        retired_early += victim->epoch == epoch_;
        *victim = {slot.key, ++used_, epoch_, next()};
        return {victim->index, true};
    }
    // The index of a vector that goes.
    uint16_t next() {
        const uint16_t index = uint16_t(following_);
        unique++;
        no_index += index == NO_INDEX;
        if (index != NO_INDEX) following_++;
        return index;
    }
    // Before an epoch is reused, its entries are removed: a set per cycle.
    void begin_sweep() {
        swept_ = config_->unique_sets + 1;
        clock_->moved = true;
    }
    void sweep() {
        if (!swept_) return;
        clock_->moved = true;
        if (--swept_) return;
        forget();
        final_ = false;
        sweeps++;
    }
    void forget() {
        for (size_t k = 0; k < lines_.size(); k++)
            lines_[k] = {0, k % config_->unique_ways, EPOCHS, 0};
        used_ = config_->unique_ways;
    }

    Clock* clock_ = nullptr;
    const Config* config_ = nullptr;
    std::vector<Line> lines_;
    std::vector<uint16_t> remembered_;  // of bags that may be repeated, by position
    Queue<Slot> entry_, words_;
    Queue<Entry> front_;
    Queue<Found> found_;
    Credits places_;
    uint64_t used_ = 0;
    uint32_t epoch_ = EPOCHS - 1, following_ = 0, swept_ = 0;
    uint16_t step_ = 0;
    bool fresh_ = true, final_ = false;
};

// rtl.delivery.indices: packs the indices of consecutive slots of a step.
class IndexPackager {
public:
    uint64_t indices = 0, packets = 0, full = 0, timeouts = 0, step_ends = 0, changes = 0;
    Closed closed;

    void init(Clock* clock, const Config& config, Packets* packets) {
        clock_ = clock;
        config_ = &config;
        made_ = packets;
        room_ = config.host_payload_beats - 1;
        front_.skid(clock);
        closed.init(clock, 2 * config.host_payload_beats, config.index_packets);
    }
    // When the open packet is old.
    Cycle timer() const {
        return packet_ && !old_ ? std::max(opened_ + config_->index_timeout, clock_->now) : NEVER;
    }
    void step(Queue<SlotIndex>& told, uint16_t credit) {
        if (told.empty() && front_.empty() && !packet_ && closed.empty()) return;
        packets += closed.step(credit) != nullptr;
        const bool ends = ending_ && !front_.has();
        gather(ends);
        enter(told);
    }

private:
    struct Entry {
        SlotIndex slot;
        bool follows;
    };

    void enter(Queue<SlotIndex>& told) {
        if (!told.has() || !(told.front().ends || front_.room())) return;
        const SlotIndex slot = told.pop();
        if (slot.ends) {
            ended_ = ending_ = true;
            return;
        }
        front_.push({slot, !ended_ && slot.step == step_
                           && slot.sample == (within_ ? sample_ : sample_ + 1)});
        step_ = slot.step;
        sample_ = slot.sample;
        within_ = !slot.last;
        ended_ = ending_ = false;
    }
    void gather(bool ends) {
        const bool go = closed.room(), has = front_.has();
        const bool fills = whole_ && left_ == 0, follows = has && front_.front().follows;
        const bool close = packet_ && go && (fills || old_ || ends || (has && !follows));
        const bool takes = has && go;
        const bool begins = !packet_ || fills || old_ || !follows;
        const bool was_open = packet_;
        const bool old = packet_ && !close
                         && uint32_t(clock_->now - opened_) >= config_->index_timeout;
        if (close || (takes && was_open && whole_)) closed.beats.push(close);
        if (close) {
            (fills ? full : old_ ? timeouts : ends ? step_ends : changes)++;
            index_tag::samples.set(packet_->words.data(), samples_);
            index_tag::last.set(packet_->words.data(), last_);
            packet_->answers = samples_ - !last_;
            closed.packets.push(packet_);
            packet_ = nullptr;
        }
        if (old != old_) clock_->moved = true;
        old_ = old;
        if (takes) take(front_.pop().slot, begins);
    }
    void take(const SlotIndex& slot, bool begins) {
        indices++;
        const bool next_beat = begins || whole_;
        if (begins) {
            opened_ = clock_->now;
            packet_ = made_->get(opcode::INDICES, 0, slot.step);
            packet_->words.assign(DATA_WORDS, 0);
            index_tag::sample.set(packet_->words.data(), slot.sample);
            index_tag::first_slot.set(packet_->words.data(), number_);
            packet_->beats = 1;
            samples_ = 1;
            left_ = room_ - 1;
        } else {
            samples_ += last_;
            if (whole_) left_--;
        }
        if (next_beat) {
            packet_->words.resize(packet_->words.size() + DATA_WORDS, 0);
            packet_->beats++;
        }
        const uint32_t lane = next_beat ? 0 : lane_;
        packet_->words[packet_->words.size() - DATA_WORDS + lane / 2]
            |= uint32_t{slot.index} << 16 * (lane % 2);
        packet_->count++;
        number_ = slot.last ? 0 : number_ + 1;
        last_ = slot.last;
        lane_ = lane + 1;
        whole_ = lane_ == INDICES_PER_BEAT;
    }

    Clock* clock_ = nullptr;
    const Config* config_ = nullptr;
    Packets* made_ = nullptr;
    Queue<Entry> front_;
    Packet* packet_ = nullptr;
    Cycle opened_ = 0;
    uint32_t room_ = 0, left_ = 0, lane_ = 0, number_ = 0, samples_ = 0, sample_ = 0;
    uint16_t step_ = 0;
    bool within_ = false, ended_ = true, ending_ = false, whole_ = false, old_ = false,
         last_ = false;
};

}  // namespace ember
