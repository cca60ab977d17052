// The harness runs one compiled design cycle by cycle, with queues at its streams, register access,
// link rates, random stalls and skipping of idle cycles. It is the same for every design and runs
// without Python.
//
// A cycle: drive inputs, evaluate with the clock low, sample handshakes, evaluate the rising edge.
// sim/engines/pysim.py does the same on Amaranth's simulator; both must agree in every cycle.
#include "harness.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

namespace ember {
namespace {

constexpr uint64_t NEVER = ~uint64_t(0);
constexpr uint32_t NO_PORT = ~uint32_t(0);
constexpr uint32_t FRACTION = 20;  // fractional bits of link time
// Cycles evaluated before the event that ends a skip: a registered copy of `time` must be current.
constexpr uint64_t SETTLE = 2;
constexpr uint64_t RESET_CYCLES = 4;

uint64_t mix(uint64_t x) {  // splitmix64
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

struct Stall {
    uint64_t seed = 0;
    uint64_t threshold = 0;  // of 2^32
    bool at(uint64_t cycle) const {
        return threshold && (mix(seed ^ mix(cycle)) >> 32) < threshold;
    }
};

struct Bit {
    uint8_t* data = nullptr;
    bool get() const { return *data & 1; }
    void set(bool value) const { *data = value; }
};

struct Input {
    Port payload;
    Bit valid, ready;
    uint32_t words;
    std::vector<uint32_t> beats;
    std::vector<uint64_t> cycles;
    size_t head = 0;
    bool offering = false;
    Stall stall;

    uint64_t due() const { return head < cycles.size() ? cycles[head] : NEVER; }
    void compact() {
        if (head == cycles.size()) {
            beats.clear();
            cycles.clear();
            head = 0;
        } else if (head > 4096 && head * 2 > cycles.size()) {
            beats.erase(beats.begin(), beats.begin() + head * words);
            cycles.erase(cycles.begin(), cycles.begin() + head);
            head = 0;
        }
    }
};

struct Output {
    Port payload;
    Bit valid, ready;
    uint32_t words;
    std::vector<uint32_t> beats;
    std::vector<uint64_t> cycles;
    Stall stall;
    uint64_t beat_cost = 0, packet_cost = 0, burst = 0, link_free = 0, held_until = 0;
    int64_t last_bit = -1;

    bool open(uint64_t cycle) const {
        return link_free <= (cycle << FRACTION) + burst && cycle >= held_until &&
               !stall.at(cycle);
    }
    void take(uint64_t cycle) {
        size_t at = beats.size();
        beats.resize(at + words, 0);
        if (payload.data) std::memcpy(&beats[at], payload.data, payload.bytes);
        cycles.push_back(cycle);
        if (beat_cost | packet_cost) {
            // A beat that waited the whole cycle began at the fractional time, so the rate is exact.
            const uint64_t earliest = cycle ? ((cycle - 1) << FRACTION) + 1 : 0;
            link_free = std::max(link_free, earliest) + beat_cost;
            if (last_bit >= 0 && (beats[at + last_bit / 32] >> (last_bit % 32) & 1))
                link_free += packet_cost;
        }
    }
};

// Counts of beats that cross the streams inside the design, from the two ports of their handshakes.
struct Channels {
    Port valid, ready;
    std::vector<uint64_t> beats, last;
    uint64_t moved = NEVER;

    void sample(uint64_t cycle) {
        for (uint32_t first = 0; first < valid.bytes; first += 8) {
            uint64_t moving = word(valid, first) & word(ready, first);
            if (moving) moved = cycle;
            for (; moving; moving &= moving - 1) {
                const auto at = 8 * first + static_cast<uint32_t>(__builtin_ctzll(moving));
                beats[at]++;
                last[at] = cycle;
            }
        }
    }
    static uint64_t word(const Port& port, uint32_t first) {
        uint64_t value = 0;
        std::memcpy(&value, static_cast<const uint8_t*>(port.data) + first,
                    std::min(8u, port.bytes - first));
        return value;
    }
};

struct RegisterOp {
    uint64_t cycle;
    uint32_t addr, data;
    bool write;
};

struct RegisterResult {
    uint64_t cycle;
    uint32_t addr, data, resp, write;
};

// AXI4-Lite master: one operation at a time, in order of their cycles.
struct Registers {
    enum { awaddr, awvalid, awready, wdata, wstrb, wvalid, wready, bresp, bvalid, bready,
           araddr, arvalid, arready, rdata, rresp, rvalid, rready, MEMBERS };
    Port ports[MEMBERS];
    bool present = false;
    std::deque<RegisterOp> ops;
    std::vector<RegisterResult> results;
    bool busy = false, address_done = false, data_done = false;

    uint64_t due() const { return ops.empty() ? NEVER : ops.front().cycle; }
    void put(int port, uint32_t value) {
        std::memcpy(ports[port].data, &value, ports[port].bytes);
    }
    uint32_t get(int port) const {
        uint32_t value = 0;
        std::memcpy(&value, ports[port].data, ports[port].bytes);
        return value;
    }
    void drive(uint64_t cycle) {
        if (busy || ops.empty() || ops.front().cycle > cycle) return;
        const RegisterOp& op = ops.front();
        busy = true;
        address_done = data_done = false;
        if (op.write) {
            put(awaddr, op.addr);
            put(wdata, op.data);
            put(wstrb, 15);
            put(awvalid, 1);
            put(wvalid, 1);
            put(bready, 1);
        } else {
            put(araddr, op.addr);
            put(arvalid, 1);
            put(rready, 1);
        }
    }
    struct Seen { bool aw, w, b, ar, r; uint32_t data, resp; };
    Seen sample() const {
        const bool write = ops.front().write;
        Seen seen{};
        if (write) {
            seen.aw = !address_done && get(awready);
            seen.w = !data_done && get(wready);
            seen.b = get(bvalid);
            seen.resp = get(bresp);
        } else {
            seen.ar = !address_done && get(arready);
            seen.r = get(rvalid);
            seen.data = get(rdata);
            seen.resp = get(rresp);
        }
        return seen;
    }
    void finish(const Seen& seen, uint64_t cycle) {
        if (seen.aw || seen.ar) address_done = true;
        if (seen.w) data_done = true;
        if (seen.aw) put(awvalid, 0);
        if (seen.ar) put(arvalid, 0);
        if (seen.w) put(wvalid, 0);
        if (!seen.b && !seen.r) return;
        const RegisterOp op = ops.front();
        put(op.write ? bready : rready, 0);
        results.push_back({cycle, op.addr, op.write ? op.data : seen.data, seen.resp, op.write});
        ops.pop_front();
        busy = false;
    }
};

// The window of traced cycles. In the harness of an untraced design it has no effect.
struct Trace {
#ifdef EMBER_TRACE
    uint64_t first = NEVER, last = 0, cycle_ns = 0;
    bool begun = false;

    // Call before any signal changes in cycle `now`. A window that begins in skipped cycles begins
    // with the values that hold throughout them.
    void enter(Design& design, uint64_t now) {
        if (begun && now > last) close(design);
        if (begun || now < first || now > last) return;
        begun = true;
        if (now > first) design.trace_dump(first * cycle_ns);
    }
    void low(Design& design, uint64_t now) {
        if (begun) design.trace_dump(now * cycle_ns);
    }
    void high(Design& design, uint64_t now) {
        if (begun) design.trace_dump(now * cycle_ns + cycle_ns / 2);
    }
    void close(Design& design) {
        design.trace_close();
        begun = false;
        first = NEVER;
    }
#else
    void enter(Design&, uint64_t) {}
    void low(Design&, uint64_t) {}
    void high(Design&, uint64_t) {}
#endif
};

// A recording of the inputs in each evaluated cycle, for replay without the rest of the harness.
struct Stimulus {
    std::vector<Port> ports;  // the recorded inputs; empty while not recording
    std::vector<uint8_t> bytes;

    void record() {
        for (const auto& port : ports) {
            const auto* data = static_cast<const uint8_t*>(port.data);
            bytes.insert(bytes.end(), data, data + port.bytes);
        }
    }
    const uint8_t* drive(const uint8_t* at) const {
        for (const auto& port : ports) {
            std::memcpy(port.data, at, port.bytes);
            at += port.bytes;
        }
        return at;
    }
};

class Engine {
public:
    explicit Engine(int64_t seed) : design(make_design(seed)) {}

    std::unique_ptr<Design> design;
    Bit clock, reset, idle, waits;
    Port time{}, deadline{};
    std::vector<Input> inputs;
    std::vector<Output> outputs;
    Registers registers;
    Channels channels;
    Trace trace;
    Stimulus stimulus;
    bool skip = true;
    uint64_t now = 0;       // next cycle to evaluate
    uint64_t reached = 0;   // cycle seen from outside; later than now while asleep
    uint64_t evaluated = 0;
    bool asleep = false;    // the design is idle: cycles from now on need not be evaluated
    bool resetting = false;

    Bit bit(uint32_t index) {
        return Bit{index == NO_PORT ? nullptr : static_cast<uint8_t*>(design->port(index).data)};
    }

    void start() {
        for (auto& output : outputs) output.ready.set(false);
        if (reset.data) reset.set(true);
        for (uint64_t i = 0; i < RESET_CYCLES; i++) edge();
        if (reset.data) reset.set(false);
        edge();  // the wrapper's register still holds the reset
    }

    void edge() {
        low();
        if (clock.data) clock.set(true);
        design->eval();
    }

    void low() {
        if (clock.data) clock.set(false);
        design->eval();
    }

    // The cycle in which an idle design moves by itself; a past deadline counts as the current
    // cycle.
    uint64_t alarm() const {
        if (!waits.data || !waits.get()) return NEVER;
        uint32_t due = 0;
        std::memcpy(&due, deadline.data, sizeof due);
        const auto ahead = static_cast<int32_t>(due - static_cast<uint32_t>(now));
        return ahead > 0 ? now + static_cast<uint32_t>(ahead) : 0;
    }

    uint64_t next_due() const {
        uint64_t due = std::min(registers.busy ? 0 : registers.due(), alarm());
        for (const auto& input : inputs) due = std::min(due, input.offering ? 0 : input.due());
        return due;
    }

    uint64_t next_event() const { return asleep ? std::max(next_due(), reached) : reached; }

    // Wake up in time for an event in `cycle`.
    void wake(uint64_t cycle) {
        if (cycle > now + SETTLE) now = cycle - SETTLE;
        asleep = false;
    }

    // Evaluate up to this cycle with the old value of an input outside the streams.
    void touch() {
        if (!asleep) return;
        wake(reached);
        while (now < reached) step();
    }

    void run(uint64_t until) {
        if (until <= reached) return;
        reached = until;
        while (true) {
            if (asleep) {
                const uint64_t due = next_due();
                if (due >= until) return;
                wake(due);
            }
            if (now >= until) return;
            const bool nothing_moves = step();
            if (nothing_moves && skip && next_due() > now) asleep = true;
        }
    }

    // Evaluate one cycle; return whether `idle` was high and no beat or signal moved at any port.
    bool step() {
        const uint64_t cycle = now;
        bool quiet = idle.data != nullptr && !resetting;
        trace.enter(*design, cycle);
        if (time.data) {
            const uint32_t low = static_cast<uint32_t>(cycle);
            std::memcpy(time.data, &low, time.bytes);
        }
        for (auto& input : inputs) {
            if (!input.offering) {
                if (input.due() > cycle || input.stall.at(cycle)) continue;
                if (input.payload.data)
                    std::memcpy(input.payload.data, &input.beats[input.head * input.words],
                                input.payload.bytes);
                input.valid.set(true);
                input.offering = true;
            }
            quiet = false;
        }
        for (auto& output : outputs) output.ready.set(output.open(cycle));
        if (registers.present) registers.drive(cycle);
        stimulus.record();
        low();
        trace.low(*design, cycle);
        for (auto& output : outputs) {
            if (!output.valid.get()) continue;
            quiet = false;
            if (output.ready.get()) output.take(cycle);
        }
        bool accepted = false;
        for (auto& input : inputs) {
            if (input.offering && input.ready.get()) {
                input.offering = false;
                input.head++;
                accepted = true;
            }
        }
        channels.sample(cycle);
        Registers::Seen seen{};
        if (registers.busy) {
            seen = registers.sample();
            quiet = false;
        }
        // A deadline counts as an input that moves in its cycle.
        if (quiet) quiet = idle.get() && alarm() != 0;
        if (clock.data) clock.set(true);
        design->eval();
        trace.high(*design, cycle);
        if (accepted) {
            for (auto& input : inputs) {
                if (!input.offering) input.valid.set(false);
            }
        }
        if (registers.busy) registers.finish(seen, cycle);
        now++;
        evaluated++;
        return quiet;
    }
};

}  // namespace
}  // namespace ember

using ember::Engine;

// The ctypes interface. Ports and streams are given by index; Python checks the arguments.
#pragma GCC visibility push(default)
extern "C" {

Engine* ember_new(int64_t seed, uint32_t clock, uint32_t reset, uint32_t idle, uint32_t time,
                  uint32_t waits, uint32_t deadline, int skip) {
    auto* engine = new Engine(seed);
    engine->clock = engine->bit(clock);
    engine->reset = engine->bit(reset);
    engine->idle = engine->bit(idle);
    if (time != ember::NO_PORT) engine->time = engine->design->port(time);
    engine->waits = engine->bit(waits);
    if (deadline != ember::NO_PORT) engine->deadline = engine->design->port(deadline);
    engine->skip = skip;
    return engine;
}

void ember_free(Engine* engine) { delete engine; }

void ember_add_input(Engine* engine, uint32_t payload, uint32_t valid, uint32_t ready,
                     uint32_t words) {
    ember::Input input{};
    if (payload != ember::NO_PORT) input.payload = engine->design->port(payload);
    input.valid = engine->bit(valid);
    input.ready = engine->bit(ready);
    input.words = words;
    engine->inputs.push_back(std::move(input));
}

void ember_add_output(Engine* engine, uint32_t payload, uint32_t valid, uint32_t ready,
                      uint32_t words) {
    ember::Output output{};
    if (payload != ember::NO_PORT) output.payload = engine->design->port(payload);
    output.valid = engine->bit(valid);
    output.ready = engine->bit(ready);
    output.words = words;
    engine->outputs.push_back(std::move(output));
}

void ember_registers(Engine* engine, const uint32_t* ports) {
    for (int i = 0; i < ember::Registers::MEMBERS; i++)
        engine->registers.ports[i] = engine->design->port(ports[i]);
    engine->registers.present = true;
}

void ember_add_channels(Engine* engine, uint32_t valid, uint32_t ready, uint32_t count) {
    auto& channels = engine->channels;
    channels.valid = engine->design->port(valid);
    channels.ready = engine->design->port(ready);
    channels.beats.assign(count, 0);
    channels.last.assign(count, ember::NEVER);
}

uint64_t ember_last_beat(Engine* engine) { return engine->channels.moved; }

void ember_channels(Engine* engine, uint64_t* beats, uint64_t* last) {
    const auto& channels = engine->channels;
    std::copy(channels.beats.begin(), channels.beats.end(), beats);
    std::copy(channels.last.begin(), channels.last.end(), last);
}

void ember_start(Engine* engine) { engine->start(); }

void ember_run(Engine* engine, uint64_t until) { engine->run(until); }

void ember_push(Engine* engine, uint32_t stream, uint64_t count, const uint32_t* beats,
                const uint64_t* cycles) {
    auto& input = engine->inputs[stream];
    input.compact();
    input.beats.insert(input.beats.end(), beats, beats + count * input.words);
    // Late beats are offered from this cycle on, even if earlier cycles are still being skipped.
    for (uint64_t i = 0; i < count; i++)
        input.cycles.push_back(std::max(cycles[i], engine->reached));
}

uint64_t ember_waiting(Engine* engine, uint32_t stream) {
    return engine->inputs[stream].cycles.size() - engine->inputs[stream].head;
}

// Returns the number of beats, and copies them if the room suffices.
uint64_t ember_pop(Engine* engine, uint32_t stream, uint64_t room, uint32_t* beats,
                   uint64_t* cycles) {
    auto& output = engine->outputs[stream];
    const uint64_t count = output.cycles.size();
    if (count > room) return count;
    std::copy(output.beats.begin(), output.beats.end(), beats);
    std::copy(output.cycles.begin(), output.cycles.end(), cycles);
    output.beats.clear();
    output.cycles.clear();
    return count;
}

void ember_rate(Engine* engine, uint32_t stream, uint64_t beat, uint64_t packet, uint64_t burst,
                int64_t last_bit) {
    auto& output = engine->outputs[stream];
    output.beat_cost = beat;
    output.packet_cost = packet;
    output.burst = burst;
    output.last_bit = last_bit;
    if (!(beat | packet)) output.link_free = 0;
}

void ember_hold(Engine* engine, uint32_t stream, uint64_t until) {
    engine->outputs[stream].held_until = until;
}

void ember_stall(Engine* engine, int is_input, uint32_t stream, uint64_t seed,
                 uint64_t threshold) {
    auto& stall = is_input ? engine->inputs[stream].stall : engine->outputs[stream].stall;
    stall.seed = seed;
    stall.threshold = threshold;
}

// Bytes of a port's storage, which depend on the compiler of the design.
uint32_t ember_port_bytes(Engine* engine, uint32_t port) {
    return engine->design->port(port).bytes;
}

void ember_set_signal(Engine* engine, uint32_t port, const uint8_t* value) {
    engine->touch();
    const auto storage = engine->design->port(port);
    std::memcpy(storage.data, value, storage.bytes);
}

void ember_get_signal(Engine* engine, uint32_t port, uint8_t* value) {
    engine->low();
    const auto storage = engine->design->port(port);
    std::memcpy(value, storage.data, storage.bytes);
}

// Begin or end a reset of the design, from the current cycle on.
void ember_reset(Engine* engine, int active) {
    engine->touch();
    engine->resetting = active;
    if (engine->reset.data) engine->reset.set(active);
}

void ember_register_op(Engine* engine, uint32_t addr, uint32_t data, uint64_t cycle, int write) {
    auto& ops = engine->registers.ops;
    const uint64_t due = std::max(cycle, engine->reached);
    // After the accesses of the same cycle, including one in progress.
    auto at = ops.end();
    while (at != ops.begin() && (at - 1)->cycle > due) --at;
    ops.insert(at, {due, addr, data, write != 0});
}

uint64_t ember_registers_pending(Engine* engine) { return engine->registers.ops.size(); }

uint64_t ember_register_results(Engine* engine) { return engine->registers.results.size(); }

void ember_pop_registers(Engine* engine, uint64_t* cycles, uint32_t* words) {
    for (const auto& result : engine->registers.results) {
        *cycles++ = result.cycle;
        *words++ = result.addr;
        *words++ = result.data;
        *words++ = result.resp;
        *words++ = result.write;
    }
    engine->registers.results.clear();
}

uint64_t ember_cycle(Engine* engine) { return engine->reached; }

uint64_t ember_next_event(Engine* engine) { return engine->next_event(); }

// Evaluate with constant inputs only: the baseline for the harness's overhead.
void ember_run_bare(Engine* engine, uint64_t cycles) {
    for (uint64_t i = 0; i < cycles; i++) engine->edge();
}

// Start to record the `count` inputs with these indices.
void ember_record(Engine* engine, const uint32_t* inputs, uint32_t count) {
    engine->touch();
    engine->stimulus = {};
    for (uint32_t i = 0; i < count; i++)
        engine->stimulus.ports.push_back(engine->design->port(inputs[i]));
}

uint64_t ember_recorded(Engine* engine) { return engine->stimulus.bytes.size(); }

void ember_pop_recorded(Engine* engine, uint8_t* bytes) {
    auto& recorded = engine->stimulus.bytes;
    std::copy(recorded.begin(), recorded.end(), bytes);
    engine->stimulus = {};
}

// Evaluate with recorded inputs only, ignoring the outputs.
void ember_replay(Engine* engine, const uint32_t* inputs, uint32_t count, const uint8_t* bytes,
                  uint64_t size) {
    ember_record(engine, inputs, count);
    const ember::Stimulus stimulus = std::move(engine->stimulus);
    engine->stimulus = {};
    for (const uint8_t *at = bytes, *end = bytes + size; at < end;) {
        at = stimulus.drive(at);
        engine->edge();
    }
}

uint64_t ember_evaluated(Engine* engine) { return engine->evaluated; }

#ifdef EMBER_TRACE
// Trace cycles first to last, both included; a cycle takes cycle_ns, its clock rises halfway.
void ember_trace(Engine* engine, ember::TraceSink sink, uint64_t first, uint64_t last,
                 uint64_t cycle_ns) {
    engine->design->trace_open(sink);
    engine->trace.first = first;
    engine->trace.last = last;
    engine->trace.cycle_ns = cycle_ns;
}

void ember_trace_close(Engine* engine) { engine->trace.close(*engine->design); }
#endif

}  // extern "C"
#pragma GCC visibility pop
