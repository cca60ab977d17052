// The receive side of the reliable link: the packets received from each peer, and the reports about
// them.
#pragma once
#include <algorithm>
#include <vector>

#include "nic_config.h"
#include "packets.h"
#include "queue.h"

namespace ember {

constexpr uint32_t SEQUENCES = (1u << header::sequence.bits) - 1;

// The part of a packet's header that the link uses.
struct LinkHeader {
    uint32_t node, sequence, acknowledge;
    bool link;
    std::vector<uint32_t> arrivals;  // the payload of a LINK packet

    LinkHeader() = default;
    explicit LinkHeader(const uint32_t* words)
        : node(header::source.get(words)), sequence(header::sequence.get(words)),
          acknowledge(header::acknowledge.get(words)),
          link(header::opcode.get(words) == opcode::LINK) {
        if (link) arrivals.assign(words + BEAT_WORDS, words + BEAT_WORDS + DATA_WORDS);
    }
};

// rtl.network.link.receiver, report_queue and arrival_scan, on a network that neither loses,
// duplicates nor reorders: the packets received from a peer are consecutive.
class LinkReceiver {
public:
    uint64_t acknowledgements = 0;
    bool lost = false;          // a packet is missing
    Queue<LinkHeader> packets;  // good packets, at the verdict
    Queue<Packet*> links;       // LINK packets to send

    void init(Clock* clock, const Config& config, Packets* pool) {
        clock_ = clock;
        config_ = &config;
        pool_ = pool;
        packets.init(clock, 0, 0);
        links.init(clock, 1, 1);
        came_.init(clock, 1, 0);
        said_.init(clock, 2, 0);
        turns_.fifo(clock, 0);
        queue_.fifo(clock, 0);
        reports_.init(clock, config.link_report, 1);
        nodes_.resize(config.nodes);
    }
    // The first packet of `node` that has not arrived, for a header to it, which leaves in this
    // cycle.
    uint32_t tell(uint32_t node) {
        said_.push({node, nodes_[node].base});
        return nodes_[node].base;
    }
    // `hear`: receives the link fields of each good packet.
    template <class Hear>
    void step(Hear hear) {
        if (said_.has()) {
            nodes_[said_.front().node].told = said_.front().base;
            said_.pop();
        }
        if (scanning_ || turns_.has() || reports_.has()) scan();
        report();
        if (came_.has()) came(came_.pop());
        if (!packets.has()) return;
        const LinkHeader packet = packets.pop();
        if (!packet.link) {
            Node& node = nodes_[packet.node];
            lost |= packet.sequence != node.arrived;
            node.arrived = (packet.sequence + 1) & SEQUENCES;
            came_.push({packet.node, packet.sequence / config_->link_arrivals % config_->link_blocks});
        }
        hear(packet);
    }
    // The first cycle in which something happens without further input.
    Cycle next() const {
        const bool waits = !queue_.empty() && !reached_;
        const Cycle due = waits ? std::max(queue_.front().due, queue_.at(0)) : NEVER;
        return std::min(packets.next(), due);
    }

private:
    struct Block {
        uint32_t node, block;
    };
    struct Due : Block {
        Cycle due;
    };
    struct Said {
        uint32_t node, base;
    };
    struct Node {
        uint32_t arrived = 0, base = 0, told = 0;
        uint32_t queued = 0;  // blocks to report, a bit each
        bool waits = false;   // for its turn
    };

    void came(const Block& block) {
        Node& node = nodes_[block.node];
        // A block whose turn begins in this cycle still waits.
        if (!node.waits && !(began_ == clock_->now && block_.node == block.node)) {
            node.waits = true;
            turns_.push(block.node);
        }
        if (asked_ >> block.block & 1 && answered_ == block.node) return;
        if (node.queued >> block.block & 1) return;
        node.queued |= 1u << block.block;
        queue_.push({{block.node, block.block}, clock_->now - 1 + config_->link_delay});
    }
    void report() {
        asked_ = 0;
        const bool there = queue_.has(), due = there && clock_->now >= queue_.front().due;
        const bool taken = reached_ && reports_.room();
        if (taken) {
            // Packets that arrive in this cycle still belong to this report.
            const Due report = queue_.pop();
            nodes_[report.node].queued &= ~(1u << report.block);
            asked_ = 1u << report.block;
            answered_ = report.node;
            reports_.push(report);
        }
        const bool reached = due && !taken;
        if (reached != reached_) clock_->moved = true;
        reached_ = reached;
    }
    // rtl.network.link.arrival_scan: a peer's turn, or a report to it.
    void scan() {
        const Cycle now = clock_->now;
        if (!scanning_) {
            const bool turn = turns_.has();
            if (reports_.has() && links.room() && !(reported_ && turn)) {
                block_ = reports_.pop();
                reporting_ = reported_ = true;
            } else if (turn) {
                block_ = {turns_.pop(), 0};
                nodes_[block_.node].waits = false;
                began_ = now;
                reporting_ = reported_ = false;
            } else {
                return;
            }
            scanning_ = true;
            read_ = now + 2;
            move_ = now + config_->link_moved - 1;
            return;
        }
        clock_->moved = true;
        Node& node = nodes_[block_.node];
        const uint32_t word = (node.base / config_->link_word + 1) * config_->link_word & SEQUENCES;
        if (now == read_) {
            const uint32_t ahead = (node.arrived - node.base) & SEQUENCES;
            whole_ = ahead >= ((word - node.base) & SEQUENCES);
            seen_ = whole_ ? word : node.arrived;
        }
        if (now == move_) {
            node.base = seen_;
            if (whole_) {
                read_ = move_ + 1;
                move_ += config_->link_more;
            } else if (reporting_) {
                made_ = move_ + config_->link_gathered - 1;
            } else {
                scanning_ = false;
            }
        } else if (now > move_ && now == made_ - 1) {
            unsaid_ = node.told != node.base;
        } else if (now > move_ && now == made_) {
            scanning_ = false;
            if (unsaid_) make(node);
        }
    }
    void make(const Node& node) {
        Packet* packet = pool_->get(opcode::LINK, block_.node, 0);
        const uint32_t size = config_->link_arrivals, blocks = config_->link_blocks;
        // The block is the block of the base or an earlier one.
        const uint32_t behind = (node.base / size - block_.block) % blocks;
        packet->sequence = (node.base / size - behind) * size & SEQUENCES;
        packet->count = RECORDS_PER_BEAT;
        packet->beats = 1;
        packet->words.assign(DATA_WORDS, 0);
        const uint32_t come = std::min(size, (node.base - packet->sequence) & SEQUENCES);
        for (uint32_t k = 0; k < come; k++) packet->words[k / 32] |= 1u << k % 32;
        links.push(packet);
        acknowledgements++;
    }

    Clock* clock_ = nullptr;
    const Config* config_ = nullptr;
    Packets* pool_ = nullptr;
    Queue<Block> came_, reports_;
    Queue<Due> queue_;
    Queue<Said> said_;
    Queue<uint32_t> turns_;
    std::vector<Node> nodes_;
    Block block_{};
    Cycle read_ = 0, move_ = 0, made_ = 0, began_ = NEVER;
    uint32_t seen_ = 0, asked_ = 0, answered_ = 0;
    bool scanning_ = false, reporting_ = false, reported_ = false, whole_ = false;
    bool reached_ = false, unsaid_ = false;
};

}  // namespace ember
