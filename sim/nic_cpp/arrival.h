// Incoming packets: parsing, checks of queries and lookups, slots split by owner.
#pragma once
#include <algorithm>
#include <vector>

#include "beats.h"
#include "cache.h"
#include "nic_config.h"
#include "plan.h"
#include "queue.h"
#include "segments.h"

namespace ember {

// rtl.network.receiver and parser: one reader parses packets, a beat per cycle. Its consumers are
// always ready: all times are known when a packet has arrived.
class Parser {
public:
    uint64_t packets = 0, beats = 0;

    void init(const Config& config) { config_ = &config; }

    // A packet of `count` beats after its header, whose last beat arrived in cycle `end`, and whose
    // header is held for some cycles. Returns when its header is taken.
    template <class Records, class Vector>
    Cycle take(const uint32_t* words, uint32_t count, Cycle end, bool records, Records give,
               Vector land, Cycle held = 0, uint32_t vectors = 0) {
        const Config& config = *config_;
        const Cycle header = std::max(end + config.parser_header, free_) + held;
        free_ = header + 1 + count;
        packets++;
        beats += count;
        uint32_t left = held ? vectors : uint32_t(header::count.get(words));
        const uint32_t* payload = words + BEAT_WORDS;
        if (records) {
            for (uint32_t k = 0; k < count; k++) {
                RecordBeat beat{};
                beat.source = header::source.get(words);
                beat.step = header::step.get(words);
                beat.count = std::min(left, RECORDS_PER_BEAT);
                left -= beat.count;
                for (uint32_t r = 0; r < beat.count; r++)
                    beat.records[r] = record_at(words, k * RECORDS_PER_BEAT + r);
                give(beat, header + config.parser_record + k);
            }
            return header;
        }
        const uint32_t opcode = header::opcode.get(words);
        const bool dense = opcode == opcode::DENSE_VECTORS;
        // The header of bags' vectors states their size.
        const uint32_t size = opcode == opcode::BAG_VECTORS || opcode == opcode::GPU_BAGS
            ? uint32_t(header::final_beat.get(words)) + 1
            : dense ? config.value_beats : config.vector_beats;
        const uint32_t packing = dense ? config.value_packing : config.vector_packing;
        const uint32_t tags = (left + 31) / 32;
        for (uint32_t k = 0; k < left; k++) {
            const uint32_t word = payload[k / 32 * BEAT_WORDS + k % 32 / 2];
            const uint32_t tag = word >> 16 * (k % 2) & 0xFFFF;
            Cycle out = header + 1 + tags;
            if (config.vector_packing) {
                // Several vectors of a beat wait in a FIFO.
                out = std::max(out + (k >> packing) + 3, unpacked_ + 1);
                unpacked_ = out;
            } else {
                out += uint64_t{k + 1} * size - 1;
            }
            land(tag, out + 1);
        }
        return header;
    }

private:
    const Config* config_ = nullptr;
    Cycle free_ = 0, unpacked_ = 0;
};

struct Slot {
    uint64_t key;
    uint32_t hash, sample;
    uint16_t owner, step;
    uint8_t kind;
    bool last, ends;  // ends: it has no sample, and the share of its step is over
    bool bag;         // of an owner-pooled table: the row of its key is its number of keys
    // Of an EMPTY slot: it is a bag that repeats the bag at its position of the previous sample. Of
    // a bag: the next sample may repeat it.
    bool repeat, kept;
    uint32_t position;
    uint32_t beats;  // of a bag's vector
};

// rtl.query.checker: checks records one by one, and releases samples when they are complete.
class Checker {
public:
    uint64_t samples = 0, keys = 0, empty_bags = 0, bags = 0, bag_keys = 0;
    uint16_t consumed = 0;
    Queue<RecordBeat> beats;
    SegmentStore<Segment*> segments;  // of the bags of complete samples, in slot order

    void init(Clock* clock, const Config& config, const Plan& plan, Segments* given) {
        clock_ = clock;
        config_ = &config;
        plan_ = &plan;
        beats.init(clock, 2, 0);
        buffer_.skid(clock);
        staged_.skid(clock);
        split_.init(clock);
        items_.init(clock, given, true);
        checked_.skid(clock);
        segments.init(clock, config.bag_segments);
    }
    bool has() const { return valid_; }
    const Slot& front() const { return slots_[first_ % slots_.size()]; }

