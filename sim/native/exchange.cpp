// Frames from engine to engine at the end of a quantum: taken whole, put in the order of time, sent
// through the network's queues, given to the engines they are for. What sim/cluster/exchange.py does in
// Python, to the bit. Compiled with -ffp-contract=off: cycles are those of numpy's arithmetic.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace {

// Of harness.cpp. The engines may be of several libraries, each with its own.
using Pop = uint64_t (*)(void*, uint32_t, uint64_t, uint32_t*, uint64_t*);
using Push = void (*)(void*, uint32_t, uint64_t, const uint32_t*, const uint64_t*);

struct Wire {
    uint32_t words, beat_bytes, last_bit;  // of a beat
    uint32_t destination_bit, destination_mask;  // in a header beat
    uint32_t overhead, switched;
    double lookahead, cycles_per_byte;
    double* free;  // [source, or 0 of a switch][destination]
};

struct Counts {
    uint64_t frames, bytes, lost;
    uint64_t late_node, late_cycle;  // a beat that came too late, where there is one
};

// Frames of one opcode: how many, and when the last of each step left.
struct Kind {
    uint32_t opcode;
    uint64_t frames = 0, bytes = 0;
    std::vector<uint64_t> last;  // by step; 0 for none
};

struct Node {
    void* engine;
    uint32_t from, to;
    Pop pop;
    Push push;
    // What was taken: whole frames, already carried, then the beginning of one.
    std::vector<uint32_t> beats;
    std::vector<uint64_t> cycles;
    size_t carried = 0;
    std::vector<uint32_t> arriving;
    std::vector<uint64_t> arrivals;
};

struct Frame {
    uint64_t cycle;
    size_t source, first, count;
};

class Exchange {
public:
    explicit Exchange(const Wire& wire) : wire(wire) {}

    const Wire wire;
    std::vector<Node> nodes;
    std::vector<Frame> frames;  // of the last quantum, in the order of time
    std::vector<Kind> kinds;    // that are told apart, in headers whose fields begin at these bits
    uint32_t opcode_bit = 0, step_bit = 0;

    bool step(uint64_t now, Counts& counts) {
        frames.clear();
        for (size_t number = 0; number < nodes.size(); number++) take(number);
        std::sort(frames.begin(), frames.end(), [](const Frame& one, const Frame& other) {
            return one.cycle != other.cycle ? one.cycle < other.cycle : one.source < other.source;
        });
        for (const auto& frame : frames) carry(frame, counts);
        for (size_t number = 0; number < nodes.size(); number++) {
            auto& node = nodes[number];
            if (node.arrivals.empty()) continue;
            if (node.arrivals[0] < now) {
                counts.late_node = number;
                counts.late_cycle = node.arrivals[0];
                return false;
            }
            node.push(node.engine, node.to, node.arrivals.size(), node.arriving.data(),
                      node.arrivals.data());
            node.arriving.clear();
            node.arrivals.clear();
        }
        return true;
    }

private:
    // Of whole bytes, in one word.
    static uint32_t field(const uint32_t* beats, uint32_t bit, uint32_t bits) {
        return beats[bit / 32] >> bit % 32 & ((uint32_t{1} << bits) - 1);
    }
    void take(size_t number) {
        auto& node = nodes[number];
        node.beats.erase(node.beats.begin(), node.beats.begin() + node.carried * wire.words);
        node.cycles.erase(node.cycles.begin(), node.cycles.begin() + node.carried);
        node.carried = 0;
        const size_t before = node.cycles.size();
        const uint64_t count = node.pop(node.engine, node.from, 0, nullptr, nullptr);
        if (!count) return;
        node.beats.resize((before + count) * wire.words);
        node.cycles.resize(before + count);
        node.pop(node.engine, node.from, count, &node.beats[before * wire.words],
                 &node.cycles[before]);
        for (size_t beat = before; beat < node.cycles.size(); beat++) {
            const uint32_t word = node.beats[beat * wire.words + wire.last_bit / 32];
            if (!(word >> wire.last_bit % 32 & 1)) continue;
            frames.push_back({node.cycles[beat], number, node.carried, beat + 1 - node.carried});
            node.carried = beat + 1;
        }
    }

