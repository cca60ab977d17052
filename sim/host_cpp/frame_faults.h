// Faults of frames between NICs: lost, duplicated, corrupted, late. Reference, bit for bit:
// sim.cluster.frame_faults.
#pragma once
#include <array>
#include <map>
#include <vector>

#include "formats.h"
#include "mix.h"

namespace ember {

class FrameFaults {
public:
    bool any() const { return !rules_.empty(); }
    void seed(uint64_t seed) { seed_ = seed; }
    void add(const FrameRule& rule) {
        rules_.push_back({rule, {}});
        numbers_.push_back(0);
    }
    // Number of frames by kind of fault, source, destination and opcode.
    std::map<std::array<uint64_t, 4>, uint64_t> injected;

    // Call `arrives(cycle, words)` for each copy of a frame that is not lost.
    template <class Arrives>
    void apply(uint64_t cycle, uint64_t source, uint64_t destination, const uint32_t* words,
               size_t count, Arrives arrives) {
        const uint64_t opcode = header::opcode.get(words), pair = source << 32 | destination;
        const uint64_t number = ++frames_[pair];
        about_.assign(rules_.size(), false);
        bool lost = false;
        uint64_t copies = 1;
        for (size_t place = 0; place < rules_.size(); place++) {
            auto& [rule, seen] = rules_[place];
            if (!matches(rule.source, source) || !matches(rule.destination, destination)
                || !matches(rule.opcode, opcode))
                continue;
            about_[place] = true;
            numbers_[place] = ++seen[pair];
            const bool loses = rule.kind == fault::DROP || rule.kind == fault::DOWN;
            if (lost || (!loses && rule.kind != fault::DUPLICATE)
                || !hit(place, cycle, pair, number, 0))
                continue;
            lost = loses;
            copies += rule.kind == fault::DUPLICATE;
            if (loses) injected[{rule.kind, source, destination, opcode}]++;
        }
        if (lost) return;
        if (copies > 1) injected[{fault::DUPLICATE, source, destination, opcode}] += copies - 1;
        for (uint64_t copy = 0; copy < copies; copy++) {
            uint64_t late = 0;
            changed_.assign(words, words + count * BEAT_WORDS);
            for (size_t place = 0; place < rules_.size(); place++) {
                const auto& rule = rules_[place].rule;
                if (!about_[place] || (rule.kind != fault::REORDER && rule.kind != fault::CORRUPT
                                      && rule.kind != fault::DELAY)
                    || !hit(place, cycle, pair, number, copy))
                    continue;
                injected[{rule.kind, source, destination, opcode}]++;
                const uint64_t amount = draw(place, pair, number, 2 * copy + 1);
                if (rule.kind == fault::CORRUPT) {
                    const uint64_t bit = amount % (count * DATA_WORDS * 32);
                    changed_[bit / (32 * DATA_WORDS) * BEAT_WORDS + bit / 32 % DATA_WORDS] ^=
                        uint32_t(1) << bit % 32;
                } else {
                    late += rule.kind == fault::DELAY ? rule.cycles : 1 + amount % rule.cycles;
                }
            }
            arrives(cycle + late, changed_);
        }
    }

private:
    struct Entry {
        FrameRule rule;
        std::map<uint64_t, uint64_t> seen;  // frames to which the rule applies, by pair
    };

    static bool matches(uint64_t wanted, uint64_t found) { return wanted == ANY || wanted == found; }
    uint64_t draw(size_t place, uint64_t pair, uint64_t number, uint64_t purpose) const {
        return mix64_of(seed_, pair, number, place, purpose);
    }
    bool hit(size_t place, uint64_t cycle, uint64_t pair, uint64_t number, uint64_t copy) const {
        const auto& rule = rules_[place].rule;
        if (rule.kind == fault::DOWN) return rule.first <= cycle && cycle < rule.end;
        if (!rule.spans) {
            const uint64_t drawn = draw(place, pair, number, 2 * copy);
            return drawn < rule.threshold || rule.threshold == FOREVER;
        }
        if (copy) return false;
        for (uint64_t span = 0; span < rule.spans; span++)
            if (rule.frames[2 * span] <= numbers_[place]
                && numbers_[place] <= rule.frames[2 * span + 1])
                return true;
        return false;
    }

    uint64_t seed_ = 0;
    std::vector<Entry> rules_;
    std::map<uint64_t, uint64_t> frames_;  // by pair
    std::vector<bool> about_;       // whether each rule applies to this frame
   
std::vector<uint64_t> numbers_;  // the number that each rule gives it
    std::vector<uint32_t> changed_;
};

}  // namespace ember
