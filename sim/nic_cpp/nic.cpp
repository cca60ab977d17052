// The ctypes interface of a modelled NIC: the part of harness.cpp's interface that a cluster uses,
// and the interface of its host.
#include <new>
#include <stdexcept>

#include "counters.h"
#include "host.h"
#include "nic.h"

using ember::Nic;
using Host = ember::Host<Nic>;

#include "host_calls.h"

#pragma GCC visibility push(default)
extern "C" {

// Returns null if memory does not suffice.
Nic* ember_new(const ember::Config* config, const ember::Plan* plan) {
    try {
        return new Nic(*config, *plan);
    } catch (const std::bad_alloc&) {
    } catch (const std::length_error&) {
    }
    return nullptr;
}

void ember_free(Nic* nic) { delete nic; }

void ember_run(Nic* nic, uint64_t until) { nic->run(until); }

void ember_push(Nic* nic, uint32_t stream, uint64_t count, const uint32_t* beats,
                const uint64_t* cycles) {
    nic->push(stream, count, beats, cycles);
}

uint64_t ember_waiting(Nic* nic, uint32_t stream) { return nic->waiting(stream); }

// Returns the number of beats, and copies them if the room suffices.
uint64_t ember_pop(Nic* nic, uint32_t stream, uint64_t room, uint32_t* beats, uint64_t* cycles) {
    auto& output = nic->outputs[stream];
    const uint64_t count = output.cycles.size();
    if (count > room) return count;
    std::copy(output.words.begin(), output.words.end(), beats);
    std::copy(output.cycles.begin(), output.cycles.end(), cycles);
    output.drop(count);
    return count;
}

void ember_rate(Nic* nic, uint32_t stream, uint64_t beat, uint64_t packet, uint64_t burst,
                int64_t) {
    auto& output = nic->outputs[stream];
    output.beat_cost = beat;
    output.packet_cost = packet;
    output.burst = burst;
}

void ember_hold(Nic* nic, uint32_t stream, uint64_t until) {
    nic->outputs[stream].held_until = until;
}

void ember_store(Nic* nic, uint32_t which, uint32_t value, uint64_t cycle) {
    void (Nic::*const ways[])(uint16_t, uint64_t) = {
        &Nic::store_floor, &Nic::store_consumed, &Nic::store_produced};
    (nic->*ways[which])(uint16_t(value), cycle);
}

uint32_t ember_idle(Nic* nic) { return nic->idle(); }

uint32_t ember_unlinked(Nic* nic) { return nic->unlinked(); }

uint64_t ember_cycle(Nic* nic) { return nic->reached; }

uint64_t ember_next_event(Nic* nic) { return nic->next_event(); }

uint64_t ember_last_beat(Nic* nic) { return nic->last_beat; }

uint64_t ember_evaluated(Nic* nic) { return nic->evaluated; }

Host* ember_host_new(Nic* nic, const ember::HostConfig* config) { return new Host(*nic, *config); }

void ember_counters(const Nic* nic, uint64_t* values) { ember::count(*nic, values); }

}  // extern "C"
#pragma GCC visibility pop
