// Answers of a NIC to its host's samples. Reference: sim.node.answers.Answers.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <list>
#include <map>
#include <memory>
#include <vector>

#include "completions.h"
#include "unique.h"

namespace ember {

struct Step : Asked {
    std::vector<uint64_t> kept;  // the records
    uint64_t sent = 0;           // records sent
    double started = 0, ready = 0;
    bool begun = false, open = false, given_up = false;
    bool pooling = false, answered = false;  // own bags are pooled; by the NIC, meanwhile
    uint64_t pooled = 0;                     // parts of each answer that the host has pooled
    uint64_t opening = 0;                 // number of the opening
    std::unique_ptr<UniqueShare> unique;  // until its last part has arrived
    std::vector<float> dense_kept;        // dense vectors after a share was given up

    explicit Step(const Asked& asked)
        : Asked(asked), kept(asked.records, asked.records + asked.count) {}
    bool sends() const { return count; }
    // Parts of an answer that has arrived.
    int64_t whole() const { return int64_t(sent_parts + pooled); }
};

// A protocol violation of a NIC.
struct Fault {
    enum Kind : uint64_t {
        NONE, ANSWER, OPCODE, COUNT, ROW, DENSE, LATE, VECTORS, INDICES, CLOSED, SLOT, EARLY,
        LIST, TOLD, EMPTIED, INDEX, READ, ROW_READ, BAGS
    } kind = NONE;
    uint64_t value = 0;  // the sample, opcode, row, cycle, step, count, address or slot
};

struct Refusal {
    uint64_t sample, status;
};

struct Head {
    uint32_t opcode, step, credit, count;
};

class Answers {
public:
    std::list<Step> steps;  // in flight, in the order in which they were handed out
    std::list<Step> given_up;  // ended; only find() and own() use them
    Completions completions;
    std::vector<Refusal> refusals;
    std::vector<Step*> completed;  // by the last packet
    uint64_t placed = 0;           // awaited parts of answers, and rejections
    Fault fault;

    explicit Answers(const HostConfig& config)
        : completions(config.completion_slots, config.completion_base),
          interaction_(config.interaction),
          unique_(config.unique), mean_(config.mean), dimension_(config.dimension) {}

