// Packets between a host and a compiled NIC: what sim/node/host_port.py does in Python, to the bit.
// Compiled with -ffp-contract=off: cycles are those of numpy's arithmetic.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace {

// Of harness.cpp.
using Pop = uint64_t (*)(void*, uint32_t, uint64_t, uint32_t*, uint64_t*);
using Push = void (*)(void*, uint32_t, uint64_t, const uint32_t*, const uint64_t*);

constexpr uint64_t NEVER = ~uint64_t(0);

struct Framing {
    uint32_t words, data_words, keep_word, keep_words, last_bit;  // of a beat
};

struct Packet {
    uint64_t first, end, cycle;
};

struct Port {
    Framing framing;
    void* engine;
    uint32_t from, to;
    Pop pop;
    Push push;
    // What was taken: whole packets, already given away, then the beginning of one.
    std::vector<uint32_t> beats;
    std::vector<uint64_t> cycles;
    std::vector<Packet> packets;
    std::vector<uint32_t> framed;
    std::vector<uint64_t> arrivals;

    uint64_t whole() const { return packets.empty() ? 0 : packets.back().end; }

    void take() {
        beats.erase(beats.begin(), beats.begin() + whole() * framing.words);
        cycles.erase(cycles.begin(), cycles.begin() + whole());
        packets.clear();
        const size_t before = cycles.size();
        const uint64_t count = pop(engine, from, 0, nullptr, nullptr);
        if (!count) return;
        beats.resize((before + count) * framing.words);
        cycles.resize(before + count);
        pop(engine, from, count, &beats[before * framing.words], &cycles[before]);
        for (size_t beat = before; beat < cycles.size(); beat++) {
            const uint32_t word = beats[beat * framing.words + framing.last_bit / 32];
            if (word >> framing.last_bit % 32 & 1)
                packets.push_back({whole(), beat + 1, cycles[beat]});
        }
    }

    uint64_t send(uint64_t now, uint64_t count, const uint32_t* data, const uint32_t* lengths,
                  const double* starts, double per_beat, double latency) {
        framed.clear();
        arrivals.clear();
        for (uint64_t packet = 0; packet < count; packet++) {
            for (uint32_t beat = 1; beat <= lengths[packet]; beat++, data += framing.data_words) {
                arrivals.push_back(static_cast<uint64_t>(std::ceil(
                    starts[packet] + static_cast<double>(beat) * per_beat + latency)));
                const size_t at = framed.size();
                framed.resize(at + framing.words);
                std::copy(data, data + framing.data_words, &framed[at]);
                std::fill_n(&framed[at + framing.keep_word], framing.keep_words, ~uint32_t(0));
                framed[at + framing.last_bit / 32] |=
                    uint32_t(beat == lengths[packet]) << framing.last_bit % 32;
            }
        }
        if (arrivals[0] < now) return arrivals[0];
        push(engine, to, arrivals.size(), framed.data(), arrivals.data());
        return NEVER;
    }
};

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

Port* ember_port_new(const Framing* framing, void* engine, uint32_t from, uint32_t to, Pop pop,
                     Push push) {
    return new Port{*framing, engine, from, to, pop, push};
}

void ember_port_free(Port* port) { delete port; }

// Take the packets that were finished; returns how many, and their beats together.
uint64_t ember_port_take(Port* port, uint64_t* beats) {
    port->take();
    *beats = port->whole();
    return port->packets.size();
}

// Those packets: first beat, the one behind the last, cycle of the last; data of all beats.
void ember_port_packets(const Port* port, Packet* packets, uint32_t* data) {
    std::copy(port->packets.begin(), port->packets.end(), packets);
    const auto& framing = port->framing;
    for (size_t at = 0; at < port->whole() * framing.words; at += framing.words)
        data = std::copy_n(&port->beats[at], framing.data_words, data);
}

// Give the NIC packets; at least one. Returns the cycle of the first beat when it is before `now`,
// and then gives it nothing; otherwise the highest number.
uint64_t ember_port_send(Port* port, uint64_t now, uint64_t count, const uint32_t* data,
                         const uint32_t* lengths, const double* starts, double per_beat,
                         double latency) {
    return port->send(now, count, data, lengths, starts, per_beat, latency);
}

}  // extern "C"
#pragma GCC visibility pop
