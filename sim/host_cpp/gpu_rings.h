// The rings of request lists and vectors, and the resident kernel.
// Reference: sim.node.gpu_rings.GpuRings and sim.node.resident_kernel.ResidentKernel.
#pragma once
#include <algorithm>
#include <cstdint>
#include <deque>

#include "answers.h"
#include "gathers.h"

namespace ember {

// A list that the kernel has begun: its number, the time at which it is read, and the time at which
// its slot is filled.
struct Begun {
    bool any = false;
    uint64_t number = 0;
    double first = 0, end = 0;
};

class GpuRings {
public:
    uint64_t rows = 0, consumed = 0;  // lists that the kernel has read

    explicit GpuRings(const HostConfig& config)
        : lists_(config.lists), vectors_(config.vectors), most_(config.vectors_fit),
          dimension_(config.dimension), times_(config.gpu) {}

    explicit operator bool() const { return lists_.slots; }
    bool takes(uint32_t opcode) const {
        return lists_.slots
            && (opcode == opcode::LOOKUP_REQUESTS || opcode == opcode::INDEX
                || opcode == opcode::READ);
    }
    uint64_t launches() const { return begun_; }

    // Take a packet that the NIC has written to GPU memory; returns the violation, if any.
    Fault list(uint64_t address, List list) {
        const uint64_t number = told_ + written_.size();
        if (list.records.empty() || list.records.size() > most_)
            return {Fault::COUNT, opcode::LOOKUP_REQUESTS};
        if (address != address_of(lists_, number) || number - consumed == lists_.slots)
            return {Fault::LIST, number};
        written_.push_back(std::move(list));
        return {};
    }
    Fault index(uint64_t address, uint16_t index) {
        if (address == lists_.index) {
            const uint16_t ahead = uint16_t(index - told_);
            if (!ahead || ahead > written_.size()) return {Fault::TOLD, index};
            told_ += ahead;
            std::move(written_.begin(), written_.begin() + ahead, std::back_inserter(waiting_));
            written_.erase(written_.begin(), written_.begin() + ahead);
        } else if (address == vectors_.index) {
            const uint16_t ahead = uint16_t(index - emptied_);
            if (!ahead || ahead > asked_ - emptied_) return {Fault::EMPTIED, index};
            emptied_ += ahead;
            slots_.erase(slots_.begin(), slots_.begin() + ahead);
        } else {
            return {Fault::INDEX, address};
        }
        return {};
    }
    // Begin the next list, if it is announced and has a slot.
    Begun begin(double now) {
        if (waiting_.empty() || begun_ - emptied_ >= vectors_.slots) return {};
        const uint64_t count = waiting_.front().records.size();
        const double begun = now + times_.launch, first = std::max(begun, memory_free_);
        memory_free_ = first + double(count) * times_.cycles_per_row;
        rows += count;
        slots_.push_back(std::move(waiting_.front()));
        waiting_.pop_front();
        return {true, begun_++, first, std::max(begun + times_.kernel, memory_free_)};
    }
    // Fill the slot of a list that was begun, in the order of lists; returns the list.
    const List& fill(uint64_t number) {
        filled_ = number + 1;
        return slots_[number - emptied_];
    }
    // The list whose slot the NIC reads; null, and the violation, if the read is invalid.
    const List* read(uint64_t address, uint32_t bytes, uint16_t tag, Fault& why) {
        const uint64_t number = emptied_ + uint16_t(tag - emptied_);
        why = {Fault::READ, tag};
        if (number >= filled_) return nullptr;
        const List& list = slots_[number - emptied_];
        const uint64_t expected = address_of(vectors_, number), count = list.records.size();
        const uint64_t beats = tag_beats(count) + value_beats(count, dimension_);
        if (address != expected || bytes != beats * BEAT_BYTES) return nullptr;
        asked_ = std::max(asked_, number + 1);
        why = {};
        return &list;
    }

private:
    static uint64_t address_of(const RingPlace& ring, uint64_t number) {
        return ring.base + ring.slot_bytes * (number % ring.slots);
    }

    const RingPlace lists_, vectors_;
    const uint64_t most_, dimension_;
    const GpuTimes times_;
    // Numbers start at 0: lists announced and begun; slots filled, requested and read.
    uint64_t told_ = 0, begun_ = 0, filled_ = 0, asked_ = 0, emptied_ = 0;
    double memory_free_ = 0;
    std::deque<List> written_, waiting_;
    std::deque<List> slots_;  // lists begun whose slots were not read
};

}  // namespace ember
