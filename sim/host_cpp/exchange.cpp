// The exchange of frames between engines at the end of a quantum: split, sorted by time, sent
// through the network's queues, pushed. Reference, bit for bit: sim.cluster.exchange.Exchange.
// Compiled with -ffp-contract=off: cycles equal the results of numpy's arithmetic.
#include <cmath>
#include <tuple>

#include "engine.h"
#include "frame_faults.h"

namespace {

using namespace ember;

// Counts of one opcode's frames, and the cycle in which the last frame of each step left.
struct Kind {
    uint32_t opcode;
    uint64_t frames = 0, bytes = 0;
    std::vector<uint64_t> last;  // by step; 0 without frames
};

struct Node {
    Engine engine;
    size_t carried = 0;  // beats of whole frames already forwarded
    Beats arriving;
};

struct Frame {
    uint64_t cycle;
    size_t source, first, count;
};

// A frame after faults were applied, before it is forwarded.
struct Waiting {
    uint64_t cycle, source, order, destination;
    std::vector<uint32_t> words;

    // Whether it is forwarded after the other; the front of a heap is then the first frame.
    bool operator<(const Waiting& other) const {
        return std::tie(cycle, source, order) > std::tie(other.cycle, other.source, other.order);
    }
};

class Exchange {
public:
    explicit Exchange(const Link& link) : link_(link) {}

    std::vector<Node> nodes;
    std::vector<Frame> frames;  // of the last quantum, in time order
    std::vector<Kind> kinds;    // opcodes that are counted separately
    FrameFaults faults;

    bool step(uint64_t now, Exchanged& done) {
        frames.clear();
        for (size_t number = 0; number < nodes.size(); number++) {
            auto& node = nodes[number];
            auto& beats = node.engine.received();
            beats.drop(node.carried);
            node.carried = beats.split([&](size_t first, size_t count, uint64_t cycle) {
                frames.push_back({cycle, number, first, count});
            });
        }
        std::sort(frames.begin(), frames.end(), [](const Frame& one, const Frame& other) {
            return one.cycle != other.cycle ? one.cycle < other.cycle : one.source < other.source;
        });
        for (const auto& frame : frames) carry(frame, done);
        release(now, done);
        for (size_t number = 0; number < nodes.size(); number++) {
            auto& [words, cycles] = nodes[number].arriving;
            if (cycles.empty()) continue;
            if (cycles[0] < now) {
                done.late_node = number;
                done.late_cycle = cycles[0];
                return false;
            }
            nodes[number].engine.push(cycles.size(), words.data(), cycles.data());
            words.clear();
            cycles.clear();
        }
        return true;
    }
    const uint32_t* words(const Frame& frame) const {
        return &nodes[frame.source].engine.sent().words[frame.first * BEAT_WORDS];
    }

private:
    void carry(const Frame& frame, Exchanged& done) {
        const uint32_t* beats = words(frame);
        const uint64_t size = frame.count * BEAT_BYTES;
        done.frames++;
        done.bytes += size;
        for (auto& kind : kinds) {
            if (header::opcode.get(beats) != kind.opcode) continue;
            const uint64_t step = header::step.get(beats);
            kind.frames++;
            kind.bytes += size;
            if (step >= kind.last.size()) kind.last.resize(step + 1);
            kind.last[step] = std::max(kind.last[step], frame.cycle);
        }
        const uint64_t destination = header::destination.get(beats);
        if (destination >= nodes.size()) {
            done.lost++;
            return;
        }
        if (!faults.any()) {
            deliver(frame.cycle, frame.source, destination, beats, frame.count, done);
            return;
        }
        faults.apply(frame.cycle, frame.source, destination, beats, frame.count,
                     [&](uint64_t cycle, const std::vector<uint32_t>& copy) {
                         waiting_.push_back({cycle, frame.source, order_++, destination, copy});
                         std::push_heap(waiting_.begin(), waiting_.end());
                     });
    }
    // Deliver the waiting frames that are forwarded before cycle `now`.
    void release(uint64_t now, Exchanged& done) {
        while (!waiting_.empty() && waiting_.front().cycle < now) {
            std::pop_heap(waiting_.begin(), waiting_.end());
            const Waiting frame = std::move(waiting_.back());
            waiting_.pop_back();
            done.released++;
            deliver(frame.cycle, frame.source, frame.destination, frame.words.data(),
                    frame.words.size() / BEAT_WORDS, done);
        }
        done.next = waiting_.empty() ? FOREVER : waiting_.front().cycle;
    }
    void deliver(uint64_t cycle, size_t source, uint64_t destination, const uint32_t* beats,
                 size_t count, Exchanged& done) {
        const size_t queue = link_.switched ? 0 : source;
        double& free = link_.free[queue * nodes.size() + destination];
        const double arrives = double(cycle) + link_.lookahead;
        const double start = std::max(arrives, free);
        const double end = start + double(count * BEAT_BYTES + link_.overhead)
                                   * link_.cycles_per_byte;
        if (end - arrives > link_.queue) {
            done.full++;
            return;
        }
        free = end;
        auto& arriving = nodes[destination].arriving;
        arriving.words.insert(arriving.words.end(), beats, beats + count * BEAT_WORDS);
        const double per_beat = BEAT_BYTES * link_.cycles_per_byte;
        for (size_t beat = 1; beat <= count; beat++)
            arriving.cycles.push_back(uint64_t(std::ceil(start + double(beat) * per_beat)));
    }

