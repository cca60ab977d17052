// One NIC: the blocks of rtl.nic, stepped in the cycles in which any of them changes.
#pragma once
#include <vector>

#include "arrival.h"
#include "bag_path.h"
#include "beats.h"
#include "cache.h"
#include "completion.h"
#include "delivery.h"
#include "interaction.h"
#include "landing.h"
#include "link.h"
#include "packets.h"
#include "queues.h"
#include "repeats.h"
#include "rings.h"
#include "row_asks.h"

namespace ember {

constexpr uint32_t FRACTION = 20;  // fractional bits of link time, as in the harness of the RTL

// An output, limited to the rate of its link.
struct Output : Beats {
    uint64_t beat_cost = 0, packet_cost = 0, burst = 0, free = 0, held_until = 0;

    bool open(Cycle now) const {
        return free <= (now << FRACTION) + burst && now >= held_until;
    }
    void take(Cycle now, bool last) {
        cycles.push_back(now);
        if (!(beat_cost | packet_cost)) return;
        const uint64_t earliest = now ? ((now - 1) << FRACTION) + 1 : 0;
        free = std::max(free, earliest) + beat_cost + (last ? packet_cost : 0);
    }
};

// Beats of the incomplete packet; the cycle in which the last beat crosses the port.
struct Input {
    std::vector<uint32_t> words;
    Cycle crossed = 0;
    uint32_t beats = 0;
    bool any = false;
};

class Nic {
public:
    enum { HOST, NET };

    Nic(const Config& given, const Plan& placed) : config(given), plan(placed) {
        const Config& c = config;
        for (auto* queue : {&local_fills_, &remote_fills_, &dense_fills_})
            queue->init(&clock, 0, 0);
        floors_.init(&clock, 0, 0);
        if (c.gpu_rings) rings.init(&clock, c, &packets_);
        if (c.row_reads) row_reads.init(&clock, c, plan);
        host_parser.init(c);
        net_parser.init(c);
        checker.init(&clock, c, plan, &segments_);
        receiver.init(&clock, c, plan);
        dispatch_.head.skid(&clock);
        dispatch_.local.skid(&clock);
        dispatch_.remote.skid(&clock);
        dispatch_.dense.skid(&clock);
        own_.fifo(&clock, c.request_fifo);
        requests_.skid(&clock);
        remote.init(&clock, c, {c.remote_sets, c.remote_ways, c.remote_in_flight, c.hold_vectors,
                                bool(c.remote_enable), bool(c.requester_merge)});
        dedupe.init(&clock, c, {c.dedupe_sets, c.dedupe_ways, c.dedupe_in_flight, c.scatter_entries,
                                bool(c.dedupe_enable), bool(c.dedupe_enable)});
        local.init(&clock, c, {c.local_sets, c.local_ways, c.local_in_flight, c.dedupe_in_flight,
                               bool(c.local_enable), bool(c.local_enable)});
        lookup_pool.init(&clock, &packets_, opcode::LOOKUPS, c.nodes, c.node_buffers, true,
                         0);
        lookup_pool.limit = RECORDS_PER_BEAT * std::min(c.net_payload_beats, c.lookup_window);
        lookup_pool.timeout = c.lookup_timeout;
        gate.init(&clock, c.nodes, c.lookup_window);
        queues.init(&clock, c);
        request_pool.init(&clock, &packets_,
                          c.row_reads ? opcode::READ_ROWS : opcode::LOOKUP_REQUESTS, 1, c.one_buffers, true, 0);
        request_pool.limit = std::min(c.request_batch, RECORDS_PER_BEAT * c.net_payload_beats);
        request_pool.timeout = c.request_timeout;
        vector_pool.init(&clock, &packets_, opcode::VECTORS, c.nodes, c.node_buffers, false,
                         1);
        vector_pool.limit = std::min(
            32u, ((c.net_payload_beats - 1) << c.vector_packing) / c.vector_beats);
        vector_pool.timeout = c.vector_timeout;
        vector_pool.packing = c.vector_packing;
        for (auto* reader : {&lookup_reader, &vector_reader, &request_reader})
            reader->init(&clock);
        router_.init(&clock);
        hold.init(&clock, c, c.hold_vectors);
        pooler.init(&clock, c);
        results.init(&clock, c, &packets_);
        interaction.init(&clock, c, &packets_);
        if (c.unique) {
            delivery.init(&clock, c);
            indices.init(&clock, c, &packets_);
        }
        completions.init(&clock, c, &packets_);
        reporter_.init(&clock);
        net_mux_.init(&clock);
        host_mux_.init(&clock);
        net_assembler.init(&clock, c.net_payload_beats, c.assembled, c.assembler_room);
        host_assembler.init(&clock, c.host_payload_beats, c.assembled, c.assembler_room);
        if (c.link) link.init(&clock, c, &packets_);
        if (c.owner_bags)
            bags.init(&clock, c, plan, &packets_, &segments_);
        if (c.repeat_positions) {
            repeats.init(&clock, c, &segments_);
            repeat_store.init(&clock);
        }
        net_ports_.ports = {&lookup_reader.out, &vector_reader.out};
        host_ports_.ports = {&request_reader.out, &interaction.requests.out, &results.closed.out,
                             &interaction.frames.out, &reporter_, &indices.closed.out,
                             &completions.out, &rings.out};
        if (!c.owner_bags) return;
        net_ports_.ports.push_back(&bags.reader.out);
        net_ports_.ports.push_back(&bags.vector_reader.out);
        host_ports_.ports.push_back(&bags.list_reader.out);
    }

