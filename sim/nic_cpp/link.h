// The reliable link of a network that neither loses, duplicates nor reorders: no packet is sent
// again.
#pragma once
#include <algorithm>
#include <cstdlib>
#include <deque>
#include <vector>

#include "link_receiver.h"
#include "nic_config.h"
#include "packets.h"
#include "queue.h"

namespace ember {

// rtl.network.link.sender: numbers new packets, admits them when the peer's window and the pool
// have room, and merges them with LINK packets. Acknowledged packets leave the pool after a fixed
// time, one per cycle; the hardware takes some cycles longer if several peers acknowledge at once.
class LinkSender {
public:
    uint64_t packets = 0, sent = 0, stall_window = 0, stall_pool = 0;
    bool overdue = false;  // a packet would be sent again
    Mux mux;               // to the assembler
    LinkReceiver receiver;

    void init(Clock* clock, const Config& config, Packets* pool) {
        clock_ = clock;
        config_ = &config;
        receiver.init(clock, config, pool);
        mux.init(clock);
        header_.skid(clock);
        order_.fifo(clock, config.link_ahead);
        heard_.init(clock, config.link_freed + 1, 0);
        kept_.init(clock, config.link_kept, 0);
        peers_.resize(config.nodes);
        most_ = config.net_payload_beats;
        shared_ = config.link_pool - config.link_spare - config.nodes * most_;
        half_ = std::max(config.link_pool / 2, most_);
    }
    // A packet waits for room; the wait is counted.
    bool stalls() const { return checked_ && (full_ || !fits_); }
    // `from`: the multiplexer of new packets; `credit`: maps a packet to the credit in its header, when
    // it leaves.
    template <class CreditOf>
    void step(Mux& from, CreditOf credit) {
        if (Packet* packet = mux.step(Ports{*this, from})) {
            if (packet->opcode != opcode::LINK) packet->credit = credit(*packet);
            packet->acknowledge = receiver.tell(packet->destination);
        }
        take(from);
        keep();
        release();
        if (clock_->now >= due_) look();
        receiver.step([&](const LinkHeader& header) {
            if (header.acknowledge != peers_[header.node].told)
                heard_.push({header.node, header.acknowledge});
            peers_[header.node].told = header.acknowledge;
        });
    }
    // The first cycle in which something happens without further input.
    Cycle next() const { return std::min(receiver.next(), due_); }

private:
    enum { LINKS, NEW, PORTS };

    // The inputs of the multiplexer: LINK packets, whose beat is offered once their header has
    // left, and new packets, whose beats pass by.
    struct Ports {
        LinkSender& link;
        Mux& from;

        uint32_t size() const { return PORTS; }
        bool offers(uint32_t port) const {
            return port == NEW ? link.header_.has() : link.receiver.links.has() && !link.headed_;
        }
        Packet* pass(uint32_t port) {
            if (port == NEW) return link.header_.pop();
            link.headed_ = true;
            return link.receiver.links.front();
        }
        bool has(uint32_t port) const {
            return port == NEW ? link.order_.has() && from.payload.has() : link.headed_;
        }
        PayloadBeat pop(uint32_t port) {
            if (port == NEW) {
                const PayloadBeat beat = from.payload.pop();
                if (beat.last) link.kept_.push(link.depart(link.order_.pop()));
                return beat;
            }
            link.headed_ = false;
            link.sent++;
            return {link.receiver.links.pop(), true};
        }
    };
    struct Kept {
        uint32_t node, beats;
        Cycle left;
    };
    struct Heard {
        uint32_t node, acknowledge;
    };
    struct Peer {
        uint32_t next = 0, told = 0, oldest = 0, used = 0;
        std::deque<Kept> kept;  // the oldest first
        uint32_t mean = 0, deviation = 0;  // of round trips: scaled by 8 and by 4
        bool measured = false;
        Cycle due = NEVER;
    };

