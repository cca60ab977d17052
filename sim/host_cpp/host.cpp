// The compiled host of a compiled NIC; neither needs Python's lock. Reference: sim.node.node.Node.
#include "engine.h"
#include "host.h"

namespace {

struct Nic : ember::Engine {
    const ember::CountPort counts;

    Nic(const ember::EnginePort& port, const ember::CountPort& counts)
        : ember::Engine(port), counts(counts) {}
    void store_consumed(uint16_t lists, uint64_t cycle) {
        access(counts.access, counts.lists_consumed, lists, cycle);
    }
    void store_produced(uint16_t slots, uint64_t cycle) {
        access(counts.access, counts.vectors_produced, slots, cycle);
    }
};

struct Held {
    Nic nic;
};

struct Host : Held, ember::Host<Nic> {
    Host(const ember::EnginePort& port, const ember::CountPort& counts,
         const ember::HostConfig& config)
        : Held{Nic(port, counts)}, ember::Host<Nic>(nic, config) {}
};

}  // namespace

#include "host_calls.h"

extern "C" __attribute__((visibility("default"))) Host* ember_host_new(
    const ember::EnginePort* port, const ember::CountPort* counts, const ember::HostConfig* config) {
    return new Host(*port, *counts, *config);
}
