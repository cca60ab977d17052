// A NIC's host and GPU, in inference. Reference, in order and bit for bit: sim.node.node.Node.
// Compiled with -ffp-contract=off: times equal the results of Python.
#pragma once
#include <cstdint>
#include <ctime>
#include <limits>
#include <list>
#include <queue>
#include <set>
#include <vector>

#include "answers.h"
#include "gathers.h"
#include "gpu_rings.h"
#include "outbox.h"
#include "queries.h"
#include "row_reads.h"
#include "rows.h"

namespace ember {

// `Nic` must have run(cycle), cycle(), next_event(); received(), the Beats not dropped yet;
// arrive(words, beats, cycles), which delivers a packet; and store_consumed(lists, cycle) and
// store_produced(slots, cycle), which write the registers of those counts.
template <class Nic>
class Host {
public:
    uint64_t from_nic = 0, actions = 0;
    uint64_t nic_ns = 0, host_ns = 0;  // CPU time of the timed quanta
    double progress = 0;  // last progress of a result: sim.node.protocol.ClusterNode
    Answers answers;
    Outbox outbox;
    LaunchThread thread;
    MemoryClock memory;
    Gathers<List> gpu;
    Gathers<BagList> lists;  // of other nodes' bags
    Gathers<Step*> own;      // own bags of steps
    GpuRings rings;
    RowReads row_reads;
    BottomMlp bottom;
    uint64_t dense_rows = 0;  // dense vectors sent
    uint64_t bag_lists = 0, foreign_bags = 0, own_bags = 0, bag_keys = 0;
    std::vector<Share> finished;

    Host(Nic& nic, const HostConfig& given)
        : answers(given),
          outbox(uint32_t(given.node), given.latency, given.cycles_per_byte),
          thread{given.gpu.call}, gpu(given.gpu, given.gpu.launch, thread, memory),
          lists(given.gpu, given.gpu.other_launch, thread, memory),
          own(given.gpu, given.gpu.other_launch, thread, memory), rings(given), row_reads(given),
          bottom(given.gpu), nic_(nic), config_(given), queries_(given, outbox, answers.completions) {}

    void submit(const Asked& asked) {
        got_on(asked.time);
        put(asked.time, {Event::ADD, &answers.open(asked)});
    }

    // Run NIC and host up to a cycle.
    void advance(uint64_t end, bool timed) {
        uint64_t cycle = 0;
        do {
            cycle = uint64_t(std::min(double(end), horizon()));
            const uint64_t began = timed ? cpu_ns() : 0;
            nic_.run(cycle);
            const uint64_t ran = timed ? cpu_ns() : 0;
            quantum(cycle);
            nic_ns += ran - began;
            host_ns += timed ? cpu_ns() - ran : 0;
        } while (cycle < end && !faulty());
    }
    // The host's turn: the NIC is at `end`.
    void quantum(uint64_t end) {
        receive();
        const double horizon = double(end + config_.latency);
        while (!faulty() && !events_.empty() && events_.top().time < horizon) {
            const Event event = events_.top();
            events_.pop();
            actions++;
            act(event);
        }
        const uint64_t late = outbox.deliver(nic_);
        if (late != ~uint64_t(0)) answers.fail(Fault::LATE, late);
    }
    bool faulty() const { return answers.fault.kind != Fault::NONE; }
    // Number of answered shares; NEVER after a fault.
    uint64_t answered() const { return faulty() ? NEVER : finished.size(); }
    double next_event() const { return events_.empty() ? INFINITE : events_.top().time; }
    HostCounts counts() const {
        uint64_t unanswered = 0;
        for (const auto& step : answers.steps)
            unanswered += *step.left || !step.pooling ? uint64_t(*step.left) : step.share;
        return {.to_nic = outbox.bytes, .from_nic = from_nic,
                .launches = rings ? rings.launches() : gpu.launches,
                .rows = rings ? rings.rows : gpu.rows, .dense_rows = dense_rows,
                .bag_launches = lists.launches + own.launches, .bag_lists = bag_lists,
                .foreign_bags = foreign_bags, .own_bags = own_bags, .bag_keys = bag_keys,
                .unanswered = unanswered, .queries_waiting = queries_.waiting(), .nic_ns = nic_ns,
                .host_ns = host_ns, .fault = answers.fault.kind, .value = answers.fault.value,
                .progress = progress};
    }

private:
    static constexpr double INFINITE = std::numeric_limits<double>::infinity();
    static constexpr uint64_t NEVER = ~uint64_t(0);
    static constexpr uint32_t KERNELS = 3;

