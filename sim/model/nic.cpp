// The interface of a modelled NIC for ctypes: that of harness.cpp, as far as a cluster uses it, and
// that of the host beside it.
#include "host.h"
#include "nic.h"

using ember::Nic;
using Host = ember::Host<Nic>;

#include "host_calls.h"

#pragma GCC visibility push(default)
extern "C" {

Nic* ember_new(const ember::Config* config, const ember::Plan* plan) {
    return new Nic(*config, *plan);
}

void ember_free(Nic* nic) { delete nic; }

void ember_run(Nic* nic, uint64_t until) { nic->run(until); }

void ember_push(Nic* nic, uint32_t stream, uint64_t count, const uint32_t* beats,
                const uint64_t* cycles) {
    nic->push(stream, count, beats, cycles);
}

uint64_t ember_waiting(Nic* nic, uint32_t stream) { return nic->waiting(stream); }

// Returns how many beats there are, and moves them if the room is enough.
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

void ember_floor(Nic* nic, uint32_t step, uint64_t cycle) { nic->floor(step, cycle); }

uint32_t ember_idle(Nic* nic) { return nic->idle(); }

uint64_t ember_cycle(Nic* nic) { return nic->reached; }

uint64_t ember_next_event(Nic* nic) { return nic->next_event(); }

uint64_t ember_last_beat(Nic* nic) { return nic->last_beat; }

uint64_t ember_evaluated(Nic* nic) { return nic->evaluated; }

Host* ember_host_new(Nic* nic, const ember::HostConfig* config) { return new Host(*nic, *config); }

// In the order of sim.model.counters.
void ember_counters(Nic* nic, uint64_t* values) {
    const auto give = [&](std::initializer_list<uint64_t> counts) {
        values = std::copy(counts.begin(), counts.end(), values);
    };
    give({nic->host_parser.packets, nic->host_parser.beats, nic->net_parser.packets,
          nic->net_parser.beats, nic->checker.samples, nic->checker.keys,
          nic->checker.empty_bags, nic->dispatched_local, nic->dispatched_remote});
    const auto& remote = nic->remote.counters;
    give({remote.accesses, remote.hits, remote.hits_pending, remote.misses,
          remote.conflict_misses, remote.unmerged, remote.evictions, remote.bad_fills,
          remote.beats_in, remote.beats_out});
    const auto& local = nic->local.counters;
    give({local.accesses, local.hits, local.hits_pending, local.misses, local.conflict_misses,
          local.evictions, local.bad_fills, local.beats_in, local.beats_out});
    const auto& dedupe = nic->dedupe.counters;
    give({dedupe.accesses, dedupe.misses, dedupe.hits, dedupe.conflict_misses, dedupe.bad_fills,
          dedupe.beats_in, dedupe.beats_out, nic->retired_early});
    for (auto* pair : {&nic->lookup_pool, &nic->request_pool}) {
        auto& reader = pair == &nic->lookup_pool ? nic->lookup_reader : nic->request_reader;
        give({pair->units, reader.packets, pair->full, pair->expired, pair->stepped});
    }
    const auto& vectors = nic->vector_pool;
    give({vectors.units, vectors.units * nic->config.vector_beats, nic->vector_reader.packets,
          vectors.full, vectors.expired});
    give({nic->receiver.beats_taken, nic->receiver.records, nic->receiver.records});
    give({nic->hold.reserved, nic->hold.vectors_in, nic->hold.beats_out});
    give({nic->pooler.beats_in, nic->pooler.beats_out, nic->pooler.adds});
    give({nic->results.samples, nic->results.packets, nic->results.vectors});
    give({nic->interaction.places.reserved, nic->interaction.places.vectors_in,
          nic->interaction.places.beats_out, nic->interaction.requests.packets});
    give({nic->interaction.frames.results, nic->interaction.frames.packets});
    give({nic->credits});
    give({nic->net_assembler.packets, nic->net_assembler.beats, nic->host_assembler.packets,
          nic->host_assembler.beats});
}

}  // extern "C"
#pragma GCC visibility pop
