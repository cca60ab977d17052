// rtl.rings.completion and step_table: notifies the host of each step whose answers have all left.
#pragma once
#include <vector>

#include "arrival.h"
#include "packets.h"

namespace ember {

// No step has an error or is late: its host opens it in time, and sends only valid requests.
class CompletionWriter {
public:
    uint64_t opened = 0, completed = 0, flushes = 0, finished = 0;
    Departure out;
    Queue<RecordBeat> opens, flushed;

    void init(Clock* clock, const Config& config, Packets* packets) {
        clock_ = clock;
        config_ = &config;
        made_ = packets;
        out.init(clock);
        opens.init(clock, 0, 0);
        flushed.init(clock, 0, 0);
        // Through the messages' records and two buffers, then the table.
        steps_.init(clock, config.step_opened, 0);
        answered_.init(clock, 3, 0);
        finished_.init(clock, config.step_finished - 3, 0);
        answers_.init(clock, config.flush_answered, 0);
    }
    // A packet whose header leaves in this cycle answers samples of `step`.
    void answer(uint16_t step, uint32_t samples) {
        if (samples && !open_.empty()) answered_.push({step, samples});
    }
    void step(uint16_t credit) {
        if (opens.has()) {
            const RecordBeat beat = opens.pop();
            for (uint32_t k = 0; k < beat.count; k++) steps_.push(beat.records[k]);
        }
        if (flushed.has()) {
            flushed.pop();
            answers_.push(0);
        }
        if (open_.empty() && steps_.empty()) return;
        write(credit);
        while (answered_.has()) count(answered_.pop());
        if (steps_.has()) begin(steps_.pop());
    }

private:
    enum State { WAIT, LOAD, DECIDE, FLUSH, LEAVE, FLUSHED, WORD };
    struct Answered {
        uint16_t step;
        uint32_t samples;
    };
    struct Step {
        uint16_t step;
        uint64_t number;
        int64_t left;
    };

    void begin(uint64_t record) {
        open_.push_back({uint16_t(opening::step.of(record)), opened++,
                         int64_t(opening::samples.of(record))});
        finish(open_.back());
    }
    void count(const Answered& answered) {
        for (Step& step : open_) {
            if (step.step != answered.step || step.left <= 0) continue;
            step.left -= answered.samples;
            finish(step);
        }
    }
    void finish(const Step& step) {
        if (step.left > 0) return;
        finished++;
        finished_.push(step);
    }
    void write(uint16_t credit) {
        const State before = state_;
        switch (state_) {
        case WAIT:
            if (!finished_.has()) break;
            now_ = finished_.pop();
            state_ = LOAD;
            break;
        case LOAD: state_ = DECIDE; break;
        case DECIDE: state_ = config_->completion_flush ? FLUSH : WORD; break;
        case FLUSH:
            if (!send(opcode::FLUSH, slot() | uint64_t(++tag_) << 16, credit)) break;
            flushes++;
            state_ = LEAVE;
            break;
        case LEAVE:
            if (out.headers.empty() && out.payload.empty()) state_ = FLUSHED;
            break;
        case FLUSHED:
            if (!answers_.has()) break;
            answers_.pop();
            state_ = WORD;
            break;
        case WORD:
            if (!send(opcode::COMPLETION, completion::step.at(now_.step) | completion::lap.at(
                          now_.number / config_->completion_slots + 1)
                      | completion::slot.at(slot()), credit)) break;
            completed++;
            std::erase_if(open_, [&](const Step& step) { return step.number == now_.number; });
            state_ = WAIT;
        }
        if (state_ != before) clock_->moved = true;
    }
    uint32_t slot() const { return now_.number % config_->completion_slots; }
    bool send(uint32_t opcode, uint64_t record, uint16_t credit) {
        if (!out.headers.room() || !out.payload.room()) return false;
        Packet* packet = made_->get(opcode, 0, now_.step);
        packet->count = packet->beats = 1;
        packet->credit = credit;
        packet->address = config_->completion_base_low
                          | uint64_t{config_->completion_base_high} << 32 | slot() << 2;
        packet->words = {uint32_t(record), uint32_t(record >> 32)};
        out.headers.push(packet);
        out.payload.push({packet, true});
        return true;
    }

    Clock* clock_ = nullptr;
    const Config* config_ = nullptr;
    Packets* made_ = nullptr;
    Queue<uint64_t> steps_;
    Queue<Answered> answered_;
    Queue<Step> finished_;
    Queue<char> answers_;
    std::vector<Step> open_;
    Step now_{};
    uint16_t tag_ = 0;
    State state_ = WAIT;
};

}  // namespace ember
