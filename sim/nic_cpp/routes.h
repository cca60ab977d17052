// Ways of vectors that fork and join.
#pragma once
#include "cache.h"
#include "packets.h"

namespace ember {

// rtl.stream.Arbiter of two ports, whose grant lasts until the last item of a packet.
class Turns {
public:
    // Returns the port that is granted, of those that have an item, or -1.
    int grant(bool first, bool second) const {
        if (locked_) return (previous_ ? second : first) ? previous_ : -1;
        if (!first && !second) return -1;
        return first && second ? !previous_ : second;
    }
    void taken(int port, bool last) {
        previous_ = port;
        locked_ = !last;
    }

private:
    bool previous_ = false, locked_ = false;
};

// rtl.network.vector_router: splits vectors of this node from vectors to other nodes.
struct Router {
    Queue<CacheBeat> head, local, remote;

    void init(Clock* clock) {
        for (auto* queue : {&head, &local, &remote}) queue->skid(clock);
    }
    void step(uint32_t node, Pool& pool) {
        if (remote.has() && pool.input.room()) {
            const CacheBeat beat = remote.pop();
            pool.input.push({beat.meta.node, beat.meta.step, beat.meta.landing, beat.last,
                             beat.beats});
        }
        if (head.has()) wire(head, head.front().meta.node == node ? local : remote);
    }
};

}  // namespace ember
