// Answers of a NIC to its host's samples. Reference: sim.node.answers.Answers.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <list>
#include <vector>

#include "beats.h"

namespace ember {

struct Step : Asked {
    std::vector<uint64_t> kept;  // the records
    uint64_t sent = 0;           // of them
    double started = 0, ready = 0;
    bool begun = false;

    explicit Step(const Asked& asked)
        : Asked(asked), kept(asked.records, asked.records + asked.count) {}
};

// A protocol violation of a NIC.
struct Fault {
    enum Kind : uint64_t { NONE, ANSWER, OPCODE, COUNT, ROW, DENSE, LATE } kind = NONE;
    uint64_t value = 0;  // the sample, opcode, row or cycle
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
    std::vector<Refusal> refusals;
    std::vector<Step*> completed;  // by the packet taken last
    Fault fault;

    explicit Answers(bool interaction) : interaction_(interaction) {}

    // Place the answers of a packet; returns false, and does nothing, for one with another purpose.
    bool take(const uint32_t* words, uint64_t beats, const Head& head) {
        const uint32_t *tag = words + BEAT_WORDS, *values = tag + BEAT_WORDS;
        completed.clear();
        if (!answers(head.opcode)) return false;
        if (beats < 2 || (head.opcode == opcode::ERRORS && head.count > RECORDS_PER_BEAT * (beats - 1))) {
            fail(Fault::COUNT, head.opcode);
        } else if (head.opcode == opcode::ERRORS) {
            for (uint32_t k = 0; k < head.count; k++) {
                const uint64_t record = record_at(words, k);
                refuse(uint32_t(error::sample.of(record)), uint32_t(error::status.of(record)));
            }
        } else if (head.opcode == opcode::POOLED) {
            part(pooled_tag::sample.get(tag), pooled_tag::first_bag.get(tag), head.count, pooled_tag::last.get(tag),
                 values, beats - 2);
        } else if (head.opcode == opcode::RESULT_PART) {
            part(part_tag::sample.get(tag), part_tag::first_beat.get(tag), head.count, part_tag::last.get(tag),
                 values, beats - 2);
        } else {
            results(tag, beats - 1, head.count);
        }
        return true;
    }
    // Whether packets of an opcode only answer samples.
    bool answers(uint32_t opcode) const {
        return opcode == opcode::ERRORS
            || (interaction_ ? opcode == opcode::RESULTS || opcode == opcode::RESULT_PART
                             : opcode == opcode::POOLED);
    }
    Step* find(uint32_t sample) {
        for (auto& step : steps)
            if (sample - step.first < step.samples) return &step;
        return nullptr;
    }
    // The step in flight with `sample` in this node's share, or null.
    Step* own(uint32_t sample) {
        Step* step = find(sample);
        return step && sample - step->first - step->share_first < step->share ? step : nullptr;
    }
    void fail(Fault::Kind kind, uint64_t value) {
        if (fault.kind == Fault::NONE) fault = {kind, value};
    }

private:
    void part(uint32_t sample, uint32_t first, uint32_t count, bool last, const uint32_t* values,
              uint64_t beats) {
        Step* step = own(sample);
        const uint32_t at = step ? sample - step->first : 0;
        const uint64_t after = uint64_t{first} + count;
        if (!step || step->filled[at] != first || after > step->parts
            || last != (after == step->parts)
            || (step->values && (count * step->values + DATA_WORDS - 1) / DATA_WORDS != beats)) {
            fail(Fault::ANSWER, sample);
            return;
        }
        float* to = step->answers + (at * step->parts + first) * step->values;
        for (uint64_t left = count * step->values; left; values += BEAT_WORDS) {
            const uint64_t some = std::min<uint64_t>(left, DATA_WORDS);
            std::memcpy(to, values, some * sizeof(float));
            to += some;
            left -= some;
        }
        step->filled[at] = int64_t(after);
        if (last) answered(*step);
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
    void refuse(uint32_t sample, uint32_t status) {
        refusals.push_back({sample, status});
        if (!find(sample)) return;
        Step* step = own(sample);
        const uint32_t at = step ? sample - step->first : 0;
        if (!step || step->status[at] || uint64_t(step->filled[at]) == step->parts) {
            fail(Fault::ANSWER, sample);
            return;
        }
        step->status[at] = status;
        answered(*step);
    }
    void answered(Step& step) {
        if (!--*step.left) completed.push_back(&step);
    }

    const bool interaction_;
};

}  // namespace ember