    void carry(const Frame& frame, Counts& counts) {
        const uint32_t* beats = &nodes[frame.source].beats[frame.first * wire.words];
        const uint64_t size = frame.count * wire.beat_bytes;
        counts.frames++;
        counts.bytes += size;
        for (auto& kind : kinds) {
            if (field(beats, opcode_bit, 8) != kind.opcode) continue;
            const uint32_t step = field(beats, step_bit, 16);
            kind.frames++;
            kind.bytes += size;
            if (step >= kind.last.size()) kind.last.resize(step + 1);
            kind.last[step] = std::max(kind.last[step], frame.cycle);
        }
        const uint32_t destination = beats[wire.destination_bit / 32] >> wire.destination_bit % 32
                                     & wire.destination_mask;
        if (destination >= nodes.size()) {
            counts.lost++;
            return;
        }
        const size_t queue = wire.switched ? 0 : frame.source;
        double& free = wire.free[queue * nodes.size() + destination];
        const double start = std::max(static_cast<double>(frame.cycle) + wire.lookahead, free);
        free = start + static_cast<double>(size + wire.overhead) * wire.cycles_per_byte;
        auto& node = nodes[destination];
        node.arriving.insert(node.arriving.end(), beats, beats + frame.count * wire.words);
        const double per_beat = wire.beat_bytes * wire.cycles_per_byte;
        for (size_t beat = 1; beat <= frame.count; beat++)
            node.arrivals.push_back(
                static_cast<uint64_t>(std::ceil(start + static_cast<double>(beat) * per_beat)));
    }
};

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

Exchange* ember_exchange_new(const Wire* wire) { return new Exchange(*wire); }

void ember_exchange_free(Exchange* exchange) { delete exchange; }

void ember_exchange_add(Exchange* exchange, void* engine, uint32_t from, uint32_t to, Pop pop,
                        Push push) {
    Node node{};
    node.engine = engine;
    node.from = from;
    node.to = to;
    node.pop = pop;
    node.push = push;
    exchange->nodes.push_back(std::move(node));
}

// Hand on what left every engine before cycle `now`. Returns 0 when a beat would come too late.
int ember_exchange_step(Exchange* exchange, uint64_t now, Counts* counts) {
    return exchange->step(now, *counts);
}

// Tell frames of these opcodes apart from now on.
void ember_exchange_tell(Exchange* exchange, uint32_t opcode_bit, uint32_t step_bit,
                         uint64_t count, const uint32_t* opcodes) {
    exchange->opcode_bit = opcode_bit;
    exchange->step_bit = step_bit;
    for (uint64_t k = 0; k < count; k++) exchange->kinds.push_back({opcodes[k]});
}

// What there was of one of them: frames, bytes, and when the last of each of `steps` left.
void ember_exchange_told(Exchange* exchange, uint64_t place, uint64_t steps, uint64_t* values) {
    const auto& kind = exchange->kinds[place];
    *values++ = kind.frames;
    *values++ = kind.bytes;
    std::fill_n(values, steps, 0);
    std::copy_n(kind.last.begin(), std::min<size_t>(steps, kind.last.size()), values);
}

// How many frames the last step handed on, and their beats together.
uint64_t ember_exchange_frames(Exchange* exchange, uint64_t* beats) {
    *beats = 0;
    for (const auto& frame : exchange->frames) *beats += frame.count;
    return exchange->frames.size();
}

// Those frames in the order of time: cycle, source and number of beats of each; all their beats.
void ember_exchange_look(Exchange* exchange, uint64_t* places, uint32_t* beats) {
    for (const auto& frame : exchange->frames) {
        const auto& all = exchange->nodes[frame.source].beats;
        const auto first = all.begin() + frame.first * exchange->wire.words;
        beats = std::copy(first, first + frame.count * exchange->wire.words, beats);
        *places++ = frame.cycle;
        *places++ = frame.source;
        *places++ = frame.count;
    }
}

}  // extern "C"
#pragma GCC visibility pop