    Clock clock;
    const Config config;
    const Plan plan;
    Output outputs[2];
    Input inputs[2];
    Parser host_parser, net_parser;
    Checker checker;
    Receiver receiver;
    Cache remote, dedupe, local;
    Pool lookup_pool, request_pool, vector_pool;
    Gate gate;
    OutputQueues queues;
    Reader lookup_reader, vector_reader, request_reader;
    Hold hold;
    Pooler pooler;
    ResultPackager results;
    Interaction interaction;
    Delivery delivery;
    IndexPackager indices;
    CompletionWriter completions;
    NicRings rings;
    LinkSender link;
    NicRowReads row_reads;
    BagPath bags;
    BagRepeats repeats;
    RepeatStore repeat_store;
    Assembler net_assembler, host_assembler;
    uint64_t dispatched_local = 0, dispatched_remote = 0, dispatched_bags = 0, credits = 0,
             retired_early = 0;
    Cycle reached = 0, last_beat = NEVER;
    uint64_t evaluated = 0;
    bool asleep = false;

    void push(uint32_t stream, uint64_t count, const uint32_t* beats, const uint64_t* cycles) {
        Input& input = inputs[stream];
        for (uint64_t k = 0; k < count; k++, beats += BEAT_WORDS) {
            Cycle cycle = std::max(cycles[k], clock.now);
            if (input.any) cycle = std::max(cycle, input.crossed + 1);
            input.any = true;
            input.crossed = cycle;
            input.words.insert(input.words.end(), beats, beats + BEAT_WORDS);
            input.beats++;
            if (!ends_packet(beats)) continue;
            stream == HOST ? from_host(input.words.data(), input.beats - 1, cycle)
                           : from_net(input.words.data(), input.beats - 1, cycle);
            input.words.clear();
            input.beats = 0;
        }
    }
    // A whole packet from the host; `words` holds only the beats that the NIC reads.
    void arrive(const uint32_t* words, uint32_t beats, const uint64_t* cycles) {
        Input& input = inputs[HOST];
        for (uint32_t k = 0; k < beats; k++) {
            const Cycle cycle = std::max(cycles[k], clock.now);
            input.crossed = input.any ? std::max(cycle, input.crossed + 1) : cycle;
            input.any = true;
        }
        from_host(words, beats - 1, input.crossed);
    }
    Cycle cycle() const { return reached; }
    Output& received() { return outputs[HOST]; }
    bool waiting(uint32_t stream) const {
        return inputs[stream].any && inputs[stream].crossed >= reached;
    }
    // Writes of registers, in the order of their cycles, one at a time.
    void store_floor(uint16_t step, Cycle cycle) { access(floors_, step, cycle); }
    void store_consumed(uint16_t lists, Cycle cycle) { access(rings.consumed, lists, cycle); }
    void store_produced(uint16_t slots, Cycle cycle) { access(rings.produced, slots, cycle); }