    struct Event {
        enum Kind {
            ADD, GATHERED, LISTS_POOLED, OWN_POOLED, DENSE_READ, CALLED, LIST_READ, FILLED,
            ROWS_READ, PACKET
        } kind;
        Step* step = nullptr;
        size_t place = 0;  // index in `taken_` or among gathers, or number of a list
        double time = 0;
        uint64_t order = 0;

        // The earliest event is the greatest. At the same time: steps handed out, consequences of
        // earlier events, packets. Quantum boundaries decide when events of the first and last kind
        // are queued; a fixed rank makes the outcome independent of the boundaries
        // (sim.node.events.Rank).
        bool operator<(const Event& other) const {
            if (time != other.time) return time > other.time;
            return rank() != other.rank() ? rank() > other.rank() : order > other.order;
        }
        int rank() const { return kind == ADD ? 0 : kind == PACKET ? 2 : 1; }
    };
    // A packet of the NIC that the host has yet to act on.
    struct Taken {
        Head head;
        uint64_t address, beats;
        std::vector<uint64_t> records;
        std::vector<Step*> completed;
        List dense;  // requested vectors; the step may end before they are sent
    };

    static uint64_t cpu_ns() {
        timespec now;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        return uint64_t(now.tv_sec) * 1'000'000'000 + uint64_t(now.tv_nsec);
    }

    double horizon() const {
        const uint64_t event = nic_.next_event();
        double answer = event == NEVER ? INFINITE : double(event);
        const double host = next_event() + double(config_.latency);
        answer += double(2 * config_.latency);
        // Dense vectors, rings and the data of a flush are read at once.
        if (!queries_.left() && !config_.interaction && !answers.completions && !rings && !row_reads)
            answer += gpu.launch();
        return std::min(answer, host);
    }

    void got_on(double now) { progress = std::max(progress, now); }

    void put(double time, Event event) {
        event.time = time;
        event.order = order_++;
        events_.push(event);
    }

    // Read the NIC's packets: place answers at once, queue the rest until it has crossed PCIe.
    void receive() {
        auto& output = nic_.received();
        const size_t whole = output.split([&](size_t first, size_t beats, uint64_t cycle) {
            if (!faulty()) take(&output.words[first * BEAT_WORDS], beats, cycle);
        });
        output.drop(whole);
        from_nic += whole * BEAT_BYTES;
    }
    void take(const uint32_t* words, size_t beats, uint64_t cycle) {
        const Head head{uint32_t(header::opcode.get(words)), uint32_t(header::step.get(words)),
                        uint32_t(header::credit.get(words)),
                        uint32_t(header::count.get(words))};
        const uint64_t placed = answers.placed;
        const bool answers_only = answers.take(words, beats, head);
        if (answers.placed != placed || !answers.completed.empty())
            got_on(double(cycle + config_.latency));
        // Only training depends on acknowledgements of gradients.
        if (answers_only && answers.completed.empty() && head.credit == credit_) return;
        credit_ = head.credit;
        if (free_taken_.empty()) {
            free_taken_.push_back(taken_.size());
            taken_.emplace_back();
        }
        const size_t at = free_taken_.back();
        free_taken_.pop_back();
        Taken& kept = taken_[at];
        kept.head = head;
        kept.address = host_header::address.get(words);
        kept.beats = beats;
        kept.records.clear();
        kept.completed.clear();
        if (answers_only) kept.completed = answers.completed;
        else if (head.count > RECORDS_PER_BEAT * (beats - 1)
                 || (one(head) && (head.count != 1 || beats != 2)))
            answers.fail(Fault::COUNT, head.opcode);
        else
            for (uint32_t k = 0; k < head.count; k++)
                kept.records.push_back(record_at(words, k));
        put(double(cycle + config_.latency), {Event::PACKET, nullptr, at});
    }

