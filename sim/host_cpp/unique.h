// A share in which each distinct vector is sent once, with an index for each slot.
// Reference, bit for bit: sim.node.unique.UniqueShare.
// Compiled with -ffp-contract=off, like all code that computes values.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <vector>

#include "beats.h"
#include "owner_bags.h"

namespace ember {

class UniqueShare {
public:
    bool ended = false, endless = false;

    UniqueShare(const Asked& asked, uint64_t dimension)
        : asked_(asked), dimension_(dimension), indexed_(asked.share) {
        uint64_t end = 0;  // end of the slots of the samples so far
        for (uint64_t k = 0; starts_.size() < asked.share || kinds_.size() < end; k++) {
            const uint64_t record = asked.records[k];
            if (query::kind.of(record) == record::SAMPLE) {
                starts_.push_back(end);
                end += sample::slots.of(record);
            } else {
                kinds_.push_back(uint8_t(query::kind.of(record)));
                keys_.push_back(is_bag(record) ? uint16_t(query_bag::keys.of(record)) : 1);
                k += item_words(record) - 1;
            }
        }
        starts_.push_back(end);
        indices_.resize(kinds_.size());
    }

    // Take `count` vectors from number `first` on; with `last`, the last vector only marks the
    // end. Returns false if they are out of order. `status`: of the last vector, 0 for success.
    bool add_vectors(uint64_t first, bool last, uint64_t count, const uint32_t* values,
                     uint64_t beats, uint64_t status) {
        if (ended || first != count_ || (last && !count)
            || (count * dimension_ + DATA_WORDS - 1) / DATA_WORDS != beats)
            return false;
        const size_t before = vectors_.size();
        vectors_.resize(before + count * dimension_);
        for (uint64_t done = 0; done < count * dimension_; done += DATA_WORDS, values += BEAT_WORDS)
            std::memcpy(&vectors_[before + done], values,
                        std::min<uint64_t>(DATA_WORDS, count * dimension_ - done) * sizeof(float));
        for (uint64_t d = vectors_.size() - (last ? dimension_ : 0); d < vectors_.size(); d++) {
            uint32_t bits;
            std::memcpy(&bits, &vectors_[d], sizeof bits);
            if (bits) return false;
        }
        count_ += count - last;
        if (count_ > kinds_.size()) return false;
        ended = last;
        if (status) lost_[count_ - 1] = int64_t(status);
        if (dropped_ || !asked_.values) vectors_.clear();
        return true;
    }
    // Take `count` indices, 16 bits each in the beats at `words`, from a slot of the share's sample
    // `at` on. Returns false if they are out of order.
    bool add_indices(uint64_t at, uint64_t first_slot, uint64_t samples, bool last, uint64_t count,
                     const uint32_t* words) {
        const uint64_t end_sample = at + samples;
        if (end_sample > asked_.share) return false;
        const uint64_t begin = starts_[at] + first_slot, end = begin + count;
        if (begin >= starts_[at + 1] || end <= starts_[end_sample - 1] || end > starts_[end_sample]
            || last != (end == starts_[end_sample]))
            return false;
        // A sample between two others may have been rejected, but no sample can be incomplete in
        // the middle.
        if (begin != next_ && (begin < next_ || first_slot
                               || !std::binary_search(starts_.begin(), starts_.end(), next_)))
            return false;
        for (uint64_t k = at; k < end_sample; k++)
            if (status(k)) return false;
        for (uint64_t k = 0; k < count; k++) {
            const uint32_t word = words[k / INDICES_PER_BEAT * BEAT_WORDS + k % INDICES_PER_BEAT / 2];
            const uint16_t index = uint16_t(word >> 16 * (k % 2));
            if ((index == EMPTY_INDEX) != (kinds_[begin + k] == record::EMPTY)) return false;
            indices_[begin + k] = index;
        }
        next_ = end;
        std::fill(indexed_.begin() + at, indexed_.begin() + end_sample - !last, true);
        return true;
    }
    // Whether an index of the share's sample `at` has arrived.
    bool started(uint64_t at) const {
        return indexed_[at] || (starts_[at] < next_ && next_ < starts_[at + 1]);
    }
    // Whether all vectors have arrived, and the indices of every sample that is not rejected.
    bool whole() const {
        if (!ended) return false;
        for (uint64_t at = 0; at < asked_.share; at++)
            if (!indexed_[at] && !status(at)) return false;
        return true;
    }
    // Discard further packets of the share.
    void drop() {
        dropped_ = true;
        vectors_ = {};
    }
    // Pool the bags of all samples that are not rejected, in the order of slots. Returns false if
    // an index exceeds the vectors. A sample with a vector whose status is an error ends with the
    // status.
    // `whole`: parts of a complete answer.
    bool expand(bool mean, int64_t whole) {
        for (uint64_t at = 0; at < asked_.share; at++) {
            if (status(at)) continue;
            const uint64_t sample = asked_.share_first + at;
            uint64_t length = 0, part = 0;
            int64_t ends = 0;
            for (uint64_t slot = starts_[at]; slot < starts_[at + 1]; slot++) {
                const bool empty = kinds_[slot] == record::EMPTY;
                if (!empty && indices_[slot] >= count_) return false;
                if (const auto lost = lost_.find(indices_[slot]); !empty && lost != lost_.end())
                    ends = lost->second;
                if (!asked_.values) continue;
                float* bag = part_of(asked_, sample, part);
                if (empty) {
                    std::fill_n(bag, dimension_, 0.0f);
                    part++;
                    continue;
                }
                const float* vector = &vectors_[indices_[slot] * dimension_];
                if (!length) std::copy_n(vector, dimension_, bag);
                else
                    for (uint64_t d = 0; d < dimension_; d++) bag[d] += vector[d];
                length += keys_[slot];
                if (kinds_[slot] == record::KEY) continue;
                end_bag(bag, dimension_, int64_t(length), mean);
                part++;
                length = 0;
            }
            asked_.filled[sample] = whole;
            if (ends) asked_.status[sample] = ends;
            --*asked_.left;
        }
        return true;
    }

private:
    // The share's sample; the host calls it only while the share is in flight.
    int64_t status(uint64_t at) const { return asked_.status[asked_.share_first + at]; }

    const Asked asked_;
    const uint64_t dimension_;
    uint64_t count_ = 0, next_ = 0;  // vectors; the slot after the last index
    bool dropped_ = false;
    std::vector<uint64_t> starts_;  // first slot of each sample, and the end
    std::vector<uint8_t> kinds_;
    std::vector<uint16_t> keys_;  // pooled in the vector of each slot
    std::vector<uint16_t> indices_;
    std::vector<bool> indexed_;
    std::vector<float> vectors_;
    std::map<uint64_t, int64_t> lost_;  // statuses of vectors
};

}  // namespace ember