    void run(Cycle until) {
        reached = std::max(reached, until);
        while (clock.now < reached) {
            if (asleep) {
                const Cycle next = due();
                if (next >= reached) {
                    clock.now = reached;
                    return;
                }
                clock.now = std::max(clock.now, next);
            }
            clock.moved = false;
            step();
            evaluated++;
            if (clock.moved) last_beat = clock.now;
            asleep = !clock.moved && clock.soon <= clock.now && outputs_empty()
                     && !queues.looking() && !link.stalls();
            clock.now++;
        }
    }
    // The first cycle in which something happens without further input.
    Cycle next_event() const {
        if (!asleep) return reached;
        const Cycle next = due();
        return next == NEVER ? NEVER : std::max(next, reached);
    }
    // State of a reliable link: 1 if a packet was lost, 2 if a packet would have been sent again.
    uint32_t unlinked() const { return link.receiver.lost ? 1 : link.overdue ? 2 : 0; }
    bool idle() const { return asleep && due() == NEVER; }

private:
    struct Dispatch {
        Queue<Slot> head;
        Queue<Lookup> local, remote;
        Queue<DenseSlot> dense;
        bool inside = false;
    };

    struct Access {
        Cycle cycle;
        Queue<uint16_t>* target;
        uint16_t value;
    };

    void access(Queue<uint16_t>& target, uint16_t value, Cycle cycle) {
        const Cycle due = std::max(cycle, reached);
        const auto later = [&](const Access& each) { return each.cycle > due; };
        accesses_.insert(std::find_if(accesses_.begin(), accesses_.end(), later),
                         {due, &target, value});
    }
    Cycle accessed() const {
        return accesses_.empty() ? NEVER : std::max(accesses_.front().cycle, access_free_);
    }
    // rtl.control.csr: begin the next write; its value reaches the blocks some cycles later.
    void write() {
        if (accessed() > clock.now) return;
        const Access access = accesses_.front();
        accesses_.erase(accesses_.begin());
        access.target->put(access.value, clock.now + config.register_set);
        access_free_ = clock.now + config.register_next;
    }
    bool outputs_empty() const { return net_assembler.out.empty() && host_assembler.out.empty(); }

    Cycle due() const {
        Cycle next = std::min({checker.beats.next(), receiver.beats.next(), gate.events.next(),
                               local_fills_.next(), remote_fills_.next(), dense_fills_.next(),
                               lookup_pool.timer(), request_pool.timer(), vector_pool.timer()});
        if (config.interaction) next = std::min(next, interaction.timer());
        if (config.unique) next = std::min(next, indices.timer());
        if (config.gpu_rings) next = std::min(next, rings.next());
        if (config.link) next = std::min(next, link.next());
        if (config.owner_bags) next = std::min(next, bags.next());
        return std::min({next, completions.opens.next(), completions.flushed.next(), accessed()});
    }

    // Whether the credit in packets of an opcode is that of bags.
    static bool of_bags(uint32_t opcode) {
        return opcode == opcode::BAGS || opcode == opcode::BAG_VECTORS;
    }

