// Beats at the ports of a NIC, and the packets in them.
#pragma once
#include <vector>

#include "formats.h"

namespace ember {

inline bool ends_packet(const uint32_t* beat) { return beat[LAST_BIT / 32] >> LAST_BIT % 32 & 1; }

// Record `k` after the header beat of a packet.
inline uint64_t record_at(const uint32_t* words, uint64_t k) {
    const uint32_t* record = words + (1 + k / RECORDS_PER_BEAT) * BEAT_WORDS
                             + 2 * (k % RECORDS_PER_BEAT);
    return record[0] | uint64_t{record[1]} << 32;
}

// Beats taken from an output, and their cycles.
struct Beats {
    std::vector<uint32_t> words;
    std::vector<uint64_t> cycles;

    // Call `whole(first beat, beats, cycle of the last)` for each packet; returns the beats of all.
    template <class Whole>
    size_t split(Whole whole) const {
        size_t first = 0;
        for (size_t beat = 0; beat < cycles.size(); beat++) {
            if (!ends_packet(&words[beat * BEAT_WORDS])) continue;
            whole(first, beat + 1 - first, cycles[beat]);
            first = beat + 1;
        }
        return first;
    }
    void drop(size_t beats) {
        words.erase(words.begin(), words.begin() + beats * BEAT_WORDS);
        cycles.erase(cycles.begin(), cycles.begin() + beats);
    }
};

}  // namespace ember