    void act(const Event& event) {
        switch (event.kind) {
        case Event::ADD:
            queries_.add(event.step);
            start(event.time);
            break;
        case Event::PACKET: packet(event.place, event.time); break;
        case Event::GATHERED:
            for (const auto& rows : gpu.take(event.place)) send_rows(rows, event.time);
            launched(gpu.finish(event.time));
            break;
        case Event::LISTS_POOLED:
            for (const auto& bags : lists.take(event.place)) send_bags(bags, event.time);
            launched(lists.finish(event.time), Event::LISTS_POOLED);
            break;
        case Event::OWN_POOLED:
            for (Step* step : own.take(event.place)) place_own(*step, event.time);
            launched(own.finish(event.time), Event::OWN_POOLED);
            break;
        case Event::DENSE_READ:
            send_dense(taken_[event.place].dense, event.time);
            free_taken_.push_back(event.place);
            break;
        case Event::CALLED: called(event.time); break;
        case Event::LIST_READ:
            rings.consumed++;
            nic_.store_consumed(uint16_t(rings.consumed), stored(event.time));
            break;
        case Event::FILLED: fill(event.place, event.time); break;
        case Event::ROWS_READ:
            send_read_rows(taken_[event.place], event.time);
            free_taken_.push_back(event.place);
            break;
        }
    }
    void packet(size_t at, double now) {
        const Head head = taken_[at].head;
        if (queries_.consumed(head.credit)) got_on(now);
        bool keeps = false;
        if (rings.takes(head.opcode)) {
            ring(taken_[at], now);
        } else if (row_reads && head.opcode == opcode::READ_ROWS) {
            keeps = read_rows(at, now);
        } else if (head.opcode == opcode::LOOKUP_REQUESTS && !row_reads) {
            List rows{head.step, taken_[at].records};
            const uint64_t count = rows.records.size();
            launched(gpu.arrive(now, std::move(rows), count));
        } else if (head.opcode == opcode::BAG_LISTS && config_.held) {
            take_bags(taken_[at], now);
        } else if (head.opcode == opcode::DENSE_REQUESTS && config_.interaction) {
            keeps = ask(at, now);
        } else if (flushes(head)) {
            send_record(opcode::FLUSHED, head.step, taken_[at].records[0], now);
        } else if (head.opcode != opcode::CREDIT && !answers.answers(head.opcode)) {
            answers.fail(Fault::OPCODE, head.opcode);
        }
        for (Step* step : std::vector<Step*>(taken_[at].completed)) {
            step->answered = true;
            if (!step->pooling) ended(step, now);
        }
        if (!keeps) free_taken_.push_back(at);
        send_queries(now);
    }
    // Whether a packet must have exactly one record.
    bool one(const Head& head) const {
        return flushes(head) || (rings.takes(head.opcode) && head.opcode != opcode::LOOKUP_REQUESTS);
    }
    bool flushes(const Head& head) const {
        return answers.completions && head.opcode == opcode::FLUSH;
    }
    // Take a packet for a ring, or a read of one. Reference: sim.node.gpu_rings.GpuRings.take.
    void ring(Taken& kept, double now) {
        Fault wrong;
        if (kept.head.opcode == opcode::LOOKUP_REQUESTS) {
            wrong = rings.list(kept.address, {kept.head.step, kept.records, {}});
        } else if (kept.head.opcode == opcode::INDEX) {
            wrong = rings.index(kept.address, uint16_t(ring_index::index.of(kept.records[0])));
            if (wrong.kind == Fault::NONE) begin_lists(now);
        } else {
            const uint64_t record = kept.records[0], tag = ring_read::tag.of(record);
            const List* list = rings.read(kept.address, uint32_t(ring_read::bytes.of(record)),
                                          uint16_t(tag), wrong);
            if (list)
                outbox.send_read(*list, uint32_t(tag), lookup::landing, config_.dimension, now,
                                 config_.rows, rows_of(*list));
        }
        if (wrong.kind != Fault::NONE) answers.fail(wrong.kind, wrong.value);
    }
    void begin_lists(double now) {
        for (Begun begun = rings.begin(now); begun.any; begun = rings.begin(now)) {
            put(begun.first, {Event::LIST_READ, nullptr, begun.number});
            put(begun.end, {Event::FILLED, nullptr, begun.number});
        }
    }
    void fill(uint64_t number, double now) {
        const List& list = rings.fill(number);
        for (const uint64_t record : list.records)
            if (config_.rows && !inside(*config_.rows, lookup::table.of(record), lookup::row.of(record)))
                answers.fail(Fault::ROW, lookup::row.of(record));
        nic_.store_produced(uint16_t(number + 1), stored(now));
    }
    // The time at which a register has the value that is stored at `now`.
    uint64_t stored(double now) const { return uint64_t(std::ceil(now + double(config_.latency))); }
    void send_record(uint32_t opcode, uint32_t step, uint64_t record, double now) {
        uint32_t* words = outbox.send(opcode, step, 1, 2, 2, now) + BEAT_WORDS;
        words[0] = uint32_t(record);
        words[1] = uint32_t(record >> 32);
    }
    // Open a step at the NIC. Reference: sim.node.completions.Completions.open.
    void open(Step& step, double now) {
        step.open = true;
        step.opening = answers.completions.open();
        send_record(opcode::STEP_OPEN, uint32_t(step.step),
                    opening::samples.at(step.share + config_.unique)
                        | opening::step.at(step.step)
                        | opening::freed.at(answers.completions.returned()), now);
    }
    // Queue a read of dense vectors, which are ready at the end of the bottom MLP.
    bool ask(size_t at, double now) {
        Taken& kept = taken_[at];
        Step* step = nullptr;
        List wanted;
        for (const uint64_t record : kept.records) {
            const uint32_t sample = uint32_t(dense::sample.of(record));
            Step* own = answers.own(sample);
            if (!step) step = own;
            if (!own || own != step) {
                answers.fail(Fault::DENSE, sample);
                return false;
            }
            if (!step->dense) continue;
            const float* vector = step->dense + (sample - step->first) * config_.values;
            wanted.dense.insert(wanted.dense.end(), vector, vector + config_.values);
        }
        if (!step) {
            answers.fail(Fault::COUNT, opcode::DENSE_REQUESTS);
            return false;
        }
        wanted.step = uint32_t(step->step);
        wanted.records = kept.records;
        kept.dense = std::move(wanted);
        put(std::max(now, step->ready), {Event::DENSE_READ, nullptr, at});
        return true;
    }
    void launched(const Gather& gather, typename Event::Kind ends = Event::GATHERED) {
        if (!gather.any) return;
        if (thread.cycles > 0) put(gather.called, {Event::CALLED});
        put(gather.end, {ends, nullptr, gather.place});
    }
    // The thread is free: gathers of rows, lists of bags and own bags take turns.
    void called(double now) {
        thread.free = true;
        for (uint32_t k = 0; k < KERNELS && thread.free; k++) {
            const uint32_t turn = turn_;
            turn_ = (turn_ + 1) % KERNELS;
            if (turn == 0) launched(gpu.start(now));
            else if (turn == 1) launched(lists.start(now), Event::LISTS_POOLED);
            else launched(own.start(now), Event::OWN_POOLED);
        }
    }