    // A packet of `count` beats after its header, whose last beat arrived in cycle `end`.
    void from_host(const uint32_t* words, uint32_t count, Cycle end) {
        const uint32_t opcode = header::opcode.get(words);
        const bool opens = opcode == opcode::STEP_OPEN, flushed = opcode == opcode::FLUSHED;
        const bool read = opcode == opcode::READ_DATA;
        const uint16_t list = header::acknowledge.get(words);
        const Cycle header = host_parser.take(words, count, end,
                         opcode == opcode::QUERIES || opens || flushed,
                         [&](const RecordBeat& beat, Cycle at) {
                             if (opens || flushed)
                                 (opens ? completions.opens : completions.flushed).put(beat, at);
                             else
                                 checker.beats.put(beat, at + 2);
                         },
                         [&](uint32_t tag, Cycle at) {
                             (opcode == opcode::DENSE_VECTORS ? dense_fills_
                              : opcode == opcode::GPU_BAGS    ? bags.places.fills
                                                              : local_fills_)
                                 .put(tag, at);
                         }, read ? config.read_checked : 0, read ? rings.vectors(list) : 0);
        if (read) rings.landed.put(list, header + count + 1);
    }
    void from_net(const uint32_t* words, uint32_t count, Cycle end) {
        const uint32_t opcode = header::opcode.get(words);
        if (config.link) {
            const LinkHeader header(words);
            link.receiver.packets.put(header, end + config.header_checked);
            if (header.link) return;
        }
        // The header's credit passes a register behind the check, and a register in front of the
        // gate.
        const bool segments = opcode == opcode::BAGS, pooled = opcode == opcode::BAG_VECTORS;
        (of_bags(opcode) ? bags.gate : gate).events.put(
            {uint32_t(header::source.get(words)), uint16_t(header::credit.get(words))},
            end + config.header_checked + 2);
        net_parser.take(words, count, end, opcode == opcode::LOOKUPS || segments,
                        [&](const RecordBeat& beat, Cycle at) {
                            (segments ? bags.receiver.beats : receiver.beats).put(beat, at + 3);
                        },
                        [&](uint32_t tag, Cycle at) {
                            if (pooled) bags.landing.land(tag, at);
                            else remote_fills_.put(remote.id_of(tag), at);
                        });
    }

    void step() {
        depart(net_assembler, outputs[NET], NET);
        depart(host_assembler, outputs[HOST], HOST);
        Mux& to_net = config.link ? link.mux : net_mux_;
        net_assembler.step(to_net);
        host_assembler.step(host_mux_);
        net_assembler.header(to_net);
        report();
        const auto peers = [&](uint32_t node) { return receiver.consumed[node]; };
        if (config.link)
            link.step(net_mux_, [&](const Packet& packet) {
                return (of_bags(packet.opcode) ? bags.receiver.consumed
                                               : receiver.consumed)[packet.destination];
            });
        net_mux_.step(net_ports_);
        Packet* left = host_mux_.step(host_ports_);
        write();
        if (left && left->opcode == opcode::READ_ROWS)
            left->address = config.rows_base_low | uint64_t{config.rows_base_high} << 32;
        if (config.gpu_rings) {
            const bool list = left && left->opcode == opcode::LOOKUP_REQUESTS;
            rings.step(request_reader.out, list ? left : nullptr, checker.consumed);
            request_reader.out.closed = rings.closed();
        }

        const auto host = [&](uint32_t) { return checker.consumed; };
        lookup_reader.step(gate.out, lookup_pool.free, peers);
        gate.step(lookup_pool.closed);
        lookup_pool.step();
        queues.joined = lookup_pool.joined;
        queues.acknowledged = gate.acknowledged;
        queues.step();
        queues.take(lookup_pool.input);
        vector_reader.step(vector_pool.closed, vector_pool.free, peers);
        vector_pool.step();
        request_reader.step(request_pool.closed, request_pool.free, host);
        request_pool.step();
        if (config.owner_bags) bags.send(checker.consumed);

        completions.step(checker.consumed);
        if (config.unique) indices.step(delivery.told, checker.consumed);
        Queue<PooledBeat>& pooled = config.repeat_positions ? repeat_store.out : pooler.out;
        if (config.interaction) {
            if (dense_fills_.has()) interaction.land(dense_fills_.pop());
            interaction.step(pooled, dispatch_.dense, checker.consumed);
        } else {
            results.step(pooled, checker.consumed);
        }
        if (config.repeat_positions) repeat_store.step(pooler.out);
        pooler.step(hold.out);
        hold.step();
        if (config.owner_bags) {
            bags.land(hold, remote.vectors, router_.local);
        } else {
            if (remote.vectors.has()) hold.remote.push(remote.vectors.pop());
            wire(router_.local, hold.local);
        }
        router_.step(config.node, vector_pool);
        wire(dedupe.vectors, router_.head);

        if (remote_fills_.has()) remote.fill(remote_fills_.pop());
        if (remote.misses.has() && (queues.on() || lookup_pool.input.room()))
            ask_peer(remote.misses.pop());
        remote.step();
        wire(dispatch_.remote, remote.entry);

        if (local_fills_.has()) local.fill(local_fills_.pop());
        if (config.row_reads) {
            if (row_reads.out.has() && request_pool.input.room())
                request_pool.input.push({0, 0, row_reads.leave(), true});
            if (local.misses.has() && row_reads.room()) row_reads.enter(local.misses.pop());
        } else if (local.misses.has() && request_pool.input.room()) {
            ask_gpu(local.misses.pop());
        }
        if (local.vectors.has()) {
            const CacheBeat beat = local.vectors.pop();
            if (beat.last) dedupe.fill(beat.meta.landing);
        }
        local.step();
        if (dedupe.misses.has() && local.entry.room()) look_up(dedupe.misses.pop());
        if (floors_.has()) floor_ = floors_.pop();
        dedupe.step();
        if (dedupe.evicted && int16_t(uint16_t(dedupe.evicted_key >> 48) - floor_) >= 0)
            retired_early++;
        retired_early += dedupe.conflicted;
        wire(requests_, dedupe.entry);
        arbitrate();
        wire(dispatch_.local, own_);
        receiver.step();
        if (config.repeat_positions) bags.step(repeats.segments());
        else if (config.owner_bags) bags.step(checker.segments);
        dispatch();
        checker.step(config.repeat_positions ? compare() : deliver(checker));
    }