    // Start accepting answers; returns the step.
    Step& open(const Asked& asked) {
        Step& step = steps.emplace_back(asked);
        if (unique_ && step.sends()) {
            step.unique = std::make_unique<UniqueShare>(asked, dimension_);
            shares_.push_back(&step);
        }
        return step;
    }
    // Place the answers of a packet; return false, without effect, for other packets.
    bool take(const uint32_t* words, uint64_t beats, const Head& head) {
        const uint32_t *tag = words + BEAT_WORDS, *values = tag + BEAT_WORDS;
        completed.clear();
        if (!answers(head.opcode)) return false;
        if (beats < 2 || (head.opcode == opcode::ERRORS && head.count > RECORDS_PER_BEAT * (beats - 1))) {
            fail(Fault::COUNT, head.opcode);
        } else if (head.opcode == opcode::ERRORS) {
            for (uint32_t k = 0; k < head.count; k++) {
                const uint64_t record = record_at(words, k);
                refuse(uint32_t(error::sample.of(record)), uint32_t(error::step.of(record)),
                       uint32_t(error::status.of(record)));
            }
        } else if (head.opcode == opcode::COMPLETION) {
            complete(head, words, beats);
        } else if (head.opcode == opcode::INDICES) {
            indices(head, tag, beats - 2);
        } else if (unique_) {
            vectors(head, tag, beats - 2);
        } else if (head.opcode == opcode::POOLED) {
            part(pooled_tag::sample.get(tag), pooled_tag::first_bag.get(tag), head.count, pooled_tag::last.get(tag),
                 values, beats - 2, pooled_tag::status.get(tag));
        } else if (head.opcode == opcode::RESULT_PART) {
            part(part_tag::sample.get(tag), part_tag::first_beat.get(tag), head.count, part_tag::last.get(tag),
                 values, beats - 2, part_tag::status.get(tag));
        } else {
            results(tag, beats - 1, head.count);
        }
        return true;
    }
    // Whether packets of an opcode only answer samples.
    bool answers(uint32_t opcode) const {
        return opcode == opcode::ERRORS || (completions && opcode == opcode::COMPLETION)
            || (interaction_ ? opcode == opcode::RESULTS || opcode == opcode::RESULT_PART
                             : opcode == opcode::POOLED)
            || (unique_ && opcode == opcode::INDICES);
    }
    // The step in flight, or else the step given up, with `sample`; null if there is neither.
    Step* find(uint32_t sample) {
        for (auto* from : {&steps, &given_up})
            for (auto& step : *from)
                if (sample - step.first < step.samples) return &step;
        return nullptr;
    }
    // As find(), if `sample` is in this node's share.
    Step* own(uint32_t sample) {
        Step* step = find(sample);
        return step && sample - step->first - step->share_first < step->share ? step : nullptr;
    }
    void fail(Fault::Kind kind, uint64_t value) {
        if (fault.kind == Fault::NONE) fault = {kind, value};
    }

private:
    void part(uint32_t sample, uint32_t first, uint32_t count, bool last, const uint32_t* values,
              uint64_t beats, uint64_t status = 0) {
        if (late(sample)) return;
        Step* step = own(sample);
        const uint32_t at = step ? sample - step->first : 0;
        const uint64_t after = uint64_t{first} + count;
        if (!step || uint64_t(step->filled[at]) != step->pooled + first || after > step->sent_parts
            || last != (after == step->sent_parts)
            || (step->values && (count * step->values + DATA_WORDS - 1) / DATA_WORDS != beats)) {
            fail(Fault::ANSWER, sample);
            return;
        }
        for (uint64_t k = 0, from = 0; step->values && k < count; k++)
            for (float *to = part_of(*step, at, first + k), *end = to + step->values; to < end;) {
                const uint64_t some = std::min<uint64_t>(end - to, DATA_WORDS - from % DATA_WORDS);
                std::memcpy(to, values + from / DATA_WORDS * BEAT_WORDS + from % DATA_WORDS,
                            some * sizeof(float));
                to += some;
                from += some;
            }
        step->filled[at] = int64_t(step->pooled + after);
        placed++;
        if (status) lost_[sample] = int64_t(status);
        if (!last) return;
        if (const auto lost = lost_.find(sample); lost != lost_.end()) {
            step->status[at] = lost->second;
            lost_.erase(lost);
        }
        answered(*step);
    }
    void results(const uint32_t* tags, uint64_t beats, uint32_t count) {
        const uint64_t first = (count + DATA_WORDS - 1) / DATA_WORDS;
        const uint64_t each = count && beats > first ? (beats - first) / count : 0;
        if (!each || first + each * count != beats) {
            fail(Fault::ANSWER, count ? tags[0] : 0);
            return;
        }
        for (uint32_t k = 0; k < count; k++)
            part(tags[k / DATA_WORDS * BEAT_WORDS + k % DATA_WORDS], 0, uint32_t(each), true,
                 tags + (first + k * each) * BEAT_WORDS, each);
    }
    // Whether a sample is of a step that was given up.
    bool late(uint32_t sample) {
        const Step* step = find(sample);
        return step && step->given_up;
    }
    void refuse(uint32_t sample, uint32_t number, uint32_t status) {
        refusals.push_back({sample, status});
        if (unique_ && sample == END_SAMPLE) return refuse_end(number, status);
        if (!find(sample) || late(sample)) return;
        Step* step = own(sample);
        const uint32_t at = step ? sample - step->first : 0;
        if (!step || step->status[at] || step->filled[at] == step->whole()
            || (step->unique && step->unique->started(at - step->share_first))) {
            fail(Fault::ANSWER, sample);
            return;
        }
        step->status[at] = status;
        placed++;
        const bool last = !--*step->left;
        if (unique_) check(*step);
        else if (last) completes(*step);
    }
    void answered(Step& step) {
        if (!--*step.left) completes(step);
    }
    // All answers of a share have arrived; a completion may have to follow.
    void completes(Step& step) {
        if (!completions) completed.push_back(&step);
    }
    // End a share although answers are missing.
    void give_up(Step& step, uint64_t status) {
        for (uint32_t at = step.share_first; at < step.share_first + step.share; at++)
            if (!step.status[at] && step.filled[at] < step.whole())
                step.status[at] = int64_t(status);
        *step.left = 0;
        step.given_up = true;
        if (step.unique) {
            step.unique->drop();
            if (step.unique->ended) forget(step);
        }
        completed.push_back(&step);
    }

