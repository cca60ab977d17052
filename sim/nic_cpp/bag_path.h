// The path of owner-pooled bags in a NIC. Reference: rtl.nic_bags.
#pragma once
#include <algorithm>

#include "bags.h"
#include "landing.h"
#include "packets.h"

namespace ember {

class BagPath {
public:
    BagSender sender;
    BagLanding landing;
    BagReceiver receiver;
    OwnerPlaces places;
    BagPool pool, list_pool;
    Pool vector_pool;
    Gate gate;
    Reader reader, list_reader, vector_reader;

    void init(Clock* clock, const Config& config, const Plan& plan, Packets* packets,
              Segments* segments) {
        config_ = &config;
        sender.init(clock, config.link);
        landing.init(clock, config);
        receiver.init(clock, config, segments);
        places.init(clock, config, plan);
        pool.init(clock, packets, segments, opcode::BAGS, config.nodes, config.node_buffers);
        pool.ages = config.bag_ages;
        pool.waits = config.bag_waits;
        pool.limit = RECORDS_PER_BEAT * std::min(config.net_payload_beats, config.bag_window);
        pool.timeout = config.bag_timeout;
        gate.init(clock, config.nodes, config.bag_window);
        list_pool.init(clock, packets, segments, opcode::BAG_LISTS, 1, config.one_buffers);
        list_pool.limit = RECORDS_PER_BEAT * config.net_payload_beats;
        list_pool.timeout = config.request_timeout;
        list_pool.batch = config.bag_batch;
        vector_pool.init(clock, packets, opcode::BAG_VECTORS, config.nodes, config.node_buffers,
                         false, 1);
        vector_pool.room = (config.net_payload_beats - 1) << config.vector_packing;
        vector_pool.timeout = config.vector_timeout;
        vector_pool.packing = config.vector_packing;
        for (auto* each : {&reader, &list_reader, &vector_reader}) each->init(clock);
        router_.init(clock);
        to_hold_.skid(clock);
    }
    Cycle next() const {
        return std::min({landing.next(), receiver.beats.next(), places.next(), gate.events.next(),
                         pool.timer(), list_pool.timer(), vector_pool.timer()});
    }
    // Send packets. `consumed`: the credit of the host.
    void send(uint16_t consumed) {
        const auto peers = [&](uint32_t node) { return receiver.consumed[node]; };
        reader.step(gate.out, pool.free, peers);
        gate.step(pool.closed);
        pool.step();
        vector_reader.step(vector_pool.closed, vector_pool.free, peers);
        vector_pool.step();
        list_reader.step(list_pool.closed, list_pool.free, [&](uint32_t) { return consumed; });
        list_pool.step();
    }
    // Pass vectors to the hold buffer, merged with those of the remote cache, `cached`, and of own
    // keys, `local`.
    void land(Hold& hold, Queue<CacheBeat>& cached, Queue<CacheBeat>& local) {
        if (landing.out.has()) hold.remote.push(landing.out.pop());
        landing.step(cached);
        wire(to_hold_, hold.local);
        const int port = turns_.grant(local.has(), router_.local.has());
        if (port >= 0 && to_hold_.room()) {
            const CacheBeat beat = (port ? router_.local : local).pop();
            turns_.taken(port, beat.last);
            to_hold_.push(beat);
        }
        router_.step(config_->node, vector_pool);
        if (places.answers.has() && router_.head.room()) router_.head.push(places.answer());
    }
    // Take bags: of other nodes, then of this node's samples, whose `segments` follow each other.
    template <class Source>
    void step(Source&& segments) {
        places.step(receiver.out, sender, list_pool.input);
        receiver.step();
        sender.step(segments, landing, pool.input);
    }

private:
    const Config* config_ = nullptr;
    Router router_;
    Queue<CacheBeat> to_hold_;
    Turns turns_;
};

}  // namespace ember
