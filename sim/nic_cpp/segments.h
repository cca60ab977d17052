// Segments: the words of a bag in one beat. Bags of owner-pooled tables pass a NIC in segments.
#pragma once
#include <algorithm>
#include <memory>
#include <vector>

#include "nic_config.h"
#include "owner_bags.h"
#include "queue.h"

namespace ember {

struct RecordBeat {
    uint64_t records[RECORDS_PER_BEAT];
    uint32_t count, source, step;
};

// rtl.keys.owner_split and the stages of rtl.bags.splitter: a pipeline of fixed length. It stalls
// while its output is not taken.
template <class T>
class Split {
public:
    Queue<T> head;

    void init(Clock* clock) {
        clock_ = clock;
        head.skid(clock);
    }
    bool empty() const { return !inside_ && head.empty(); }
    bool has() const { return stages_[(first_ + 3) % 4].valid; }
    const T& front() const { return stages_[(first_ + 3) % 4].value; }
    void step(bool ready) { step(ready, head); }
    // With another input than `head`.
    void step(bool ready, Queue<T>& from) {
        if (!ready && has()) return;
        const bool enters = from.has();
        if (!enters && !inside_) return;
        clock_->moved = true;
        inside_ += enters - has();
        first_ = (first_ + 3) % 4;
        stages_[first_].valid = enters;
        if (enters) stages_[first_].value = from.pop();
    }

private:
    struct Stage {
        T value;
        bool valid = false;
    };
    Clock* clock_ = nullptr;
    Stage stages_[4];
    uint32_t first_ = 0, inside_ = 0;
};

// rtl.bags.layouts.Segment: `size` words, the first one is the head of the bag if `head`.
struct Segment {
    uint64_t words[RECORDS_PER_BEAT];
    uint32_t size;
    bool head, tail;
};

// A pool of segments for reuse.
class Segments {
public:
    Segment* get() {
        if (free_.empty()) {
            all_.push_back(std::make_unique<Segment>());
            free_.push_back(all_.back().get());
        }
        Segment* segment = free_.back();
        free_.pop_back();
        return segment;
    }
    void give(Segment* segment) { free_.push_back(segment); }

private:
    std::vector<std::unique_ptr<Segment>> all_;
    std::vector<Segment*> free_;
};

// A segment, with the head of its bag, or a record, without a segment.
struct SplitItem {
    uint64_t record;
    Segment* segment;
    uint16_t node, step;
    bool last;  // of its beat
    bool tail() const { return !segment || segment->tail; }
};

// rtl.bags.splitter: splits beats into records and segments, one per cycle.
class SegmentSplit {
public:
    Queue<SplitItem> out;

    // `plain`: beats also contain records.
    void init(Clock* clock, Segments* segments, bool plain) {
        segments_ = segments;
        plain_ = plain;
        beats_.init(clock);
        out.skid(clock);
    }
    bool empty() const { return beats_.empty() && out.empty(); }
    void step(Queue<RecordBeat>& in) {
        if (beats_.empty() && in.empty()) return;
        beats_.step(beats_.has() && out.room() && give(beats_.front()), in);
    }

private:
    // Output the next item; return whether it is the last of the beat.
    bool give(const RecordBeat& beat) {
        const bool head = !left_;
        if (head) {
            head_ = beat.records[index_];
            if (plain_ && !is_bag(head_)) {
                const bool last = ++index_ == beat.count;
                out.push({head_, nullptr, uint16_t(beat.source), uint16_t(beat.step), last});
                if (last) index_ = 0;
                return last;
            }
            left_ = words_of(head_);
        }
        Segment* segment = segments_->get();
        segment->size = std::min(left_, beat.count - index_);
        std::copy_n(beat.records + index_, segment->size, segment->words);
        left_ -= segment->size;
        index_ += segment->size;
        segment->head = head;
        segment->tail = !left_;
        const bool last = index_ == beat.count;
        out.push({head_, segment, uint16_t(beat.source), uint16_t(beat.step), last});
        if (last) index_ = 0;
        return last;
    }

    Segments* segments_ = nullptr;
    Split<RecordBeat> beats_;
    bool plain_ = true;
    uint64_t head_ = 0;
    uint32_t index_ = 0, left_ = 0;  // of the beat; words of the open bag in later segments
};

// rtl.bags.store: a FIFO of items that can be read after their commit. Its registers change in
// step(), after its reader and its writer.
template <class T>
class SegmentStore {
public:
    void init(Clock* clock, uint32_t depth) {
        clock_ = clock;
        depth_ = depth;
        items_.init(clock, 0, 0);
    }
    bool has() const { return valid_; }
    bool full() const { return full_; }
    T pop() {
        taken_ = true;
        return items_.pop();
    }
    void write(const T& item) {
        items_.put(item, 0);
        written_ = true;
    }
    void commit() { commit_ = true; }
    void step() {
        const bool pull = some_ && (!valid_ || taken_);
        if (!pull && !taken_ && !written_ && !commit_ && !commits_) return;
        clock_->moved = true;
        const uint32_t ready = commits_ ? level_ : ready_;
        some_ = pull ? ready != 1 : commits_ ? level_ != 0 : some_;
        ready_ = ready - pull;
        full_ = (full_ || (level_ + 1 == depth_ && written_)) && !pull;
        level_ += written_;
        level_ -= pull;
        valid_ = pull || (valid_ && !taken_);
        commits_ = commit_;
        taken_ = written_ = commit_ = false;
    }

private:
    Clock* clock_ = nullptr;
    Queue<T> items_;
    uint32_t depth_ = 0, level_ = 0, ready_ = 0;  // segments in the RAM, and committed ones
    bool some_ = false, full_ = false, valid_ = false, commits_ = false;
    bool taken_ = false, written_ = false, commit_ = false;  // in this cycle
};

}  // namespace ember
