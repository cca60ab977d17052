// rtl.cache.EmbeddingCache: its decision on each lookup, and the cycle in which each vector leaves.
#pragma once
#include <algorithm>
#include <vector>

#include "nic_config.h"
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
    uint32_t beats = 1;  // of a bag's vector
};

class Cache {
public:
    struct Counters {
        uint64_t accesses, hits, hits_pending, misses, conflict_misses, unmerged, evictions,
            bad_fills, beats_in, beats_out;
    };
    struct Sizes {
        uint32_t sets, ways, in_flight, waiters;
        bool enable, merge;
    };
    Counters counters{};
    Queue<Lookup> entry;
    Queue<Miss> misses;
    Queue<CacheBeat> vectors;
    // An eviction or a conflict in this cycle, for the dedupe table.
    bool evicted = false, conflicted = false;
    uint64_t evicted_key = 0;

    void init(Clock* clock, const Config& config, const Sizes& sizes) {
        clock_ = clock;
        config_ = &config;
        size_ = sizes;
        lines_.resize(size_t(sizes.sets) * sizes.ways);
        for (size_t k = 0; k < lines_.size(); k++) lines_[k].used = k % sizes.ways;
        fetches_.resize(sizes.in_flight);
        clock_used_ = sizes.ways;
        entry.skid(clock);
        misses.skid(clock);
        vectors.init(clock, 0, 0);
        for (auto* queue : {&ids_, &closed_}) queue->init(clock, 0, 0);
        loop_.init(clock, config.tag_now, 0);
        decisions_.init(clock, 0, 0);
        operations_.init(clock, config.operation, 0);
        complete_.init(clock, config.fill_write, 0);
        gone_.init(clock, config.append, 0);
        lists_.init(clock, config.list_known, 0);
        waiters_.init(clock, config.waiter, 0);
        for (uint32_t id = 0; id < sizes.in_flight; id++) ids_.put(id, 0);
        id_credits_.init(clock, sizes.in_flight);
        nodes_.init(clock, sizes.waiters);
        decision_places_.init(clock, config.decision_places);
        operation_places_.init(clock, config.operation_places);
        read_places_.init(clock, config.read_places);
        list_places_.init(clock, config.lists_ahead);
        waiter_places_.init(clock, config.waiter_places);
    }

    // The tag that the owner echoes: the id, and above it the lap of the id.
    uint32_t tag(uint32_t id) const {
        return (id + fetches_[id].lap * uint32_t(fetches_.size())) & 0xFFFF;
    }
    uint32_t id_of(uint32_t tag) const { return tag & (uint32_t(fetches_.size()) - 1); }

    // The last beat of a vector arrives in this cycle.
    void fill(uint32_t id) {
        counters.beats_in += config_->vector_beats;
        if (id >= fetches_.size() || fetches_[id].closed != NEVER || !fetches_[id].open) {
            counters.bad_fills++;
            return;
        }
        fetches_[id].closed = clock_->now + config_->fill_close;
        complete_.push(id);
    }

    void step() {
        evicted = conflicted = false;
        if (vectors.size() != offered_) {  // one was taken in this cycle
            offered_ = vectors.size();
            read_places_.give(config_->place_free);
        }
        if (empty()) return;
        if (gone_.has()) {
            const Gone gone = gone_.pop();
            conflicted = gone.conflict;
            evicted = gone.evict;
            evicted_key = gone.key;
        }
        while (complete_.has()) {
            const uint32_t id = complete_.pop();
            if (fetches_[id].allocated) lines_[fetches_[id].slot].filled = clock_->now;
            // The scatter lists receive it in the next cycle, and queue it.
            closed_.put(id, clock_->later(1 + config_->list_queued));
        }
        store();
        walk();
        resolve();
        if (loop_.has()) look_up(loop_.pop());
        if (entry.has() && id_credits_.any() && decision_places_.any()) {
            id_credits_.take();
            decision_places_.take();
            loop_.push(entry.pop());
        }
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
        uint32_t slot = 0, next = 0, lap = 0;
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
        bool miss;
    };
    struct Waiter {
        Meta meta;
        uint32_t id;
        bool last;
    };
    struct Gone {
        uint64_t key;
        bool evict, conflict;
    };

