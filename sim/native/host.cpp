// The compiled host of a compiled NIC; neither needs Python's lock. Reference: sim.node.node.Node.
#include "engine.h"
#include "host.h"

namespace {

struct Held {
    ember::Engine engine;
};

struct Host : Held, ember::Host<ember::Engine> {
    Host(const ember::EnginePort& port, const ember::HostConfig& config)
        : Held{ember::Engine(port)}, ember::Host<ember::Engine>(engine, config) {}
};

}  // namespace

#include "host_calls.h"

extern "C" __attribute__((visibility("default"))) Host* ember_host_new(
    const ember::EnginePort* port, const ember::HostConfig* config) {
    return new Host(*port, *config);
}
