// Outgoing packets: collected, gated by credit, multiplexed, sent.
#pragma once
#include <memory>
#include <vector>

#include "nic_config.h"
#include "queue.h"

namespace ember {

struct Packet {
    uint32_t opcode, destination, step, count, credit, beats, tags;
    uint32_t answers;  // samples of its step that end with it, at the host
    uint32_t bags;     // that pool at their owner
    uint32_t final_beat;  // of the vectors of bags
    uint32_t sequence, acknowledge;  // of a reliable link
    uint64_t address;  // destination in GPU memory
    std::vector<uint32_t> words;  // of the payload; missing words are zero
};

// A pool of packets for reuse, so that their words keep their storage.
class Packets {
public:
    Packet* get(uint32_t opcode, uint32_t destination, uint32_t step) {
        if (free_.empty()) {
            all_.push_back(std::make_unique<Packet>());
            free_.push_back(all_.back().get());
        }
        Packet* packet = free_.back();
        free_.pop_back();
        packet->opcode = opcode;
        packet->destination = destination;
        packet->step = step;
        packet->count = packet->credit = packet->beats = packet->tags = 0;
        packet->answers = packet->bags = packet->final_beat = 0;
        packet->sequence = packet->acknowledge = 0;
        packet->address = 0;
        packet->words.clear();
        return packet;
    }
    void give(Packet* packet) { free_.push_back(packet); }

private:
    std::vector<std::unique_ptr<Packet>> all_;
    std::vector<Packet*> free_;
};

// An event at a node, and its count, if any.
struct NodeEvent {
    bool valid = false;
    uint32_t node = 0;
    uint16_t value = 0;
};

struct PayloadBeat {
    Packet* packet;
    bool last;
};

// The output buffers of one packager: headers and payload.
struct Departure {
    Queue<Packet*> headers;
    Queue<PayloadBeat> payload;
    bool closed = false;  // headers wait

    void init(Clock* clock) {
        headers.skid(clock);
        payload.skid(clock);
    }
    bool offers() const { return !closed && headers.has(); }
};

// The packagers whose packets a multiplexer merges.
struct Departures {
    std::vector<Departure*> ports;

    uint32_t size() const { return ports.size(); }
    bool offers(uint32_t port) const { return ports[port]->offers(); }
    Packet* pass(uint32_t port) { return ports[port]->headers.pop(); }
    bool has(uint32_t port) const { return ports[port]->payload.has(); }
    PayloadBeat pop(uint32_t port) { return ports[port]->payload.pop(); }
};

// Closed packets of a packager and their beats: header and tag beat leave together, then the beats.
class Closed {
public:
    Departure out;
    Queue<char> beats;  // whether each is the last of its packet
    Queue<Packet*> packets;

    void init(Clock* clock, size_t beats_held, size_t packets_held) {
        out.init(clock);
        beats.fifo(clock, beats_held);
        packets.fifo(clock, packets_held);
    }
    bool room() const { return beats.room() && packets.room(); }
    bool empty() const { return !current_ && packets.empty(); }
    // Returns the packet whose header leaves in this cycle, or null.
    Packet* step(uint16_t credit) {
        if (current_) {
            if (!beats.has() || !out.payload.room()) return nullptr;
            const bool last = beats.pop();
            out.payload.push({current_, last});
            if (last) current_ = nullptr;
            return nullptr;
        }
        if (!packets.has() || !out.headers.room() || !out.payload.room()) return nullptr;
        current_ = packets.pop();
        current_->credit = credit;
        out.headers.push(current_);
        out.payload.push({current_, false});
        return current_;
    }

private:
    Packet* current_ = nullptr;
};

struct Item {
    uint32_t destination, step;
    uint64_t value;  // a record, or the landing of a vector
    bool last;       // last of its vector
    uint32_t beats = 1;  // of a bag's vector
};

// rtl.network.packet_pool: collects items by destination. `Rules`, a subclass, decides whether the
// open packet closes before or with an item, and adds the item to it.
template <class Rules, class Item>
class PoolOf {
public:
    uint64_t full = 0, expired = 0, stepped = 0;

    void init(Clock* clock, Packets* packets, uint32_t opcode, uint32_t destinations,
              uint32_t buffers) {
        clock_ = clock;
        packets_ = packets;
        opcode_ = opcode;
        open_.assign(destinations, nullptr);
        opened_.assign(destinations, 0);
        positions_.assign(destinations, 0);
        while ((1u << bits_) < destinations) bits_++;
        input.skid(clock);
        closed.fifo(clock, 0, 2);  // one place per buffer
        free.fifo(clock, 0, 2);
        for (uint32_t k = 0; k < buffers; k++) free.put(0, 0);
    }