    void start(double now) {
        queries_.start(now, [&](Step& step) { begin(step, now); });
        send_queries(now);
    }
    void begin(Step& step, double now) {
        if (answers.completions && step.sends()) open(step, now);
        if (config_.held) pool_own(step, now);
        if (config_.interaction) step.ready = bottom.compute(now, step.share);
    }
    void send_queries(double now) {
        queries_.send(now, [&](Step& step) { begin(step, now); }, [&](const Step& step) {
            if (!over_.empty() && step.sent == step.kept.size())
                over_.remove_if([&](const Step& other) { return &other == &step; });
        });
    }
    void ended(Step* step, double now) {
        finished.push_back({step->step, step->started, now});
        auto found = answers.steps.begin();
        while (&*found != step) ++found;
        if (answers.completions && step->sends()) answers.completions.seen(step->opening);
        // After a rejection, some of its queries may be unsent.
        if (step->given_up) give_up(found);
        else if (step->sent < step->kept.size()) over_.splice(over_.begin(), answers.steps, found);
        else answers.steps.erase(found);
        queries_.ended();
        start(now);
    }

    // Keep a step whose answers may still arrive, and its dense vectors, which the NIC may still
    // request.
    void give_up(std::list<Step>::iterator step) {
        if (step->dense)
            step->dense_kept.assign(step->dense, step->dense + step->samples * config_.values);
        if (step->dense) step->dense = step->dense_kept.data();
        step->answers = nullptr;
        step->filled = step->status = step->left = nullptr;
        step->ready = 0;
        answers.given_up.splice(answers.given_up.end(), answers.steps, step);
    }