    // Compare bags; return whether the front slot of the checker was taken.
    bool compare() {
        repeats.step(deliver(repeats));
        if (checker.segments.has() && repeats.words.room())
            repeats.words.push(checker.segments.pop());
        if (!checker.has() || !repeats.slots.room()) return false;
        repeats.slots.push(checker.front());
        return true;
    }
    // Deliver a slot; return whether the front slot of `source` was taken.
    template <class Source>
    bool deliver(const Source& source) {
        if (config.unique) {
            wire(delivery.way, dispatch_.head);
            delivery.step();
            if (!source.has() || !delivery.room()) return false;
            delivery.enter(source.front());
            return true;
        }
        if (!source.has() || !dispatch_.head.room()) return false;
        dispatch_.head.push(source.front());
        return true;
    }

    void depart(Assembler& assembler, Output& output, uint32_t stream) {
        if (!assembler.out.has() || !output.open(clock.now)) return;
        const FrameBeat beat = assembler.out.pop();
        const size_t at = output.words.size();
        output.words.resize(at + BEAT_WORDS, 0);
        uint32_t* words = &output.words[at];
        if (!beat.index) {
            const Packet& packet = *beat.packet;
            words[0] = uint32_t(packet.address);
            words[1] = uint32_t(packet.address >> 32);
            header::version.set(words, VERSION);
            header::opcode.set(words, packet.opcode);
            header::source.set(words, config.node);
            header::destination.set(words, packet.destination);
            header::step.set(words, packet.step);
            header::credit.set(words, packet.credit);
            header::count.set(words, packet.count);
            header::final_beat.set(words, packet.final_beat);
            if (config.link && stream == NET) {
                header::sequence.set(words, packet.sequence);
                header::acknowledge.set(words, packet.acknowledge);
            }
        } else {
            const auto& payload = beat.packet->words;
            const size_t first = size_t(beat.index - 1) * DATA_WORDS;
            if (first < payload.size())
                std::copy(payload.begin() + first,
                          payload.begin() + std::min(first + DATA_WORDS, payload.size()), words);
        }
        for (uint32_t k = 0; k < KEEP_WORDS; k++) words[KEEP_WORD + k] = ~0u;
        if (beat.last) words[LAST_BIT / 32] |= 1u << LAST_BIT % 32;
        output.take(clock.now, beat.last);
        if (beat.last) packets_.give(beat.packet);
    }

