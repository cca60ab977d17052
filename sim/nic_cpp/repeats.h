// Bags that repeat the bag at their position of the previous sample. References: rtl.query.repeats,
// rtl.interaction.repeat_store.
#pragma once
#include <algorithm>
#include <vector>

#include "arrival.h"
#include "landing.h"

namespace ember {

// rtl.query.repeats: replaces a repeated bag by an EMPTY slot, and drops its segments.
class BagRepeats {
public:
    uint64_t bags = 0, repeats = 0, repeated_keys = 0, beyond = 0;
    Queue<Slot> slots;
    Queue<Segment*> words;

    void init(Clock* clock, const Config& config, Segments* given) {
        clock_ = clock;
        config_ = &config;
        given_ = given;
        records_.resize(config.repeat_positions);
        slots.skid(clock);
        words.skid(clock);
        places_.init(clock, config.repeat_places);
        held_.fifo(clock, config.repeat_held);
        decided_.fifo(clock, config.repeat_places);
        judged_.init(clock, config.repeat_verdict, 0);
    }
    // Slots that have their verdict.
    bool has() const { return judged_.has() && decided_.room(); }
    const Slot& front() const { return judged_.front().slot; }
    // The segments of bags that repeat no bag.
    struct Bags {
        BagRepeats& all;
        bool has() const { return all.held_.has() && all.decided_.has() && !all.decided_.front(); }
        Segment* pop() { return all.release(); }
    };
    Bags segments() { return {*this}; }

    // `taken`: the front slot was taken in this cycle.
    void step(bool taken) {
        if (slots.empty() && words.empty() && judged_.empty() && held_.empty())
            return;  // no state inside can change
        if (taken) leave();
        if (held_.has() && decided_.has() && decided_.front()) given_->give(release());
        const bool bag = slots.has() && slots.front().bag;
        if (slots.has() && (!bag || words.has()) && places_.any() && held_.room()
            && clock_->now >= calm_)
            enter(bag);
    }

private:
    struct Record {
        uint64_t head;
        std::vector<uint64_t> words;  // behind the head
        uint32_t size;                // of `words` where they were not remembered too
        bool valid;
    };
    struct Judged {
        Slot slot;
        uint32_t keys;  // of a bag
        bool bag;
    };

    Segment* release() {
        Segment* segment = held_.pop();
        if (segment->tail) decided_.pop();
        return segment;
    }
    void leave() {
        const Judged item = judged_.pop();
        const Slot& slot = item.slot;
        places_.give(config_->place_free);
        if (!item.bag) return;
        decided_.push(slot.repeat);
        bags++;
        repeats += slot.repeat;
        if (slot.repeat) repeated_keys += item.keys;
        beyond += !slot.repeat && !slot.kept && config_->repeats;
    }
    // Take a slot without a bag, or a segment of a bag.
    void enter(bool bag) {
        if (bag) {
            Segment* segment = words.pop();
            if (segment->head) {
                head_ = segment->words[0];
                behind_.clear();
            }
            behind_.insert(behind_.end(), segment->words + segment->head,
                           segment->words + segment->size);
            held_.push(segment);
            if (!segment->tail) return;
        }
        Slot slot = slots.pop();
        Judged item{slot, bag ? uint32_t(query_bag::keys.of(head_)) : 0, bag};
        judge(item.slot);
        places_.take();
        judged_.push(item);
    }
    // The words of a bag, with 0 instead of halves that contain no row and no weight.
    void mask() {
        const uint64_t keys = query_bag::keys.of(head_), low = 0xFFFFFFFF;
        if (keys % 2 == 0) return;
        if (!query_bag::wide.of(head_)) behind_[keys / 2] &= low;
        if (query_bag::weighted.of(head_)) behind_.back() &= low;
    }
    static uint64_t compared(uint64_t head) {
        return query_bag::keys.at(query_bag::keys.of(head))
               | query_bag::wide.at(query_bag::wide.of(head))
               | query_bag::weighted.at(query_bag::weighted.of(head))
               | query_bag::table.at(query_bag::table.of(head));
    }
    void judge(Slot& slot) {
        const bool bag = slot.bag, counts = slot.kind != record::KEY;
        const bool inside = position_ != config_->repeat_positions;
        const bool follows = slot.sample == sample_ && slot.step == step_;
        const bool known = counts && position_ < before_ && follows && records_[position_].valid;
        const uint32_t gone = known ? records_[position_].size : 0;
        const uint32_t base = first_ ? (follows ? own_ : 0) : used_;
        const uint32_t size = bag ? uint32_t(behind_.size()) : 0;
        const bool fits = bag && config_->repeats && inside
                          && uint64_t(base) + size <= config_->repeat_words;
        bool again = false;
        if (bag) {
            mask();
            again = known && records_[position_].head == compared(head_)
                    && records_[position_].words == behind_;
        }
        if (counts && inside) {
            Record& record = records_[position_];
            record.valid = fits;
            record.size = size;
            if (fits) {
                record.head = compared(head_);
                record.words.swap(behind_);
            }
        }
        used_ = base + (fits ? size : 0) - gone;
        own_ = (first_ ? 0 : own_) + (fits ? size : 0);
        slot.position = position_;
        slot.repeat = again;
        slot.kept = fits && !again;
        first_ = slot.last;
        const uint32_t position = position_;
        position_ += counts && inside;
        if (slot.last) {
            sample_ = slot.sample + 1;
            step_ = slot.step;
            before_ = position + inside;
            position_ = 0;
            if (position + 1 < config_->repeat_near) calm_ = clock_->later(config_->repeat_near);
        }
        if (!again) return;
        slot.kind = record::EMPTY;
        slot.bag = false;
    }

    Clock* clock_ = nullptr;
    const Config* config_ = nullptr;
    Segments* given_ = nullptr;
    std::vector<Record> records_;
    Credits places_;
    Queue<Segment*> held_;
    Queue<char> decided_;  // whether each bag is a repeat
    Queue<Judged> judged_;
    // The open bag: head, and words behind it.
    uint64_t head_ = 0;
    std::vector<uint64_t> behind_;
    // Words of the previous sample from this bag on, and of this sample; those of this sample.
    uint32_t used_ = 0, own_ = 0;
    uint32_t position_ = 0, before_ = 0, sample_ = 0;
    uint16_t step_ = 0;
    bool first_ = true;
    Cycle calm_ = 0;  // no slot enters before
};

// rtl.interaction.repeat_store: gives repeats their vectors, which have no values here.
class RepeatStore {
public:
    uint64_t kept = 0, repeats = 0;
    Queue<PooledBeat> out;

    void init(Clock* clock) {
        read_.init(clock, 1, 0);
        out.skid(clock);
    }
    void step(Queue<PooledBeat>& in) {
        if (in.empty() && read_.empty()) return;
        wire(read_, out);
        if (!in.has() || !read_.empty()) return;
        const PooledBeat beat = in.pop();
        kept += beat.last && beat.kept;
        repeats += beat.last && beat.repeat;
        read_.push(beat);
    }

private:
    Queue<PooledBeat> read_;
};

}  // namespace ember
