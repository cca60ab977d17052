// The host and GPU beside a modelled NIC: what sim/node.py does with the packets of the evaluation,
// in the same order and to the bit. Compiled with -ffp-contract=off: times are those of Python.
#pragma once
#include <cmath>
#include <deque>
#include <limits>
#include <list>
#include <queue>
#include <vector>

#include "gathers.h"
#include "nic.h"

namespace ember {

// In the order of sim.model.node.
struct HostConfig {
    uint64_t node, dimension, payload_beats, buffer_beats, in_flight, vectors_fit, parts, latency,
        interaction;
    double cycles_per_byte;  // of PCIe, towards the NIC
    GpuTimes gpu;
};

// A share of a mini-batch that was answered.
struct Share {
    uint64_t step;
    double started, finished;
};

class Host {
public:
    uint64_t to_nic = 0, from_nic = 0, actions = 0;
    bool wrong = false;   // the NIC sent what nobody asked for
    bool late = false;    // something came to the NIC in the past
    LaunchThread thread;
    Gathers<Rows> gpu;
    Gathers<Dense> dense;
    std::vector<Share> finished;

    Host(Nic& nic, const HostConfig& given)
        : thread{given.gpu.call}, gpu(given.gpu, thread), dense(given.gpu, thread), nic_(nic),
          config_(given) {}

    void submit(uint64_t number, uint32_t first, uint32_t samples, uint32_t share_first,
                uint32_t share, const uint64_t* records, size_t count, double time) {
        const uint32_t base = share_first;
        steps_.push_back({number, first, samples, base, share, share,
                          std::vector<uint32_t>(share, 0),
                          std::vector<uint64_t>(records, records + count)});
        put(time, {Event::ADD, &steps_.back()});
    }

    // NIC and host up to a cycle.
    void advance(uint64_t end) {
        uint64_t cycle = 0;
        do {
            cycle = uint64_t(std::min(double(end), horizon()));
            nic_.run(cycle);
            quantum(cycle);
        } while (cycle < end && !wrong && !late);
    }
    void quantum(uint64_t end) {
        receive();
        const double horizon = double(end + config_.latency);
        while (!events_.empty() && events_.top().time < horizon) {
            const Event event = events_.top();
            events_.pop();
            actions++;
            act(event);
        }
        if (arrivals_.empty()) return;
        late |= arrivals_[0] < nic_.reached;
        for (const auto& packet : packets_)
            nic_.arrive(&words_[packet.words], packet.beats, &arrivals_[packet.first]);
        packets_.clear();
        words_.clear();
        arrivals_.clear();
    }
    double next_event() const { return events_.empty() ? INFINITE : events_.top().time; }
    uint64_t queries_waiting() const { return queries_.size(); }
    uint64_t unanswered() const {
        uint64_t left = 0;
        for (const auto& step : steps_) left += step.left;
        return left;
    }

private:
    static constexpr double INFINITE = std::numeric_limits<double>::infinity();

    struct Step {
        uint64_t number;
        uint32_t first, samples;            // of the mini-batch
        uint32_t share_first, share, left;  // of this node; samples without an answer
        std::vector<uint32_t> filled;
        std::vector<uint64_t> records;
        double started = 0, ready = 0;
        bool begun = false;
    };
    struct Query {
        Step* step;
        size_t first, count, beats;
    };
    struct Head {
        uint32_t opcode, step, credit, count;
    };
    struct Event {
        enum Kind { ADD, PACKET, GATHERED, DENSE_ASKED, DENSE_GATHERED, CALLED } kind;
        Step* step = nullptr;
        size_t place = 0;  // of what it is about, in `taken_`, or among gathers
        double time = 0;
        uint64_t order = 0;

        bool operator<(const Event& other) const {  // the first to come is the greatest
            return time != other.time ? time > other.time : order > other.order;
        }
    };
    // A packet of the NIC whose effect is to come.
    struct Taken {
        Head head;
        std::vector<uint64_t> records;
        std::vector<Step*> completed;
    };
    struct Sent {
        size_t words, first;
        uint32_t beats;
    };

