// A bit field of a record or a header.
#pragma once
#include <cstdint>

namespace ember {

struct Field {
    uint32_t bit, bits;

    // In the beat that begins at `words`.
    constexpr uint64_t get(const uint32_t* words) const {
        uint64_t value = words[bit / 32] >> bit % 32;
        for (uint32_t taken = 32 - bit % 32, word = bit / 32 + 1; taken < bits; taken += 32)
            value |= uint64_t{words[word++]} << taken;
        return value & mask();
    }
    constexpr void set(uint32_t* words, uint64_t value) const {
        for (uint32_t k = 0; k < bits; k++)
            words[(bit + k) / 32] |= uint32_t(value >> k & 1) << (bit + k) % 32;
    }
    // Read the field of a record; place a value in one.
    constexpr uint64_t of(uint64_t record) const { return record >> bit & mask(); }
    constexpr uint64_t at(uint64_t value) const { return (value & mask()) << bit; }

private:
    constexpr uint64_t mask() const { return bits < 64 ? (uint64_t{1} << bits) - 1 : ~uint64_t(0); }
};

}  // namespace ember
