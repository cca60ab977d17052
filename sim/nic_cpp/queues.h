// rtl.network.output_queues: a queue of lookups for each destination, in front of the packager.
#pragma once
#include <algorithm>
#include <vector>

#include "nic_config.h"
#include "packets.h"
#include "queue.h"

namespace ember {

class OutputQueues {
public:
    NodeEvent joined, acknowledged;  // of this cycle, set before step()

    void init(Clock* clock, const Config& config) {
        clock_ = clock;
        on_ = config.output_queues;
        window_ = config.lookup_window;
        burst_ = config.queue_burst;
        least_ = std::min(config.lookup_window / 4, config.queue_least);
        place_free_ = config.place_free;
        after_ = config.nodes - 1;
        lines_.resize(config.nodes);
        for (Line& line : lines_) line.records.init(clock, 0, 0);
        places_.init(clock, config.queue_places);
        out.init(clock, config.queue_read + config.credit_item, 0);
    }
    Queue<Item> out;

    bool on() const { return on_; }
    // Whether queues are scanned. The scan continues while they wait for credit.
    bool looking() const { return open_ || arrived_.valid || known_[0].valid || known_[1].valid; }
    void enter(const Item& item) {
        lines_[item.destination].records.put(item, 0);
        lines_[item.destination].entered++;
        arrived_ = {true, item.destination};
        clock_->moved = true;
    }
    void take(Queue<Item>& input) {
        if (!out.has() || !input.room()) return;
        input.push(out.pop());
        places_.give(place_free_);
    }
    void step() {
        if (!on_ || !(looking() || joined.valid || acknowledged.valid)) return;
        Stage& burst = stages_[BURST];
        const bool free = places_.any();
        const bool pop = burst.valid && burst.left && free;
        const bool finish = burst.valid && (burst.left == 0 || (burst.left == 1 && free));
        const bool move = !burst.valid || finish;
        const uint32_t chosen = move ? choose() : NONE;
        const Stage line = stages_[LINE];
        Stage seen = stages_[NAMED];
        if (seen.valid) look(seen);

        if (fresh_) lines_[burst.node].gone = burst.gone + burst.left;
        if (pop) {
            out.push(lines_[burst.node].records.pop());
            places_.take();
        }
        if (finish) {
            Line& line = lines_[burst.node];
            line.busy = false;
            line.due |= burst.more;
            open_ -= !line.due;
        }
        fresh_ = move && stages_[CUT].valid;
        if (move) {
            burst = stages_[CUT];
            stages_[CUT] = stages_[SEEN];
            stages_[SEEN] = seen;
            stages_[NAMED] = line;
            stages_[LINE] = {chosen != NONE, chosen};
        } else if (pop) {
            burst.left--;
        }
        if (chosen != NONE) {
            lines_[chosen].due = false;
            lines_[chosen].busy = true;
        }
        if (arrived_.valid) due(arrived_.node);
        arrived_.valid = false;
        if (line.valid) after_ = line.node;
        if (known_[0].valid) lines_[known_[0].node].joined++;
        if (known_[1].valid) lines_[known_[1].node].acknowledged = known_[1].value;
        known_[0] = joined;
        known_[1] = acknowledged;
        joined.valid = acknowledged.valid = false;
    }

private:
    static constexpr uint32_t NONE = ~0u;
    enum { LINE, NAMED, SEEN, CUT, BURST, STAGES };

    struct Line {
        Queue<Item> records;
        uint16_t entered = 0, gone = 0, joined = 0, acknowledged = 0;
        bool due = false, busy = false;
    };
    struct Stage {
        bool valid = false;
        uint32_t node = 0, left = 0;
        uint16_t gone = 0;
        bool more = false;
    };

    void due(uint32_t node) {
        Line& line = lines_[node];
        open_ += !line.due && !line.busy;
        line.due = true;
    }
    uint32_t choose() {
        uint32_t first = NONE;
        for (uint32_t k = 0; k < lines_.size(); k++) {
            if (!lines_[k].due || lines_[k].busy) continue;
            if (k > after_) return k;
            if (first == NONE) first = k;
        }
        return first;
    }
    void look(Stage& stage) const {
        const Line& line = lines_[stage.node];
        const uint32_t waiting = uint16_t(line.entered - line.gone);
        const int16_t credit = uint16_t(window_ + line.joined + line.acknowledged - line.gone);
        const uint32_t may = credit < 0 ? 0 : std::min(uint32_t(credit), burst_);
        stage.left = std::min({waiting, may, burst_});
        if (may < std::min(waiting, burst_) && may < least_) stage.left = 0;
        stage.more = waiting > stage.left;
        stage.gone = line.gone;
    }

    Clock* clock_ = nullptr;
    bool on_ = false, fresh_ = false;
    uint32_t window_ = 0, burst_ = 0, least_ = 0, place_free_ = 0, after_ = 0;
    uint32_t open_ = 0;  // queues that are due or busy
    std::vector<Line> lines_;
    Credits places_;
    NodeEvent arrived_, known_[2];
    Stage stages_[STAGES];
};

}  // namespace ember
