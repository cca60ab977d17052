// The host of a NIC that runs, compiled too; Python's lock is not needed for either.
#include <algorithm>
#include <vector>

#include "host.h"

namespace {

// Of harness.cpp.
struct Calls {
    void (*run)(void*, uint64_t);
    uint64_t (*cycle)(void*);
    uint64_t (*next_event)(void*);
    uint64_t (*pop)(void*, uint32_t, uint64_t, uint32_t*, uint64_t*);
    void (*push)(void*, uint32_t, uint64_t, const uint32_t*, const uint64_t*);
};

// A NIC by those calls.
class Engine {
public:
    const ember::Wire config;

    Engine(const ember::Wire& wire, const Calls& calls, void* engine, uint32_t from, uint32_t to)
        : config(wire), calls_(calls), engine_(engine), from_(from), to_(to) {}

    void run(uint64_t until) { calls_.run(engine_, until); }
    uint64_t cycle() const { return calls_.cycle(engine_); }
    uint64_t next_event() const { return calls_.next_event(engine_); }

    struct Beats {
        std::vector<uint32_t> beats;
        std::vector<uint64_t> cycles;
    };
    Beats& received() {
        const uint64_t count = calls_.pop(engine_, from_, 0, nullptr, nullptr);
        if (count) {
            const size_t before = received_.cycles.size();
            received_.beats.resize((before + count) * config.beat_words);
            received_.cycles.resize(before + count);
            calls_.pop(engine_, from_, count, &received_.beats[before * config.beat_words],
                       &received_.cycles[before]);
        }
        return received_;
    }
    void arrive(uint32_t* words, uint32_t beats, const uint64_t* cycles) {
        for (uint32_t beat = 0; beat < beats; beat++)
            std::fill_n(words + beat * config.beat_words + config.keep_word, config.keep_words,
                        ~uint32_t(0));
        words[(beats - 1) * config.beat_words + config.last_bit / 32]
            |= uint32_t(1) << config.last_bit % 32;
        calls_.push(engine_, to_, beats, words, cycles);
    }

private:
    const Calls calls_;
    void* engine_;
    const uint32_t from_, to_;
    Beats received_;
};

struct Held {
    Engine engine;
};

struct Host : Held, ember::Host<Engine> {
    Host(const Engine& given, const ember::HostConfig& config)
        : Held{given}, ember::Host<Engine>(engine, config) {}
};

}  // namespace

#include "host_calls.h"

extern "C" __attribute__((visibility("default"))) Host* ember_host_new(
    const ember::Wire* wire, const Calls* calls, void* engine, uint32_t from, uint32_t to,
    const ember::HostConfig* config) {
    return new Host(Engine(*wire, *calls, engine, from, to), *config);
}

extern "C" __attribute__((visibility("default"))) uint32_t ember_wire_words() {
    return sizeof(ember::Wire) / sizeof(uint32_t);
}
