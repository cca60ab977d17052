// The ring of completions of one NIC. Reference: sim.node.completions.Completions.
#pragma once
#include <cstdint>
#include <set>

namespace ember {

// Without slots: steps have no completions.
class Completions {
public:
    Completions(uint64_t slots, uint64_t base) : slots_(slots), base_(base) {}

    explicit operator bool() const { return slots_; }
    // Reserve a slot for the next step that starts; false if none is free.
    bool reserve() {
        if (slots_ && reserved_ - returned_ == slots_) return false;
        reserved_++;
        return true;
    }
    // Slots are given to openings in order; openings are numbered from 0.
    uint64_t open() { return opened_++; }
    uint64_t slot(uint64_t opening) const { return opening % slots_; }
    uint64_t lap(uint64_t opening) const { return (opening / slots_ + 1) % 256; }
    uint64_t address(uint64_t opening) const { return base_ + sizeof(uint32_t) * slot(opening); }
    uint64_t returned() const { return returned_; }
    // Return the slot of an opening, after the slots of earlier openings.
    void seen(uint64_t opening) {
        seen_.insert(opening);
        while (!seen_.empty() && *seen_.begin() == returned_) {
            seen_.erase(seen_.begin());
            returned_++;
        }
    }

private:
    const uint64_t slots_, base_;
    uint64_t reserved_ = 0, opened_ = 0, returned_ = 0;
    std::set<uint64_t> seen_;
};

}  // namespace ember