    std::vector<Waiting> waiting_;  // a heap
    uint64_t order_ = 0;
    const Link link_;
};

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

Exchange* ember_exchange_new(const Link* link) { return new Exchange(*link); }

void ember_exchange_free(Exchange* exchange) { delete exchange; }

void ember_exchange_add(Exchange* exchange, const EnginePort* port) {
    exchange->nodes.push_back({Engine(*port)});
}

// Another engine replaces node `number`; no access at its port is in progress.
void ember_exchange_replace(Exchange* exchange, uint64_t number, const EnginePort* port) {
    exchange->nodes[number] = {Engine(*port)};
}

// Forward the frames that left any engine before cycle `now`. Returns 0 if a beat would arrive
// late.
int ember_exchange_step(Exchange* exchange, uint64_t now, Exchanged* done) {
    return exchange->step(now, *done);
}

// Apply these faults to all further frames.
void ember_exchange_faults(Exchange* exchange, uint64_t seed, const FrameRule* rules,
                           uint64_t count) {
    exchange->faults.seed(seed);
    for (uint64_t place = 0; place < count; place++) exchange->faults.add(rules[place]);
}

// Returns the number of rows of injected faults. Writes their kind, source, destination, opcode and
// frames to `values`, unless null.
uint64_t ember_exchange_injected(Exchange* exchange, uint64_t* values) {
    const auto& injected = exchange->faults.injected;
    for (const auto& [where, frames] : injected) {
        if (!values) break;
        values = std::copy(where.begin(), where.end(), values);
        *values++ = frames;
    }
    return injected.size();
}

// Count the further frames of this opcode separately, too.
void ember_exchange_count(Exchange* exchange, uint32_t opcode) {
    exchange->kinds.push_back({opcode});
}

// The counts of the opcode at index `place`: frames, bytes, and the cycle in which the last frame
// of each of the first `steps` steps left.
void ember_exchange_counts(Exchange* exchange, uint64_t place, uint64_t steps, uint64_t* values) {
    const auto& kind = exchange->kinds[place];
    *values++ = kind.frames;
    *values++ = kind.bytes;
    std::fill_n(values, steps, 0);
    std::copy_n(kind.last.begin(), std::min<size_t>(steps, kind.last.size()), values);
}

// The number of frames that the last step forwarded, and the number of their beats.
uint64_t ember_exchange_frames(Exchange* exchange, uint64_t* beats) {
    *beats = 0;
    for (const auto& frame : exchange->frames) *beats += frame.count;
    return exchange->frames.size();
}

// The frames of the last step in time order: cycle, source and number of beats of each; all their
// beats.
void ember_exchange_look(Exchange* exchange, uint64_t* places, uint32_t* beats) {
    for (const auto& frame : exchange->frames) {
        beats = std::copy_n(exchange->words(frame), frame.count * BEAT_WORDS, beats);
        for (const uint64_t value : {frame.cycle, frame.source, frame.count}) *places++ = value;
    }
}

}  // extern "C"
#pragma GCC visibility pop