    double horizon() const {
        const Cycle event = nic_.next_event();
        double answer = event == NEVER ? INFINITE : double(event);
        const double host = next_event() + double(config_.latency);
        answer += double(2 * config_.latency);
        if (queries_.empty() && waiting_.empty()) answer += gpu.launch();
        return std::min(answer, host);
    }

    void put(double time, Event event) {
        event.time = time;
        event.order = order_++;
        events_.push(event);
    }

    // Packets that the NIC has sent: answers are put in place, the rest acts when it is here.
    void receive() {
        Output& output = nic_.outputs[Nic::HOST];
        const Config& config = nic_.config;
        const size_t stride = config.beat_words;
        size_t first = 0;
        for (size_t beat = 0; beat < output.cycles.size(); beat++) {
            const uint32_t* words = &output.beats[beat * stride];
            if (!(words[config.last_bit / 32] >> config.last_bit % 32 & 1)) continue;
            take(&output.beats[first * stride], beat + 1 - first, output.cycles[beat]);
            first = beat + 1;
        }
        output.beats.erase(output.beats.begin(), output.beats.begin() + first * stride);
        output.cycles.erase(output.cycles.begin(), output.cycles.begin() + first);
        from_nic += first * sizeof(uint32_t) * DATA_WORDS;
    }
    void take(const uint32_t* words, size_t beats, uint64_t cycle) {
        const Config& config = nic_.config;
        const Head head{uint32_t(config.opcode.get(words)), uint32_t(config.step.get(words)),
                        uint32_t(config.credit_field.get(words)),
                        uint32_t(config.count.get(words))};
        const uint32_t* payload = words + config.beat_words;
        completed_.clear();
        const bool answers = config_.interaction
            ? head.opcode == config.results || head.opcode == config.result_part
            : head.opcode == config.pooled;
        if (head.opcode == config.pooled && answers) {
            place(config.tag_sample.get(payload), config.tag_first.get(payload), head.count,
                  config.tag_last.get(payload));
        } else if (head.opcode == config.result_part && answers) {
            place(config.part_sample.get(payload), config.part_first.get(payload), head.count,
                  config.part_last.get(payload));
        } else if (answers) {
            const size_t tags = (head.count + 15) / 16;
            if (!head.count || (beats - 1 - tags) % head.count) {
                wrong = true;
                return;
            }
            for (uint32_t k = 0; k < head.count; k++)
                place(payload[k / 16 * config.beat_words + k % 16], 0,
                      (beats - 1 - tags) / head.count, true);
        }
        if (completed_.empty() && head.credit == credit_ && answers) return;
        credit_ = head.credit;
        if (free_taken_.empty()) {
            free_taken_.push_back(taken_.size());
            taken_.emplace_back();
        }
        const size_t at = free_taken_.back();
        free_taken_.pop_back();
        Taken& kept = taken_[at];
        kept.head = head;
        kept.completed = completed_;
        kept.records.clear();
        if (!answers)
            for (uint32_t k = 0; k < head.count && k / RECORDS_PER_BEAT + 1 < beats; k++) {
                const uint32_t* record = payload + k / RECORDS_PER_BEAT * config.beat_words
                                         + 2 * (k % RECORDS_PER_BEAT);
                kept.records.push_back(record[0] | uint64_t{record[1]} << 32);
            }
        put(double(cycle + config_.latency), {Event::PACKET, nullptr, at});
    }
    Step* find(uint32_t sample) {
        for (auto& step : steps_)
            if (sample - step.first < step.samples) return &step;
        return nullptr;
    }
    // Parts of the answer to a sample, the last of which ends it where `last`.
    void place(uint32_t sample, uint32_t first, uint32_t count, bool last) {
        Step* step = find(sample);
        const uint32_t at = step ? sample - step->first - step->share_first : 0;
        if (!step || at >= step->share || first != step->filled[at]
            || first + count > config_.parts || last != (first + count == config_.parts)) {
            wrong = true;
            return;
        }
        step->filled[at] += count;
        if (last) step->left--;
        if (!step->left) completed_.push_back(step);
    }