    // rtl.network.link.intake: a header is examined in one cycle, and passes in the next.
    void take(Mux& from) {
        if (checked_) full_ ? stall_window++ : stall_pool += !fits_;
        if (checked_ && !full_ && fits_ && header_.room()) {
            if (!order_.room()) return;
            Packet* packet = from.headers.pop();
            Peer& peer = peers_[packet->destination];
            packet->sequence = peer.next;
            peer.next = (peer.next + 1) & SEQUENCES;
            claims_++;
            header_.push(packet);
            order_.push(packet);
            packets++;
            checked_ = false;
            return;
        }
        const bool checked = from.headers.has();
        if (checked != checked_) clock_->moved = true;
        checked_ = checked;
        if (!checked) return;
        const Peer& peer = peers_[from.headers.front()->destination];
        full_ = ((peer.next - peer.oldest) & SEQUENCES) >= config_->link_window;
        fits_ = has_room(peer);
    }
    // rtl.network.link.pool_room.
    bool has_room(const Peer& peer) const {
        const uint32_t claimed = (claims_ + 1) * most_;
        return (!peer.used && !claims_)
               || (beyond_ + claimed <= shared_ && peer.used + claimed <= half_);
    }
    void use(Peer& peer, int32_t beats) {
        const auto over = [&] { return peer.used > most_ ? peer.used - most_ : 0; };
        beyond_ -= over();
        peer.used += beats;
        beyond_ += over();
    }
    Kept depart(const Packet* packet) {
        Peer& peer = peers_[packet->destination];
        const Kept kept{packet->destination, packet->beats, clock_->now};
        peer.kept.push_back(kept);
        if (peer.due == NEVER) watch(peer);
        return kept;
    }
    void keep() {
        if (!kept_.has()) return;
        const Kept kept = kept_.pop();
        use(peers_[kept.node], kept.beats);
        claims_--;
    }
    void release() {
        if (!heard_.has()) return;
        const Heard heard = heard_.front();
        Peer& peer = peers_[heard.node];
        const Kept packet = peer.kept.front();
        use(peer, -int32_t(packet.beats));
        peer.kept.pop_front();
        peer.oldest = (peer.oldest + 1) & SEQUENCES;
        if (peer.oldest == heard.acknowledge) {
            measure(peer, clock_->now - config_->link_measured - packet.left);
            heard_.pop();
            if (peer.kept.empty()) forget(peer);
        }
        clock_->moved = true;
    }
    // rtl.network.link.round_trips.
    void measure(Peer& peer, uint32_t cycles) {
        const int32_t error = int32_t(cycles) - int32_t(peer.mean >> 3);
        peer.deviation = peer.measured
            ? peer.deviation - (peer.deviation >> 2) + uint32_t(std::abs(error)) : cycles << 1;
        peer.mean = peer.measured ? peer.mean + error : cycles << 3;
        peer.measured = true;
    }
    Cycle timeout(const Peer& peer) const {
        const Config& c = *config_;
        const uint32_t cycles = peer.measured ? (peer.mean >> 3) + peer.deviation
                                              : c.link_timeout_first;
        return cycles < c.link_timeout_least ? c.link_timeout_least
                                             : std::min(cycles, c.link_timeout_most);
    }
    void watch(Peer& peer) {
        peer.due = peer.kept.front().left + timeout(peer) + config_->link_looked;
        due_ = std::min(due_, peer.due);
    }
    void forget(Peer& peer) {
        peer.due = due_ = NEVER;
        for (const Peer& other : peers_) due_ = std::min(due_, other.due);
    }
    // rtl.network.link.deadlines, walker: a peer's oldest packet is examined after its deadline;
    // packets acknowledged by then are not sent again.
    void look() {
        due_ = NEVER;
        for (Peer& peer : peers_) {
            if (peer.due > clock_->now) {
                due_ = std::min(due_, peer.due);
                continue;
            }
            // An acknowledged packet is about to leave the pool.
            const bool late = peer.told == peer.oldest
                              && clock_->now >= peer.kept.front().left + timeout(peer);
            overdue |= late;
            if (late) peer.kept.front().left = clock_->now;
            watch(peer);
        }
        clock_->moved = true;
    }

    Clock* clock_ = nullptr;
    const Config* config_ = nullptr;
    Queue<Packet*> header_, order_;
    Queue<Kept> kept_;
    Queue<Heard> heard_;
    std::vector<Peer> peers_;
    Cycle due_ = NEVER;
    uint32_t most_ = 0, shared_ = 0, half_ = 0;
    uint32_t beyond_ = 0;  // beats beyond the peers' own shares
    uint32_t claims_ = 0;  // packets that are admitted, and not whole
    bool checked_ = false, full_ = false, fits_ = false, headed_ = false;
};

}  // namespace ember
