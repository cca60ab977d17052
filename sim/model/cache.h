// rtl.cache.EmbeddingCache: its decision on each lookup, and the cycle in which each vector leaves.
#pragma once
#include <algorithm>
#include <vector>

#include "queue.h"

namespace ember {

// Returned with a vector: its landing, the node that it is for, and its step.
struct Meta {
    uint32_t landing;
    uint16_t node, step;
};

struct Lookup {
    uint64_t key;
    uint32_t hash;
    Meta meta;
};

struct Miss {
    uint64_t key;
    uint32_t id;
    Meta meta;
};

struct CacheBeat {
    Meta meta;
    bool last;
};

class Cache {
public:
    struct Counters {
        uint64_t accesses, hits, hits_pending, misses, conflict_misses, unmerged, evictions,
            bad_fills, beats_in, beats_out;
    };
    struct Sizes {
        uint32_t sets, ways, in_flight, waiters, vector_beats, hits_ahead, queue;
        bool enable, merge;
    };
    Counters counters{};
    Queue<Lookup> entry;
    Queue<Miss> misses;
    Queue<CacheBeat> vectors;
    // An eviction or a conflict in this cycle, for the dedupe table.
    bool evicted = false, conflicted = false;
    uint64_t evicted_key = 0;

    void init(Clock* clock, const Sizes& sizes) {
        clock_ = clock;
        size_ = sizes;
        lines_.resize(size_t(sizes.sets) * sizes.ways);
        for (size_t k = 0; k < lines_.size(); k++) lines_[k].used = k % sizes.ways;
        fetches_.resize(sizes.in_flight);
        clock_used_ = sizes.ways;
        entry.skid(clock);
        misses.skid(clock);
        vectors.skid(clock);
        queue_.fifo(clock, sizes.queue);
        ids_.fifo(clock, 0);
        nodes_.fifo(clock, 0);
        closed_.fifo(clock, 0);
        complete_.init(clock, 2, 0);
        fresh_nodes_ = sizes.waiters;
    }

    // The last beat of a vector arrives in this cycle.
    void fill(uint32_t id) {
        counters.beats_in += size_.vector_beats;
        if (id >= fetches_.size() || fetches_[id].closed != NEVER || !fetches_[id].open) {
            counters.bad_fills++;
            return;
        }
        fetches_[id].closed = clock_->now + 1;
        complete_.push(id);
    }

    void step() {
        evicted = conflicted = false;
        if (empty()) return;
        while (complete_.has()) {
            const uint32_t id = complete_.pop();
            if (fetches_[id].allocated) lines_[fetches_[id].slot].filled = clock_->now;
            closed_.push(id);
        }
        const bool waiter = store();
        walk(waiter);
        const bool taken = decide();
        advance(taken);
    }

private:
    struct Line {
        uint64_t key = 0, used = 0;
        Cycle filled = 0;  // NEVER until its vector arrives
        uint32_t id = 0;
        bool valid = false;
    };
    struct Fetch {
        Cycle closed = 0;
        uint32_t slot = 0, next = 0;
        bool open = false, allocated = false;
        std::vector<Meta> waiters;
    };
    struct Decision {
        Lookup lookup;
        uint32_t id, slot;
        uint64_t evicted;
        bool hit, allocate, conflict, unmerged, evict;
    };
    struct Operation {
        Lookup lookup;
        uint32_t id;
        bool miss, listed;
    };
    struct Stage {
        Lookup lookup;
        uint32_t set;
        Cycle seen;  // vectors that arrived earlier count as present
        bool valid = false;
    };

    // Nothing inside can move by itself.
    bool empty() const {
        return !inside_ && !shown_ && entry.empty() && queue_.empty() && complete_.empty()
               && closed_.empty() && !has_next_ && !walking_ && !waiting_ && !out_;
    }

    // Read a beat of a direct hit or of a waiter; returns whether a waiter is finished.
    bool store() {
        if (queue_.empty() && !waiting_ && !out_) return false;
        const bool queued = queue_.has();
        const bool hits = queued && !queue_.front().miss && !queue_.front().listed;
        const bool due = passed_ == size_.hits_ahead;
        const bool gives = vectors.room();
        const bool issue = (hits || waiting_) && (!out_ || gives);
        const bool waiter = beat_ ? current_ : waiting_ && (due || !hits);
        if (out_ && gives) {
            vectors.push(leaving_);
            counters.beats_out++;
            out_ = false;
        }
        bool done = false;
        if (issue) {
            const bool final = beat_ + 1 == size_.vector_beats;
            current_ = waiter;
            beat_ = final ? 0 : beat_ + 1;
            out_ = true;
            leaving_ = {waiter ? waiter_ : queue_.front().lookup.meta, final};
            clock_->moved = true;
            if (waiter) {
                passed_ = 0;
            } else if (final && waiting_ && !due) {
                passed_++;
            }
            if (final && waiter) {
                done = true;
                if (waiter_last_) {
                    fetches_[waiter_id_].open = false;
                    ids_.push(waiter_id_);
                }
            } else if (final) {
                queue_.pop();
            }
        }
        if (queued && !hits) {
            if (queue_.front().listed) {
                queue_.pop();
            } else if (misses.room()) {
                const Operation operation = queue_.pop();
                misses.push({operation.lookup.key, operation.id, operation.lookup.meta});
            }
        }
        return done;
    }