    // `taken`: the front slot was taken in this cycle.
    void step(bool taken) {
        move(taken);
        if (config_->owner_bags) segments.step();
    }

private:
    struct Record {
        uint64_t value;
        uint16_t step;
        Segment* segment;  // null for a record
    };
    void move(bool taken) {
        if (!taken && (valid_ || !whole_) && beats.empty() && !beat_.count && buffer_.empty()
            && split_.empty() && staged_.empty() && items_.empty() && checked_.empty())
            return;  // no state inside can change
        if (taken) {
            const Slot& slot = front();
            samples += slot.last;
            (slot.kind == record::EMPTY ? empty_bags : slot.bag ? bags : keys)++;
            if (slot.bag) bag_keys += query_bag::keys.of(slot.key);
            first_++;
        }
        store(taken);
        config_->owner_bags ? step_bags() : step_records();
    }
    void step_records() {
        const bool ready = staged_.room();
        if (split_.has() && ready) check(split_.front());
        split_.step(ready);
        wire(buffer_, split_.head);
        if (beat_.count && buffer_.room()) unpack();
        if (!beat_.count && beats.has()) beat_ = beats.pop();
    }
    void step_bags() {
        if (checked_.has() && staged_.room() && !segments.full()) {
            const Record record = checked_.pop();
            if (record.segment) segments.write(record.segment);
            if (!record.segment || record.segment->tail) check(record);
        }
        const bool ready = checked_.room();
        if (split_.has() && ready) checked_.push(split_.front());
        split_.step(ready);
        if (items_.out.has() && split_.head.room()) {
            const SplitItem item = items_.out.pop();
            consumed += item.last;
            split_.head.push({item.record, item.step, item.segment});
        }
        items_.step(beats);
    }
    // rtl.stream.PacketFIFO.
    void store(bool taken) {
        const bool room = level_ != config_->sample_slots;
        const bool pull = whole_ && (!valid_ || taken);
        if (pull || taken) clock_->moved = true;
        if (pull) {
            whole_--;
            level_--;
            valid_ = true;
        } else if (taken) {
            valid_ = false;
        }
        if (!staged_.has() || !room) return;
        if (last_ - first_ == slots_.size()) grow();
        const Slot slot = staged_.pop();
        slots_[last_++ % slots_.size()] = slot;
        level_++;
        open_++;
        if (slot.last) {
            whole_ += open_;
            open_ = 0;
        }
    }
    void grow() {
        std::vector<Slot> larger(std::max<size_t>(64, 2 * slots_.size()));
        for (uint64_t k = first_; k < last_; k++) larger[k % larger.size()] = slots_[k % slots_.size()];
        slots_.swap(larger);
    }
    void check(const Record& record) {
        const uint32_t kind = query::kind.of(record.value);
        if (kind == record::SAMPLE) {
            sample_ = sample::sample.of(record.value);
            left_ = sample::slots.of(record.value);
            ends_ = sample::ends.of(record.value);
            step_ = record.step;
            return;
        }
        Slot slot{};
        slot.kind = kind;
        slot.sample = sample_;
        slot.step = step_;
        slot.last = --left_ == 0;
        slot.bag = record.segment;
        if (slot.last && config_->owner_bags) segments.commit();
        slot.ends = ends_ && kind == record::EMPTY;
        if (kind != record::EMPTY) {
            const uint64_t table = query::table.of(record.value);
            slot.key = query::row.of(record.value) | table << query::row.bits;
            slot.hash = hash_of(*plan_, slot.key);
            slot.owner = owner_of(*plan_, table, slot.hash, config_->node);
            slot.beats = uint32_t(plan_->beats[table]);
        }
        staged_.push(slot);
    }
    void unpack() {
        buffer_.push({beat_.records[index_], uint16_t(beat_.step), nullptr});
        if (++index_ < beat_.count) return;
        index_ = 0;
        consumed++;
        beat_.count = 0;
    }

    Clock* clock_ = nullptr;
    const Config* config_ = nullptr;
    const Plan* plan_ = nullptr;
    RecordBeat beat_{};  // current beat; its count is 0 without a beat
    Queue<Record> buffer_;
    SegmentSplit items_;
    Split<Record> split_;
    Queue<Record> checked_;
    Queue<Slot> staged_;
    std::vector<Slot> slots_ = std::vector<Slot>(64);
    uint64_t first_ = 0, last_ = 0;
    uint32_t level_ = 0, whole_ = 0, open_ = 0, index_ = 0, left_ = 0, sample_ = 0;
    uint16_t step_ = 0;
    bool valid_ = false, ends_ = false;
};

// rtl.network.lookup_receiver and lookup_check: receives lookups of other nodes.
class Receiver {
public:
    uint64_t beats_taken = 0, records = 0;
    Queue<RecordBeat> beats;
    Queue<Lookup> out;
    std::vector<uint16_t> consumed;  // of each node: the credit in headers to it

    void init(Clock* clock, const Config& config, const Plan& plan) {
        clock_ = clock;
        config_ = &config;
        plan_ = &plan;
        consumed.assign(config.nodes, 0);
        beats.init(clock, 3, 0);
        output_.skid(clock);
        split_.init(clock);
        out.skid(clock);
    }
    void step() {
        if (!left_ && beats.empty() && output_.empty() && split_.empty()) return;
        const bool ready = out.room();
        if (split_.has() && ready) {
            out.push(split_.front().lookup);
            if (split_.front().last) consumed[split_.front().lookup.meta.node]++;
        }
        split_.step(ready);
        wire(output_, split_.head);
        if (left_ && output_.room()) unpack();
        if (!left_ && beats.has()) {
            current_ = beats.pop();
            left_ = current_.count;
            beats_taken++;
            records += left_;
        }
    }

private:
    struct Record {
        Lookup lookup;
        bool last;
    };
    void unpack() {
        const uint64_t record = current_.records[current_.count - left_--];
        const uint64_t key = lookup::row.of(record) | lookup::table.of(record) << lookup::row.bits;
        output_.push({{key, hash_of(*plan_, key),
                       {uint32_t(lookup::landing.of(record)), uint16_t(current_.source),
                        uint16_t(current_.step)}}, !left_});
    }

    Clock* clock_ = nullptr;
    const Config* config_ = nullptr;
    const Plan* plan_ = nullptr;
    Queue<Record> output_;
    Split<Record> split_;
    RecordBeat current_{};
    uint32_t left_ = 0;
};

}  // namespace ember