    Queue<Item> input;
    Queue<Packet*> closed;
    Queue<char> free;
    uint32_t limit = 1, timeout = 0;

    void step() {
        if (input.empty() && !inside_ && !held_ && !late_) return;
        const Cycle now = clock_->now;
        const uint32_t look = now & ((1u << bits_) - 1);
        const bool finds = !late_ && look < open_.size() && open_[look]
                           && now >= due(look);
        if (late_ && !middle_) {
            if (open_[late_index_]) {
                close(late_index_);
                expired++;
            }
            late_ = false;
            clock_->moved = true;
        } else if (inside_) {
            take();
        }
        if (!inside_ && input.has()) {
            item_ = input.pop();
            inside_ = true;
        }
        if (finds) {
            late_ = true;
            late_index_ = look;
            clock_->moved = true;
        }
    }

    // The first cycle, from the current one, in which an open packet may time out.
    Cycle timer() const {
        if (late_) return clock_->now;
        Cycle first = NEVER;
        if (!held_) return first;
        const Cycle period = Cycle(1) << bits_;
        for (size_t k = 0; k < open_.size(); k++) {
            if (!open_[k]) continue;
            const Cycle from = std::max(due(k), clock_->now);
            first = std::min(first, from + ((k - from) & (period - 1)));
        }
        return first;
    }

protected:
    Clock* clock_ = nullptr;
    Cycle placed_ = 0;  // the last item

private:
    // The first cycle in which open packet `k` may time out.
    Cycle due(uint32_t k) const {
        return static_cast<const Rules&>(*this).expires(opened_[k]);
    }
    void take() {
        Rules& rules = static_cast<Rules&>(*this);
        const Item& item = item_;
        const uint32_t k = item.destination;
        if (open_[k] && rules.splits(item, *open_[k])) {
            close(k);
            return;
        }
        if (!open_[k]) {
            if (!free.has()) return;
            free.pop();
            open_[k] = packets_->get(opcode_, k, item.step);
            opened_[k] = clock_->now;
            positions_[k] = 0;
            held_++;
        }
        Packet* packet = open_[k];
        positions_[k]++;
        placed_ = clock_->now;
        middle_ = !item.last;
        rules.add(item, *packet);
        const bool fills = item.last && rules.fills(*packet);
        inside_ = false;
        clock_->moved = true;
        if (fills) {
            close(k);
            full++;
        }
    }
    void close(uint32_t k) {
        Packet* packet = open_[k];
        open_[k] = nullptr;
        held_--;
        packet->beats = static_cast<Rules&>(*this).beats(*packet, positions_[k]);
        closed.push(packet);
    }

    Packets* packets_ = nullptr;
    uint32_t opcode_ = 0, bits_ = 0, late_index_ = 0, held_ = 0;
    bool late_ = false, middle_ = false, inside_ = false;
    Item item_;  // taken from the input, and waiting for its place
    std::vector<Packet*> open_;
    std::vector<Cycle> opened_;
    std::vector<uint32_t> positions_;
};

// Packets of records or vectors.
class Pool : public PoolOf<Pool, Item> {
public:
    uint64_t units = 0, items = 0;
    NodeEvent joined;  // a record that shares a beat with the previous record
    uint32_t packing = 0;
    uint32_t room = 0;  // beats of bags' vectors in a packet, 0 for other items

    void init(Clock* clock, Packets* packets, uint32_t opcode, uint32_t destinations,
              uint32_t buffers, bool match_step, uint32_t tags) {
        PoolOf::init(clock, packets, opcode, destinations, buffers);
        match_step_ = match_step;
        tags_ = tags;
    }
    void step() {
        joined.valid = false;
        PoolOf::step();
    }

private:
    friend PoolOf<Pool, Item>;

