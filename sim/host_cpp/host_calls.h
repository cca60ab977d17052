// The ctypes interface of a host. A file that includes this header defines `Host`, an ember::Host,
// and ember_host_new.
#pragma once
#include "host.h"

#pragma GCC visibility push(default)
extern "C" {

void ember_host_free(Host* host) { delete host; }

void ember_host_submit(Host* host, const ember::Asked* asked) { host->submit(*asked); }

// Returns the number of answered shares not fetched yet, 2^64 - 1 after a fault.
uint64_t ember_host_advance(Host* host, uint64_t end, bool timed) {
    host->advance(end, timed);
    return host->answered();
}

uint64_t ember_host_quantum(Host* host, uint64_t end) {
    host->quantum(end);
    return host->answered();
}

void ember_host_finished(Host* host, ember::Share* shares) {
    std::copy(host->finished.begin(), host->finished.end(), shares);
    host->finished.clear();
}

// Returns the number of rejections not fetched yet, and copies them if the room suffices.
uint64_t ember_host_refusals(Host* host, uint64_t room, ember::Refusal* refusals) {
    auto& all = host->answers.refusals;
    const uint64_t count = all.size();
    if (room < count) return count;
    std::copy(all.begin(), all.end(), refusals);
    all.clear();
    return count;
}

double ember_host_next_event(Host* host) { return host->next_event(); }

uint64_t ember_host_actions(Host* host) { return host->actions; }

void ember_host_counts(Host* host, ember::HostCounts* counts) { *counts = host->counts(); }

}  // extern "C"
#pragma GCC visibility pop