    // Completions. Reference: Answers._complete and sim.node.completions.Completions.take.
    void complete(const Head& head, const uint32_t* words, uint64_t beats) {
        if (head.count != 1 || beats != 2) return fail(Fault::COUNT, head.opcode);
        const uint64_t word = record_at(words, 0);
        const uint64_t number = completion::step.of(word), status = completion::status.of(word);
        const auto found = std::find_if(steps.begin(), steps.end(), [&](const Step& step) {
            return step.open && (step.step & 0xFFFF) == number;
        });
        if (found == steps.end()) return fail(Fault::CLOSED, number);
        if (completion::slot.of(word) != completions.slot(found->opening)
            || completion::lap.of(word) != completions.lap(found->opening)
            || host_header::address.get(words) != completions.address(found->opening))
            return fail(Fault::SLOT, number);
        found->open = false;
        if (!*found->left && !found->unique) return completed.push_back(&*found);
        if (!status) return fail(Fault::EARLY, number);
        give_up(*found, status);
    }

    // Delivery `unique`. Reference: sim.node.unique.UniqueShares.
    Step* share_of(uint64_t number) {
        for (Step* step : shares_)
            if ((step->step & 0xFFFF) == number) return step;
        return nullptr;
    }
    void forget(Step& step) {
        shares_.remove(&step);
        step.unique.reset();
    }
    void check(Step& step) {
        if (!step.unique) return;
        if (step.given_up) {
            if (step.unique->ended) forget(step);
        } else if (step.unique->whole()) {
            if (!step.unique->expand(mean_, step.whole())) return fail(Fault::INDICES, step.first);
            forget(step);
            completes(step);
        }
    }
    void vectors(const Head& head, const uint32_t* tag, uint64_t beats) {
        Step* step = share_of(head.step);
        bool good = step && pooled_tag::sample.get(tag) == NO_SAMPLE;
        for (Step* older : shares_) {
            if (older == step) break;
            good &= older->unique->ended || older->unique->endless;
        }
        good = good && step->unique->add_vectors(pooled_tag::first_bag.get(tag), pooled_tag::last.get(tag), head.count,
                                                 tag + BEAT_WORDS, beats, pooled_tag::status.get(tag));
        if (!good) return fail(Fault::VECTORS, head.step);
        placed++;
        check(*step);
    }
    void indices(const Head& head, const uint32_t* tag, uint64_t beats) {
        const uint32_t sample = uint32_t(index_tag::sample.get(tag));
        const uint64_t samples = index_tag::samples.get(tag);
        Step* step = own(sample);
        if (!step || head.step != (step->step & 0xFFFF) || step->step < indexed_ || !head.count
            || samples < 1 || samples > head.count
            || beats != (head.count + INDICES_PER_BEAT - 1) / INDICES_PER_BEAT)
            return fail(Fault::INDICES, sample);
        indexed_ = step->step;
        placed += step->given_up;
        if (step->given_up) return;
        if (!step->unique
            || !step->unique->add_indices(sample - step->first - step->share_first, index_tag::first_slot.get(tag),
                                          samples, index_tag::last.get(tag), head.count, tag + BEAT_WORDS))
            return fail(Fault::INDICES, sample);
        placed++;
        check(*step);
    }
    void refuse_end(uint32_t number, uint32_t status) {
        Step* step = share_of(number);
        if (!step || step->unique->ended) return;
        step->unique->endless = true;
        if (!step->given_up && !completions) give_up(*step, status);
    }

    const bool interaction_, unique_, mean_;
    const uint64_t dimension_;
    std::list<Step*> shares_;  // incomplete shares, in the order of `steps`
    uint64_t indexed_ = 0;     // step of the last indices
    std::map<uint32_t, int64_t> lost_;  // statuses of samples whose answers have not ended
};

}  // namespace ember