    // Whether the state inside can change without input.
    bool empty() const {
        return entry.empty() && loop_.empty() && decisions_.empty() && operations_.empty()
               && complete_.empty() && closed_.empty() && gone_.empty() && lists_.empty()
               && waiters_.empty() && !walking_;
    }

    // Read a beat of a direct hit or of a waiter.
    void store() {
        const bool queued = operations_.has(), waits = waiters_.has();
        if (!queued && !waits) return;
        const bool hits = queued && !operations_.front().miss;
        const bool due = passed_ == config_->hits_ahead;
        const bool issue = (hits || waits) && read_places_.any();
        const bool waiter = beat_ ? current_ : waits && (due || !hits);
        if (issue) {
            const bool final = beat_ + 1 == config_->vector_beats;
            current_ = waiter;
            beat_ = final ? 0 : beat_ + 1;
            read_places_.take();
            vectors.put({waiter ? waiters_.front().meta : operations_.front().lookup.meta, final},
                        clock_->later(config_->read));
            offered_++;
            counters.beats_out++;
            if (waiter) {
                passed_ = 0;
            } else if (final && waits && !due) {
                passed_++;
            }
            if (final && waiter) {
                const Waiter done = waiters_.pop();
                waiter_places_.give(config_->place_free);
                if (done.last) {
                    fetches_[done.id].open = false;
                    ids_.put(done.id, 0);
                    id_credits_.give(config_->number_free);
                }
            } else if (final) {
                leave();
            }
        }
        if (queued && !hits && misses.room()) {
            const Operation operation = leave();
            misses.push({operation.lookup.key, operation.id, operation.lookup.meta});
        }
    }
    Operation leave() {
        operation_places_.give(config_->place_free);
        return operations_.pop();
    }

    // rtl.cache.scatter_list: walks closed lists in order.
    void walk() {
        if (walking_ && waiter_places_.any()) {
            Fetch& fetch = fetches_[list_];
            const Meta& meta = fetch.waiters[fetch.next++];
            const bool at_end = fetch.next == fetch.waiters.size();
            waiter_places_.take();
            waiters_.push({meta, list_, at_end});
            nodes_.give(config_->number_free);
            walking_ = !at_end;
        }
        if (!walking_ && lists_.has()) {
            walking_ = true;
            list_ = lists_.pop();
            list_places_.give(1);
        }
        if (closed_.has() && list_places_.any()) {
            list_places_.take();
            lists_.push(closed_.pop());
        }
    }

    // rtl.cache.resolver: carries out a decision. An answer of the miss table is of the previous
    // cycle.
    void resolve() {
        const bool stayed = stayed_, direct = direct_, answer = answer_;
        stayed_ = direct_ = false;
        if (!decisions_.has()) {
            if (stayed || direct) clock_->moved = true;
            return;
        }
        const Decision& now = decisions_.front();
        const Fetch& fetch = fetches_[now.id];
        const bool waiting = fetch.open && clock_->now <= fetch.closed && fetch.allocated
                             && fetch.slot == now.slot;
        if (!operation_places_.any() || !(nodes_.any() || direct)) {
            stayed_ = true;
            answer_ = waiting;
            direct_ = stayed && now.hit && !answer;
            if (!stayed || direct_ != direct || answer_ != answer) clock_->moved = true;
            return;
        }
        const bool pending = now.hit && waiting;
        counters.accesses++;
        counters.hits += now.hit;
        counters.hits_pending += pending;
        counters.misses += !now.hit;
        counters.conflict_misses += now.conflict;
        counters.unmerged += now.unmerged;
        counters.evictions += now.evict;
        if (now.conflict || now.evict) gone_.push({now.evicted, now.evict, now.conflict});
        if (!direct) {
            nodes_.take();
            if (now.hit && !waiting) nodes_.give(config_->append + 1);
        }
        if (!now.hit) {
            Fetch& opened = fetches_[now.id];
            opened.open = true;
            opened.lap++;
            opened.closed = NEVER;
            opened.slot = now.slot;
            opened.allocated = now.allocate;
            opened.next = 0;
            opened.waiters.assign(1, now.lookup.meta);
        } else if (waiting) {
            fetches_[now.id].waiters.push_back(now.lookup.meta);
        }
        operation_places_.take();
        if (pending) operation_places_.give(config_->append + 1);
        else operations_.push({now.lookup, now.id, !now.hit});
        decision_places_.give(config_->place_free);
        decisions_.pop();
    }