    // rtl.query.reporter: a packet for a credit that no other packet has reported to the host.
    void report() {
        const bool passes = !host_mux_.headers.empty() && host_mux_.headers.has();
        const Packet* next = passes ? host_mux_.headers.front() : nullptr;
        const uint16_t value = next ? next->credit : 0;
        const bool reported = host_assembler.header(host_mux_);
        if (reported) completions.answer(uint16_t(next->step), next->answers);
        const uint16_t consumed = checker.consumed;
        const uint16_t owed = consumed - reported_;
        const bool behind = owed > config.query_beats / config.credit_share;
        const bool sends = owes_ && reporter_.headers.room();
        if (sends) {
            Packet* packet = packets_.get(opcode::CREDIT, 0, 0);
            packet->credit = consumed;
            reporter_.headers.push(packet);
            reported_ = consumed;
            credits++;
        } else if (reported && int16_t(uint16_t(value - reported_)) >= 0) {
            reported_ = value;
        }
        const bool owes = behind && !sends && !reported;
        if (owes != owes_) clock.moved = true;
        owes_ = owes;
    }

    void ask_peer(const Miss& miss) {
        const Item lookup{miss.meta.node, miss.meta.step, record(miss, remote.tag(miss.id)), true};
        queues.on() ? queues.enter(lookup) : lookup_pool.input.push(lookup);
    }
    void ask_gpu(const Miss& miss) { request_pool.input.push({0, 0, record(miss, miss.id), true}); }
    uint64_t record(const Miss& miss, uint32_t landing) const {
        return lookup::row.at(miss.key) | lookup::table.at(miss.key >> lookup::row.bits)
               | lookup::landing.at(landing);
    }
    // A miss of the dedupe table, whose keys have the step in their high bits.
    void look_up(const Miss& miss) {
        const uint64_t key = miss.key & ((uint64_t{1} << 48) - 1);
        local.entry.push({key, hash_of(plan, key), {miss.id, 0, 0}});
    }
    void arbitrate() {
        const bool mine = own_.has(), other = receiver.out.has();
        if ((!mine && !other) || !requests_.room()) return;
        granted_ = mine && other ? !granted_ : other;
        Lookup lookup = granted_ ? receiver.out.pop() : own_.pop();
        // The step's bits, reversed, change the hash.
        uint32_t turned = 0;
        for (uint32_t k = 0; k < 16; k++)
            turned |= uint32_t(lookup.meta.step >> k & 1) << (31 - k);
        lookup.hash ^= turned;
        lookup.key |= uint64_t{lookup.meta.step} << 48;
        requests_.push(lookup);
    }
    void dispatch() {
        if (!dispatch_.head.has()) return;
        const Slot& slot = dispatch_.head.front();
        const bool bag = slot.bag, key = slot.kind != record::EMPTY && !bag;
        const bool mine = slot.owner == config.node;
        auto& way = mine ? dispatch_.local : dispatch_.remote;
        const bool begins = config.interaction && !dispatch_.inside;
        const bool waits = (key && !way.room()) || (bag && !bags.sender.starts.room())
                           || (begins && !dispatch_.dense.room()) || !hold.ready();
        if (config.owner_bags) bags.pool.source(waits);
        if (waits) return;
        const uint32_t place = hold.next_landing();
        hold.reserve({slot.sample, slot.step, slot.kind == record::EMPTY, slot.kind != record::KEY,
                      slot.last, slot.repeat, slot.kept});
        if (key) {
            way.push({slot.key, slot.hash,
                      {place, uint16_t(mine ? config.node : slot.owner), slot.step}});
            (mine ? dispatched_local : dispatched_remote)++;
        }
        if (bag) {
            bags.sender.starts.push({slot.owner, slot.step, place, mine, slot.beats});
            dispatched_bags++;
        }
        if (begins) dispatch_.dense.push({slot.sample, slot.step});
        dispatch_.inside = !slot.last;
        dispatch_.head.pop();
    }

    Packets packets_;
    Dispatch dispatch_;
    Queue<Lookup> own_, requests_;
    Queue<uint32_t> local_fills_, remote_fills_, dense_fills_;
    Queue<uint16_t> floors_;
    std::vector<Access> accesses_;
    Cycle access_free_ = 0;
    Router router_;
    Segments segments_;
    Departure reporter_;
    Mux net_mux_, host_mux_;
    Departures net_ports_, host_ports_;
    uint16_t reported_ = 0, floor_ = 0;
    bool granted_ = false, owes_ = false;
};

}  // namespace ember
