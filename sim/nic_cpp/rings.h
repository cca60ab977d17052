// rtl.rings.gpu_rings: lists to a ring in GPU memory, vectors from another ring.
#pragma once
#include <algorithm>
#include <vector>

#include "packets.h"

namespace ember {

// The GPU follows the protocol: it stores counts of the lists read and slots filled, and each read
// returns its slot.
class NicRings {
public:
    uint64_t lists = 0, lists_told = 0, stall_full = 0, reads = 0, slots = 0, slots_told = 0;
    Departure out;
    // The count that a register shows from a cycle on; the slot whose last beat left in the
    // previous cycle.
    Queue<uint16_t> consumed, produced, landed;

    void init(Clock* clock, const Config& config, Packets* packets) {
        clock_ = clock;
        config_ = &config;
        made_ = packets;
        out.init(clock);
        for (auto* queue : {&consumed, &produced, &landed}) queue->init(clock, 0, 0);
        counts_.skid(clock);
        vectors_.assign(config.rings_lists, 0);
        landed_.assign(config.rings_outstanding, false);
        list_ = {address(config.list_ring_low, config.list_ring_high), config.list_slot_shift,
                 1u << config.list_ring_shift};
        vector_ = {address(config.vector_ring_low, config.vector_ring_high),
                   config.vector_slot_shift, 1u << config.vector_ring_shift};
    }
    bool closed() const { return closed_; }
    Cycle next() const { return std::min({consumed.next(), produced.next(), landed.next()}); }
    uint32_t vectors(uint16_t list) const { return vectors_[list % vectors_.size()]; }

    // `lists`: the packager whose headers pass; `taken`: the packet that leaves in this cycle, or
    // null.
    void step(const Departure& lists, Packet* taken, uint16_t credit) {
        // All blocks see the values of the registers at the beginning of the cycle.
        const bool offered = taken || lists.headers.has(), room = counts_.room(), full = full_;
        const bool index = telling_, granted = write(credit);
        tell(granted && index);
        ask(granted && !index);
        land();
        measure(full);
        pass_lists(offered, room, taken);
        if (taken) counts_.push(taken->count);
    }

private:
    struct Ring {
        uint64_t base;
        uint32_t shift, slots;
        uint64_t slot(uint16_t number) const {
            return base + (uint64_t(number & (slots - 1)) << shift);
        }
    };
    struct Event {
        bool valid = false;
        uint16_t count = 0;
    };
    enum State { CHOOSE, ADDRESS, ASK, TELL };
    static constexpr uint32_t SETTLED = 4;

    static uint64_t address(uint32_t low, uint32_t high) { return low | uint64_t{high} << 32; }

    static void pass(Clock* clock, Queue<uint16_t>& stored, Event& event, uint16_t& count) {
        if (event.valid) {
            count = event.count;
            clock->moved = true;
        }
        event.valid = stored.has();
        if (event.valid) event.count = stored.pop();
    }
    template <class T>
    void set(T& state, T value) {
        if (state == value) return;
        state = value;
        clock_->moved = true;
    }

    // The writer of packets of one record, an index of lists first; returns whether it took one.
    bool write(uint16_t credit) {
        const bool reads = state_ == ASK, tells = state_ == TELL;
        if (!(telling_ || reads || tells) || !out.headers.room() || !out.payload.room()) return false;
        Packet* packet = made_->get(telling_ || tells ? opcode::INDEX : opcode::READ, 0, 0);
        packet->count = packet->beats = 1;
        packet->credit = credit;
        if (telling_) {
            packet->address = address(config_->list_index_low, config_->list_ring_high);
            packet->words = {index_};
        } else if (tells) {
            packet->address = address(config_->vector_index_low, config_->vector_ring_high);
            packet->words = {out_index_};
        } else {
            const uint32_t count = vectors(number_);
            const uint64_t beats = (count + 31) / 32 + uint64_t{config_->vector_beats} * (
                (count + (1u << config_->vector_packing) - 1) >> config_->vector_packing);
            packet->address = vector_.slot(number_);
            packet->words = {uint32_t(beats * BEAT_BYTES), number_};
        }
        out.headers.push(packet);
        out.payload.push({packet, true});
        return true;
    }