    Cycle expires(Cycle opened) const { return opened + timeout; }
    bool splits(const Item& item, const Packet& packet) {
        const bool other = (match_step_ && packet.step != item.step)
                           || (room && packet.final_beat + 1 != item.beats);
        stepped += other;
        return other;
    }
    void add(const Item& item, Packet& packet) {
        items++;
        if (room) packet.final_beat = item.beats - 1;
        if (!item.last) return;
        units++;
        joined = {packet.count % RECORDS_PER_BEAT != 0, packet.destination};
        packet.count++;
        if (tags_) {
            const uint32_t word = (packet.count - 1) / 2;
            if (packet.words.size() <= word) packet.words.push_back(0);
            packet.words[word] |= uint32_t(item.value) << 16 * ((packet.count - 1) % 2);
        } else {
            packet.words.push_back(uint32_t(item.value));
            packet.words.push_back(uint32_t(item.value >> 32));
        }
    }
    bool fills(const Packet& packet) const {
        return packet.count >= (room ? std::min(TAGS_PER_BEAT, room / (packet.final_beat + 1))
                                     : limit);
    }
    uint32_t beats(const Packet& packet, uint32_t positions) const {
        return tags_ ? ((positions + (1u << packing) - 1) >> packing) + tags_
                     : (packet.count + RECORDS_PER_BEAT - 1) / RECORDS_PER_BEAT;
    }

    uint32_t tags_ = 0;
    bool match_step_ = false;
};

// rtl.network.credits.CreditGate: passes a packet when its beats fit the window.
class Gate {
public:
    void init(Clock* clock, uint32_t nodes, uint32_t window) {
        clock_ = clock;
        window_ = window;
        sent_.assign(nodes, 0);
        acknowledged_.assign(nodes, 0);
        out.skid(clock);
        events.init(clock, 0, 0);
    }
    struct Credit {
        uint32_t node;
        uint16_t value;
    };
    Queue<Packet*> out;
    Queue<Credit> events;
    NodeEvent acknowledged;  // known from the next cycle on

    void step(Queue<Packet*>& in) {
        acknowledged.valid = false;
        if (in.empty() && events.empty() && !checked_ && !fits_) return;
        if (checked_ && fits_) {
            if (out.room()) {
                Packet* packet = in.pop();
                sent_[packet->destination] += packet->beats;
                out.push(packet);
                checked_ = false;
            }
        } else {
            const bool checked = in.has();
            bool fits = false;
            if (checked) {
                const Packet* packet = in.front();
                const uint16_t pending = sent_[packet->destination]
                                         - acknowledged_[packet->destination];
                fits = uint32_t(pending) + packet->beats <= window_;
            }
            if (checked != checked_ || fits != fits_) clock_->moved = true;
            checked_ = checked;
            fits_ = fits;
        }
        if (events.has()) {
            const Credit credit = events.pop();
            const uint16_t step = credit.value - acknowledged_[credit.node];
            const uint16_t pending = sent_[credit.node] - acknowledged_[credit.node];
            if (step < 1u << 15) {
                acknowledged_[credit.node] = step <= pending ? credit.value : sent_[credit.node];
                acknowledged = {true, credit.node, acknowledged_[credit.node]};
            }
        }
    }

private:
    Clock* clock_ = nullptr;
    uint32_t window_ = 0;
    bool checked_ = false, fits_ = false;
    std::vector<uint16_t> sent_, acknowledged_;
};

// rtl.network.packet_reader: reads closed packets one by one, header and beats.
class Reader {
public:
    uint64_t packets = 0;
    Departure out;

    void init(Clock* clock) {
        clock_ = clock;
        out.init(clock);
    }
    // `credit`: maps a destination to the credit in a header to it.
    template <class CreditOf>
    void step(Queue<Packet*>& in, Queue<char>& freed, CreditOf credit) {
        if (!current_ && !loaded_.packet && in.empty()) return;
        const bool gives = out.payload.room();
        const bool pull = current_ && (!loaded_.packet || gives);
        if (loaded_.packet && gives) {
            out.payload.push(loaded_);
            loaded_.packet = nullptr;
        }
        if (pull) {
            loaded_ = {current_, ++index_ == current_->beats};
            clock_->moved = true;
            if (loaded_.last) {
                freed.push(0);
                current_ = nullptr;
            }
        }
        if (in.has() && out.headers.room() && !current_) {
            current_ = in.pop();
            current_->credit = credit(current_->destination);
            out.headers.push(current_);
            index_ = 0;
            packets++;
        }
    }

private:
    Clock* clock_ = nullptr;
    Packet* current_ = nullptr;
    PayloadBeat loaded_{nullptr, false};
    uint32_t index_ = 0;
};

// rtl.network.packet_mux: merges whole packets of several packagers, round robin. A header is chosen
// in one cycle and taken in the next.
class Mux {
public:
    Queue<Packet*> headers;
    Queue<PayloadBeat> payload;