    // rtl.cache.tags: decides on a lookup and updates its set.
    void look_up(const Lookup& lookup) {
        const uint32_t number = uint64_t(lookup.hash >> 8) * size_.sets >> 24;
        // Vectors that arrived earlier count as present.
        const Cycle seen = clock_->now - (config_->tag_now - config_->tag_phases);
        Line* set = &lines_[size_t(number) * size_.ways];
        const bool looks = size_.enable || size_.merge;
        Line *match = nullptr, *victim = set;
        for (Line* line = set; line < set + size_.ways; line++) {
            if (looks && line->valid && line->key == lookup.key) match = line;
            if (line->used < victim->used) victim = line;
        }
        const auto pending = [&](const Line* line) {
            return line->valid && (line->filled == NEVER || line->filled + 1 >= seen);
        };
        const bool coming = match && pending(match);
        const bool hit = match && (coming ? size_.merge : size_.enable);
        const bool renew = match && !coming && !size_.enable;
        const bool fresh = !match && looks;
        const bool conflict = fresh && pending(victim);
        const bool allocate = renew || (fresh && !conflict);
        Decision now = {lookup, 0, 0, 0, hit, allocate, conflict, coming && !size_.merge, false};
        if (hit) {
            now.id = match->id;
            id_credits_.give(config_->tag_result - config_->tag_now + 1);
        } else {
            now.id = ids_.pop();
        }
        Line* used = match ? match : allocate ? victim : nullptr;
        if (allocate) {
            now.evict = !renew && victim->valid;
            now.evicted = victim->key;
            used->key = lookup.key;
            used->id = now.id;
            used->valid = true;
            used->filled = NEVER;
        }
        if (used) {
            used->used = clock_used_++;
            now.slot = uint32_t(used - lines_.data());
        }
        decisions_.put(now, clock_->later(config_->tag_decision - config_->tag_now));
    }

    Clock* clock_ = nullptr;
    const Config* config_ = nullptr;
    Sizes size_{};
    std::vector<Line> lines_;
    std::vector<Fetch> fetches_;
    uint64_t clock_used_ = 0;
    Queue<Lookup> loop_;
    Queue<Decision> decisions_;
    Queue<Operation> operations_;
    Queue<uint32_t> ids_, closed_, lists_, complete_;
    Queue<Waiter> waiters_;
    Queue<Gone> gone_;
    Credits id_credits_, nodes_, decision_places_, operation_places_, read_places_,
        list_places_, waiter_places_;
    // The resolver: a decision is waiting in front; it is a hit that needs no node; the last
    // answer.
    bool stayed_ = false, direct_ = false, answer_ = false;
    // Scatter lists: the list that is walked.
    bool walking_ = false;
    uint32_t list_ = 0;
    // The store: beat of a vector, hits since the last waiter, beats under way or on offer.
    uint32_t beat_ = 0, passed_ = 0;
    size_t offered_ = 0;
    bool current_ = false;
};

}  // namespace ember