    // rtl.rings.vector_ring.
    void ask(bool granted) {
        const uint16_t ahead = out_ - told_out_;
        const bool more = more_, due = due_ || (drained_ && !more_), calm = calm_;
        set(more_, read_ != filled_ && uint16_t(read_ - out_) < config_->rings_outstanding);
        set(due_, ahead && ahead >= config_->vector_every);
        set(drained_, ahead && read_ == out_);
        set(calm_, state_ == CHOOSE);
        switch (state_) {
        case CHOOSE:
            number_ = read_;
            out_index_ = out_;
            wait_ = 3;
            if (calm && due)
                set(state_, TELL);
            else if (calm && more)
                set(state_, ADDRESS);
            break;
        case ADDRESS:
            clock_->moved = true;
            if (!wait_--) state_ = ASK;
            break;
        case ASK:
            if (!granted) break;
            read_++;
            reads++;
            set(state_, CHOOSE);
            break;
        case TELL:
            if (!granted) break;
            told_out_ = out_index_;
            slots_told++;
            set(state_, CHOOSE);
        }
    }
    void land() {
        // A count passes two registers, the first of which makes it an event.
        pass(clock_, produced, filling_, filled_);
        const uint32_t place = out_ % landed_.size();
        set(full_, uint16_t(sent_ - out_) >= config_->rings_lists - 1);
        if (landed_[place]) {
            landed_[place] = false;
            out_++;
            slots++;
            clock_->moved = true;
        }
        if (landed.has()) landed_[landed.pop() % landed_.size()] = true;
    }
    // rtl.rings.slot_length: the number of vectors of each list, in the order of the lists.
    void measure(bool full) {
        if (measured_) {
            if (full) return;
            vectors_[sent_++ % vectors_.size()] = measuring_;
            measured_ = false;
            clock_->moved = true;
        } else if (bits_) {
            measured_ = --bits_ == 0;
            clock_->moved = true;
        } else if (counts_.has()) {
            measuring_ = counts_.pop();
            bits_ = 5;
        }
    }

    // rtl.rings.list_ring.
    void tell(bool granted) {
        const bool news = news_;
        set(news_, sent_ != index_);
        if (telling_ && granted) {
            lists_told++;
            set(telling_, false);
        } else if (!telling_ && news) {
            index_ = sent_;
            set(telling_, true);
        }
    }
    void pass_lists(bool offered, bool room, Packet* taken) {
        const bool settled = settled_ == SETTLED, free = free_;
        if (full_lists_ && offered) stall_full++;
        set(closed_, taken || !free || !settled || !room);
        set(full_lists_, settled && !free && !taken);
        set(free_, uint16_t(written_ - consumed_) < list_.slots);
        pass(clock_, consumed, consuming_, consumed_);
        if (taken) {
            taken->address = list_.slot(written_++);
            settled_ = 0;
            lists++;
        } else if (!settled) {
            settled_++;
            clock_->moved = true;
        }
    }

    Clock* clock_ = nullptr;
    const Config* config_ = nullptr;
    Packets* made_ = nullptr;
    Ring list_{}, vector_{};
    Queue<uint32_t> counts_;
    std::vector<uint32_t> vectors_;  // of each list
    std::vector<bool> landed_;
    Event consuming_, filling_;
    // Lists written, announced by the next index, consumed, and answerable; slots filled,
    // requested, read and announced.
    uint16_t written_ = 0, index_ = 0, consumed_ = 0, sent_ = 0, filled_ = 0, read_ = 0, out_ = 0;
    uint16_t told_out_ = 0, number_ = 0, out_index_ = 0;
    uint32_t settled_ = SETTLED, bits_ = 0, measuring_ = 0, wait_ = 0;
    State state_ = CHOOSE;
    bool free_ = true, closed_ = false, news_ = false, full_lists_ = false;
    bool telling_ = false, measured_ = false, full_ = false;
    bool more_ = false, due_ = false, drained_ = false, calm_ = true;
};

}  // namespace ember