    void init(Clock* clock) {
        clock_ = clock;
        headers.skid(clock);
        payload.skid(clock);
        order_.skid(clock);
    }
    // Returns the packet whose header leaves a port in this cycle, or null.
    template <class Ports>
    Packet* step(Ports&& ports) {
        if (order_.has() && ports.has(order_.front()) && payload.room()) {
            const PayloadBeat beat = ports.pop(order_.front());
            payload.push(beat);
            if (beat.last) order_.pop();
        }
        if (granted_) {
            Packet* packet = ports.pass(port_);
            headers.push(packet);
            if (packet->beats) order_.push(port_);
            granted_ = false;
            return packet;
        }
        if (!order_.room() || !headers.room()) return nullptr;
        const uint32_t n = ports.size();
        for (uint32_t k = 0, port = port_; k < n && !granted_; k++) {
            port = port + 1 == n ? 0 : port + 1;
            if (!ports.offers(port)) continue;
            port_ = port;
            granted_ = true;
            clock_->moved = true;
        }
        return nullptr;
    }

private:
    Clock* clock_ = nullptr;
    Queue<uint32_t> order_;
    uint32_t port_ = ~0u;  // the last port chosen; at the start, port 0 is first
    bool granted_ = false;
};

struct FrameBeat {
    Packet* packet;
    uint32_t index;  // 0 for the header
    bool last;
};

// rtl.network.assembler: holds the payload until its header is ready.
class Assembler {
public:
    uint64_t packets = 0, beats = 0;
    Queue<FrameBeat> out;

    void init(Clock* clock, uint32_t max_beats, uint32_t assembled, uint32_t most) {
        clock_ = clock;
        most_ = most;
        out.skid(clock);
        info_.skid(clock);
        payload_.skid(clock);
        waiting_.fifo(clock, 2 * max_beats + 4);
        done_.init(clock, assembled, 0);
    }
    void step(Mux& mux) {
        if (room_ && !sending_ && !stages_[0] && !stages_[1] && !stages_[2] && done_.empty()
            && info_.empty() && payload_.empty() && mux.payload.empty())
            return;  // no state inside can change
        send();
        take();
        wire(mux.payload, payload_);
    }
    // Separate from step(), because the host's reporter watches the headers that pass here.
    bool header(Mux& mux) {
        if (!mux.headers.has() || !info_.room()) return false;
        info_.push(mux.headers.pop());
        return true;
    }

private:
    void send() {
        bool sent = false;
        if (sending_) {
            if (waiting_.has() && out.room()) {
                const PayloadBeat beat = waiting_.pop();
                out.push({beat.packet, ++index_, beat.last});
                beats++;
                if (beat.last) sending_ = false;
            }
        } else if (stages_[2] && out.room()) {
            out.push({stages_[2], 0, !stages_[2]->beats});
            packets++;
            sending_ = stages_[2]->beats;
            index_ = 0;
            sent = true;
        }
        if (!stages_[2] || sent) {
            if (stages_[0] || stages_[1] || stages_[2]) clock_->moved = true;
            stages_[2] = stages_[1];
            stages_[1] = stages_[0];
            stages_[0] = done_.has() ? done_.pop() : nullptr;
        }
    }
    void take() {
        const bool room = room_;
        room_ = level() <= most_;
        if (!inside_) {
            if (!room || !info_.has()) return;
            Packet* packet = info_.pop();
            inside_ = packet->beats;
            if (!inside_) done_.push(packet);
        } else if (payload_.has() && waiting_.room()) {
            const PayloadBeat beat = payload_.pop();
            waiting_.push(beat);
            if (!beat.last) return;
            inside_ = false;
            done_.push(beat.packet);
        }
    }
    // Finished packets whose header is not started, as their FIFO counts them.
    size_t level() const {
        if (done_.size() <= most_) return 0;
        size_t held = 0;
        for (size_t k = 0; k < done_.size(); k++) held += done_.at(k) < clock_->now + 2;
        // The first packet is in the output register and is not counted. If a packet left in this
        // cycle, the register gets its successor in the next cycle.
        return held - (done_.held() == done_.size() && done_.at(0) <= clock_->now);
    }

    Clock* clock_ = nullptr;
    Queue<Packet*> info_, done_;
    Queue<PayloadBeat> payload_, waiting_;
    Packet* stages_[3] = {};
    bool inside_ = false, sending_ = false, room_ = true;
    uint32_t index_ = 0, most_ = 0;  // most: finished packets that let another begin
};

}  // namespace ember