    void act(const Event& event) {
        switch (event.kind) {
        case Event::ADD:
            waiting_.push_back(event.step);
            start(event.time);
            break;
        case Event::PACKET: packet(event.place, event.time); break;
        case Event::GATHERED: {
            for (const auto& rows : gpu.take(event.place))
                vectors(nic_.config.gpu_vectors, rows.step, rows.landings, event.time);
            launched(gpu.finish(event.time));
            break;
        }
        case Event::DENSE_ASKED: {
            Taken& kept = taken_[event.place];
            Dense wanted{uint32_t(event.step->number), {}};
            landings(kept.records, nic_.config.dense_landing, wanted.landings);
            free_taken_.push_back(event.place);
            dense_launched(dense.arrive(event.time, std::move(wanted)));
            break;
        }
        case Event::DENSE_GATHERED: {
            for (const auto& list : dense.take(event.place))
                vectors(nic_.config.dense_vectors_op, list.step, list.landings, event.time);
            dense_launched(dense.finish(event.time));
            break;
        }
        case Event::CALLED: called(event.time); break;
        }
    }
    void packet(size_t at, double now) {
        const Config& config = nic_.config;
        const Head head = taken_[at].head;
        // A packet takes its credit before it gets in line: a newer one may leave before it.
        const int16_t ahead = int16_t(uint16_t(head.credit - consumed_));
        if (ahead > 0) consumed_ += ahead;
        bool keeps = false;
        if (head.opcode == config.lookup_requests) {
            Rows rows{head.step, {}};
            landings(taken_[at].records, config.lookup_landing, rows.landings);
            launched(gpu.arrive(now, std::move(rows)));
        } else if (head.opcode == config.dense_requests && config_.interaction) {
            keeps = ask(at, now);
        }
        for (Step* step : std::vector<Step*>(taken_[at].completed)) ended(step, now);
        if (!keeps) free_taken_.push_back(at);
        send_queries(now);
    }
    // A list of dense vectors, which are there when the bottom MLP has run.
    bool ask(size_t at, double now) {
        const auto& records = taken_[at].records;
        Step* step = nullptr;
        for (const uint64_t record : records) {
            const uint32_t words[2] = {uint32_t(record), uint32_t(record >> 32)};
            const uint32_t sample = nic_.config.dense_sample.get(words);
            if (!step) step = find(sample);
            if (!step || sample - step->first - step->share_first >= step->share) {
                wrong = true;
                return false;
            }
        }
        if (!step) return false;
        put(std::max(now, step->ready), {Event::DENSE_ASKED, step, at});
        return true;
    }
    static void landings(const std::vector<uint64_t>& records, const Field& field,
                         std::vector<uint16_t>& given) {
        for (const uint64_t record : records) {
            const uint32_t words[2] = {uint32_t(record), uint32_t(record >> 32)};
            given.push_back(uint16_t(field.get(words)));
        }
    }
    void launched(const Gather& gather) { launched(gather, Event::GATHERED); }
    void dense_launched(const Gather& gather) { launched(gather, Event::DENSE_GATHERED); }
    void launched(const Gather& gather, decltype(Event::kind) kind) {
        if (!gather.any) return;
        if (thread.cycles > 0) put(gather.called, {Event::CALLED});
        put(gather.end, {kind, nullptr, gather.place});
    }
    // The thread is free again: rows and dense vectors take turns.
    void called(double now) {
        thread.free = true;
        for (size_t k = 0; k < (config_.interaction ? 2 : 1) && thread.free; k++) {
            if (turn_) dense_launched(dense.start(now));
            else launched(gpu.start(now));
            if (config_.interaction) turn_ = !turn_;
        }
    }