    // rtl.cache.scatter_list: walks closed lists in order. `ready`: a waiter was taken.
    void walk(bool ready) {
        if (!ready && !walking_ && !has_next_ && closed_.empty()) return;
        const bool step = walking_ && (!waiting_ || ready);
        bool at_end = false;
        if (step) {
            Fetch& fetch = fetches_[list_];
            waiter_ = fetch.waiters[fetch.next++];
            waiter_id_ = list_;
            at_end = waiter_last_ = fetch.next == fetch.waiters.size();
            nodes_.push(0);
            waiting_ = true;
            if (at_end) walking_ = false;
        } else if (ready) {
            waiting_ = false;
        }
        const bool load = has_next_ && !walking_;
        if (load) {
            walking_ = true;
            list_ = next_;
            has_next_ = false;
            clock_->moved = true;
        }
        if (!has_next_ && closed_.has()) {
            has_next_ = true;
            next_ = closed_.pop();
        }
        if (step || ready) clock_->moved = true;
    }

    // Carry out a decision; returns whether the pipeline may present another.
    bool decide() {
        if (!shown_) return true;
        const Decision& now = decision_;
        const Fetch& fetch = fetches_[now.id];
        const bool waiting = fetch.open && clock_->now <= fetch.closed && fetch.allocated
                             && fetch.slot == now.slot;
        const bool space = fresh_nodes_ || nodes_.has();
        const bool go = queue_.room() && (space || direct_);
        const bool direct = !go && now.hit && !waiting;
        if (direct != direct_) clock_->moved = true;
        direct_ = direct;
        if (!go) return false;
        shown_ = false;
        const bool pending = now.hit && waiting;
        counters.accesses++;
        counters.hits += now.hit;
        counters.hits_pending += pending;
        counters.misses += !now.hit;
        counters.conflict_misses += now.conflict;
        counters.unmerged += now.unmerged;
        counters.evictions += now.evict;
        conflicted = now.conflict;
        evicted = now.evict;
        evicted_key = now.evicted;
        if (!now.hit || waiting) {
            if (fresh_nodes_) fresh_nodes_--;
            else nodes_.pop();
        }
        if (!now.hit) {
            Fetch& opened = fetches_[now.id];
            opened.open = true;
            opened.closed = NEVER;
            opened.slot = now.slot;
            opened.allocated = now.allocate;
            opened.next = 0;
            opened.waiters.assign(1, now.lookup.meta);
        } else if (waiting) {
            fetches_[now.id].waiters.push_back(now.lookup.meta);
        }
        queue_.push({now.lookup, now.id, !now.hit, pending});
        return true;
    }

    // Advance the tag pipeline unless its last stage is held.
    void advance(bool taken) {
        Stage& last = stages_[(first_ + 4) % 5];
        if (!taken) return;
        if (last.valid && !look_up(last)) return;
        Stage& third = stages_[(first_ + 2) % 5];
        third.seen = clock_->now;
        const bool enters = entry.has();
        if (!enters && !inside_) return;
        clock_->moved = true;
        inside_ += enters - last.valid;
        first_ = (first_ + 4) % 5;
        Stage& stage = stages_[first_];
        stage.valid = enters;
        if (!enters) return;
        stage.lookup = entry.pop();
        stage.set = uint64_t(stage.lookup.hash >> 8) * size_.sets >> 24;
    }

    // Decide on a lookup and update its set; false while no miss id is free.
    bool look_up(const Stage& stage) {
        Line* set = &lines_[size_t(stage.set) * size_.ways];
        const bool looks = size_.enable || size_.merge;
        Line *match = nullptr, *victim = set;
        for (Line* line = set; line < set + size_.ways; line++) {
            if (looks && line->valid && line->key == stage.lookup.key) match = line;
            if (line->used < victim->used) victim = line;
        }
        const auto pending = [&](const Line* line) {
            return line->valid && line->filled >= stage.seen;
        };
        const bool coming = match && pending(match);
        const bool hit = match && (coming ? size_.merge : size_.enable);
        if (!hit && !(fresh_id_ < fetches_.size() || ids_.has())) return false;
        const bool renew = match && !coming && !size_.enable;
        const bool fresh = !match && looks;
        const bool conflict = fresh && pending(victim);
        const bool allocate = renew || (fresh && !conflict);
        Decision& now = decision_;
        now = {stage.lookup, 0, 0, 0, hit, allocate, conflict, coming && !size_.merge, false};
        if (hit) {
            now.id = match->id;
        } else if (fresh_id_ < fetches_.size()) {
            now.id = fresh_id_++;
        } else {
            now.id = ids_.pop();
        }
        Line* used = match ? match : allocate ? victim : nullptr;
        if (allocate) {
            now.evict = !renew && victim->valid;
            now.evicted = victim->key;
            used->key = stage.lookup.key;
            used->id = now.id;
            used->valid = true;
            used->filled = NEVER;
        }
        if (used) {
            used->used = clock_used_++;
            now.slot = uint32_t(used - lines_.data());
        }
        shown_ = true;
        clock_->moved = true;
        return true;
    }

    Clock* clock_ = nullptr;
    Sizes size_{};
    std::vector<Line> lines_;
    std::vector<Fetch> fetches_;
    uint64_t clock_used_ = 0;
    Stage stages_[5];
    uint32_t first_ = 0, inside_ = 0;
    Decision decision_{};
    bool shown_ = false, direct_ = false;
    Queue<Operation> queue_;
    Queue<uint32_t> ids_, closed_, complete_;
    Queue<char> nodes_;
    uint32_t fresh_id_ = 0, fresh_nodes_ = 0;
    // Scatter lists: the next list, the one being walked, the waiter on offer.
    bool has_next_ = false, walking_ = false, waiting_ = false, waiter_last_ = false;
    uint32_t next_ = 0, list_ = 0, waiter_id_ = 0;
    Meta waiter_{};
    // The store: beat of a vector, its output register, hits since the last waiter.
    uint32_t beat_ = 0, passed_ = 0;
    bool current_ = false, out_ = false;
    CacheBeat leaving_{};
};

}  // namespace ember