    void send_rows(const List& list, double now) {
        outbox.send_vectors(opcode::GPU_VECTORS, list, lookup::landing, config_.dimension,
                            config_.vectors_fit, now, config_.rows, rows_of(list));
    }
    // Bags of owner-pooled tables. Reference: sim.node.bags.Bags.
    void take_bags(const Taken& kept, double now) {
        BagList bags{{kept.head.step, {}, {}}, {}};
        const uint64_t words = kept.head.count;
        if (!words || kept.beats - 1 > (words + RECORDS_PER_BEAT - 1) / RECORDS_PER_BEAT)
            return answers.fail(Fault::COUNT, kept.head.opcode);
        if (!read_bags(kept.records, config_.held, config_.tables, config_.owner_bags, bags))
            return answers.fail(Fault::BAGS, kept.head.step);
        const uint64_t rows = bags.rows.size(), count = bags.heads.records.size();
        bag_lists++;
        foreign_bags += count;
        bag_keys += rows;
        launched(lists.arrive(now, std::move(bags), rows, count), Event::LISTS_POOLED);
    }
    void send_bags(const BagList& bags, double now) {
        // Short vectors first: a packet has vectors of one size.
        std::set<int64_t> sizes;
        for (const uint64_t head : bags.heads.records)
            sizes.insert(config_.beats[bag_head::table.of(head)]);
        for (const int64_t beats : sizes) {
            List heads{bags.heads.step, {}, {}};
            std::vector<const uint64_t*> starts;
            const uint64_t* rows = bags.rows.data();
            for (const uint64_t head : bags.heads.records) {
                if (config_.beats[bag_head::table.of(head)] == beats) {
                    heads.records.push_back(head);
                    starts.push_back(rows);
                }
                rows += bag_head::keys.of(head);
            }
            pooled_.resize(config_.dimension);
            const uint64_t values = std::min(config_.dimension, uint64_t(beats) * DATA_WORDS);
            outbox.send_vectors(opcode::GPU_BAGS, heads, bag_head::landing, values,
                                vectors_that_fit(values), now, config_.rows,
                                [&](uint64_t k, float* bag) {
                const uint64_t head = heads.records[k];
                pool_bag(*config_.rows, bag_head::table.of(head), starts[k],
                         bag_head::keys.of(head), false, pooled_.data(), row_);
                std::copy_n(pooled_.data(), values, bag);
            }, 0, uint32_t(beats) - 1);
        }
    }
    // Vectors of `values` values in a packet of a host. Reference: host.wire.packets.
    uint64_t vectors_that_fit(uint64_t values) const {
        uint64_t most = 0;
        while (tag_beats(most + 1) + value_beats(most + 1, values) <= config_.payload_beats) most++;
        return most;
    }
    // Pool the own bags of a share that begins.
    void pool_own(Step& step, double now) {
        if (step.sends() && (!step.own_bags || !config_.own_timed)) return place_own(step, now);
        step.pooling = true;
        own_bags += step.own_bags;
        bag_keys += step.own_keys;
        launched(own.arrive(now, &step, step.own_keys, step.own_bags), Event::OWN_POOLED);
    }
    void place_own(Step& step, double now) {
        const int64_t* rows = step.own_rows;
        for (uint64_t k = 0; step.values && k < step.own_bags; rows += step.own_lengths[k++])
            pool_bag(*config_.rows, uint64_t(step.own_tables[k]), rows, uint64_t(step.own_lengths[k]),
                     config_.own_mean,
                     step.answers + (step.share_first * step.parts + step.own_places[k]) * step.values,
                     row_);
        for (uint32_t at = step.share_first; at < step.share_first + step.share; at++)
            step.filled[at] += int64_t(step.own_parts);
        step.pooled = step.own_parts;
        step.pooling = false;
        if (!step.sends()) *step.left = 0;
        if (!step.answered && step.sends()) return;
        got_on(now);
        ended(&step, now);
    }
    // A function that writes the row of a list's record.
    auto rows_of(const List& list) {
        return [this, &list](uint64_t k, float* vector) {
            const uint64_t table = lookup::table.of(list.records[k]);
            const uint64_t row = lookup::row.of(list.records[k]);
            if (inside(*config_.rows, table, row)) ember::fill(*config_.rows, table, row, vector);
            else answers.fail(Fault::ROW, row);
        };
    }
    // Read the rows of a packet; they leave GPU memory later. Reference: sim.node.row_reads.RowReads.
    bool read_rows(size_t at, double now) {
        Taken& kept = taken_[at];
        const uint64_t rows = kept.records.size(), bytes = kept.beats * BEAT_BYTES;
        from_nic += row_reads.asked(rows, bytes);
        const Fault wrong = row_reads.keys(kept.address, kept.records);
        if (wrong.kind != Fault::NONE) {
            answers.fail(wrong.kind, wrong.value);
            return false;
        }
        gpu.rows += rows;
        put(row_reads.take(now, rows, bytes), {Event::ROWS_READ, nullptr, at});
        return true;
    }
    void send_read_rows(const Taken& kept, double now) {
        const List list{kept.head.step, kept.records, {}};
        const uint64_t rows = list.records.size();
        const uint64_t beats = 1 + tag_beats(rows) + value_beats(rows, config_.dimension);
        outbox.send_vectors(opcode::GPU_VECTORS, list, lookup::landing, config_.dimension,
                            config_.vectors_fit, now, config_.rows, rows_of(list),
                            row_reads.answered(rows, beats * BEAT_BYTES));
    }
    void send_dense(const List& list, double now) {
        dense_rows += list.records.size();
        outbox.send_vectors(opcode::DENSE_VECTORS, list, dense::landing, config_.values,
                            config_.values_fit, now, !list.dense.empty(),
                            [&](uint64_t k, float* vector) {
            std::copy_n(&list.dense[k * config_.values], config_.values, vector);
        });
    }

    Nic& nic_;
    const HostConfig config_;
    std::list<Step> over_;  // answered shares with unsent queries
    Queries queries_;
    std::priority_queue<Event> events_;
    std::vector<Taken> taken_;
    std::vector<size_t> free_taken_;
    std::vector<float> row_, pooled_;  // of a bag
    uint64_t order_ = 0;
    uint32_t credit_ = 0, turn_ = 0;
};

}  // namespace ember