    // sim.queries.
    void start(double now) {
        const size_t most = RECORDS_PER_BEAT
                            * std::min(config_.payload_beats, config_.buffer_beats / 2);
        while (!waiting_.empty() && going_ < config_.in_flight) {
            Step* step = waiting_.front();
            waiting_.pop_front();
            going_++;
            for (size_t first = 0; first < step->records.size(); first += most) {
                const size_t count = std::min(most, step->records.size() - first);
                queries_.push_back({step, first, count,
                                    (count + RECORDS_PER_BEAT - 1) / RECORDS_PER_BEAT});
            }
        }
        send_queries(now);
    }
    void send_queries(double now) {
        while (!queries_.empty()) {
            const Query query = queries_.front();
            if (sent_ + query.beats - consumed_ > config_.buffer_beats) return;
            queries_.pop_front();
            sent_ += query.beats;
            Step& step = *query.step;
            if (!step.begun) {
                step.begun = true;
                step.started = now;
                if (config_.interaction) step.ready = dense.compute(now, step.share);
            }
            uint32_t* words = send(nic_.config.queries, step.number, query.count,
                                   query.beats + 1, query.beats + 1, now);
            for (size_t k = 0; k < query.count; k++) {
                const uint64_t record = step.records[query.first + k];
                uint32_t* place = words + (1 + k / RECORDS_PER_BEAT) * nic_.config.beat_words
                                  + 2 * (k % RECORDS_PER_BEAT);
                place[0] = uint32_t(record);
                place[1] = uint32_t(record >> 32);
            }
        }
    }
    void ended(Step* step, double now) {
        finished.push_back({step->number, step->started, now});
        for (auto found = steps_.begin(); found != steps_.end(); ++found)
            if (&*found == step) {
                steps_.erase(found);
                break;
            }
        going_--;
        start(now);
    }

    // Vectors for the NIC, in as many packets as they need.
    void vectors(uint32_t opcode, uint32_t step, const std::vector<uint16_t>& tags, double now) {
        for (size_t first = 0; first < tags.size(); first += config_.vectors_fit) {
            const size_t count = std::min<size_t>(config_.vectors_fit, tags.size() - first);
            const size_t tag_beats = (count + 31) / 32;
            const size_t beats = 1 + tag_beats + (count * config_.dimension + DATA_WORDS - 1)
                                 / DATA_WORDS;
            uint32_t* words = send(opcode, step, count, beats, 1 + tag_beats, now);
            for (size_t k = 0; k < count; k++)
                words[(1 + k / 32) * nic_.config.beat_words + k % 32 / 2] |=
                    uint32_t(tags[first + k]) << 16 * (k % 2);
        }
    }
    // Let a packet begin its way; returns its words, of which the NIC looks at `shown` beats.
    uint32_t* send(uint32_t opcode, uint32_t step, uint32_t count, size_t beats, size_t shown,
                   double now) {
        const Config& config = nic_.config;
        const uint64_t size = beats * sizeof(uint32_t) * DATA_WORDS;
        to_nic += size;
        const double begins = std::max(now, link_free_);
        link_free_ = begins + double(size) * config_.cycles_per_byte;
        packets_.push_back({words_.size(), arrivals_.size(), uint32_t(beats)});
        const double per_beat = double(sizeof(uint32_t) * DATA_WORDS) * config_.cycles_per_byte;
        for (size_t beat = 1; beat <= beats; beat++)
            arrivals_.push_back(uint64_t(std::ceil(begins + double(beat) * per_beat
                                                   + double(config_.latency))));
        words_.resize(words_.size() + shown * config.beat_words, 0);
        uint32_t* words = &words_[packets_.back().words];
        config.opcode.set(words, opcode);
        config.source.set(words, config_.node);
        config.step.set(words, step & 0xFFFF);
        config.count.set(words, count);
        return words;
    }

    Nic& nic_;
    const HostConfig config_;
    std::list<Step> steps_;  // under way, in the order in which they were handed out
    std::deque<Step*> waiting_;
    std::deque<Query> queries_;
    std::priority_queue<Event> events_;
    std::vector<Taken> taken_;
    std::vector<size_t> free_taken_;
    std::vector<Step*> completed_;
    uint64_t order_ = 0, going_ = 0, sent_ = 0, consumed_ = 0;
    uint32_t credit_ = 0;
    bool turn_ = false;
    double link_free_ = 0;
    // To be given to the NIC at the end of a quantum.
    std::vector<Sent> packets_;
    std::vector<uint32_t> words_;
    std::vector<uint64_t> arrivals_;
};

}  // namespace ember
