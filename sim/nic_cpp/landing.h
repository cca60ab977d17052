// Vectors on the way to the host: reordered, pooled, packed into packets.
#pragma once
#include <vector>

#include "cache.h"
#include "packets.h"

namespace ember {

struct HoldSlot {
    uint32_t sample;
    uint16_t step;
    bool empty, bag_ends, last;
    bool repeat, kept;  // as of its slot
};

struct SlotBeat {
    HoldSlot slot;
    bool last;  // of its vector
};

// rtl.interaction.hold_buffer: vectors leave in the order of their reservations.
class Hold {
public:
    uint64_t reserved = 0, vectors_in = 0, beats_out = 0;
    Queue<CacheBeat> local, remote;
    Queue<SlotBeat> out;

    // Dense vectors are float32; others may have 16-bit values or codes.
    void init(Clock* clock, const Config& config, uint32_t places, bool dense = false) {
        clock_ = clock;
        beats_ = dense ? config.value_beats : config.vector_beats;
        most_out_ = config.hold_beats;
        short_ = config.short_vectors && !dense;
        halves_ = config.value_format;
        odd_ = config.value_beats % 2;
        coded_ = short_ && config.coded;
        value_beats_ = config.value_beats;
        most_inside_ = config.code_places - 2;
        most_decoded_ = config.decoded_beats;
        slots_.resize(places);
        there_.assign(places, NEVER);
        local.skid(clock);
        remote.init(clock, 1, 0);
        // From the choice of a beat through the store and a FIFO.
        stored_.init(clock, 4, 0);
        out.init(clock, coded_ ? config.code_first : short_ ? config.decoded : 4, 0);
        // Through the record's register and a FIFO.
        marks_.init(clock, 3, 0);
        unread_.init(clock, 2, 0);
        window_.init(clock, 2, config.hold_window);
    }
    bool ready() const {
        return level_ + (released_ == clock_->now) != slots_.size() && !behind_;
    }
    uint32_t next_landing() const { return landing_; }
    void reserve(const HoldSlot& slot) {
        slots_[next_landing()] = slot;
        there_[next_landing()] = slot.empty ? 0 : NEVER;
        if (slot.empty) marks_.push(0);
        unread_.push(0);
        landing_ = landing_ + 1 == slots_.size() ? 0 : landing_ + 1;
        level_++;
        reserved++;
    }
    void step() {
        if (coded_) read_codes();
        else if (short_) decode();
        Queue<SlotBeat>& stored = short_ ? stored_ : out;
        if (window_.empty() && unread_.empty() && marks_.empty() && !late_ && !behind_
            && remote.empty() && local.empty())
            return;  // no state inside can change
        if (unread_.has() && window_.room()) {
            unread_.pop();
            window_.push(0);
        }
        if (window_.has() && there_[head_] <= clock_->now && stored.held() < most_out_) {
            const bool release = beat_ + 1 == beats_;
            stored.push({slots_[head_], release});
            beats_out += !short_;
            beat_ = release ? 0 : beat_ + 1;
            if (release) {
                window_.pop();
                head_ = head_ + 1 == slots_.size() ? 0 : head_ + 1;
                level_--;
                released_ = clock_->now;
            }
        }
        mark();
        if (remote.has()) land(remote.pop());
        else if (local.has()) land(local.pop());
    }

private:
    // rtl.interaction.decoder: a beat of 16-bit values becomes two, or one that ends an odd number.
    void decode() {
        if ((!upper_ && !stored_.has()) || out.held() >= most_decoded_) return;
        if (!upper_) beat_in_ = stored_.pop();
        upper_ = !upper_ && halves_ && !(beat_in_.last && odd_);
        out.push({beat_in_.slot, beat_in_.last && !upper_});
        beats_out++;
    }
    // rtl.interaction.code_reader: a vector is read once it is whole.
    void read_codes() {
        uint32_t used = used_;
        const bool room = used_before_ <= most_inside_;
        if (!whole_.empty() && out.held() < most_decoded_) {
            const bool last = ++read_ == value_beats_;
            out.push({whole_.front(), last});
            beats_out++;
            if (last) {
                whole_.erase(whole_.begin());
                used -= beats_;
                read_ = 0;
            }
        }
        if (room && stored_.has()) {
            const SlotBeat beat = stored_.pop();
            if (beat.last) whole_.push_back(beat.slot);
            used++;
        }
        if (used != used_ || used_ != used_before_) clock_->moved = true;
        used_before_ = used_;
        used_ = used;
    }
    // The place of a slot without a key is marked in a cycle without an incoming vector; a delayed
    // mark holds up later slots.
    void mark() {
        behind_ = late_;
        const bool waits = marks_.has() && filled_[clock_->now % 2] == clock_->now;
        late_ = marks_.has() && (behind_ || waits);
        if (late_ != behind_) clock_->moved = true;
        if (marks_.has() && !waits) marks_.pop();
    }
    void land(const CacheBeat& beat) {
        if (!beat.last) return;
        there_[beat.meta.landing] = clock_->now + 3;
        filled_[clock_->now % 2] = clock_->now + 2;
        clock_->soon = std::max(clock_->soon, clock_->now + 3);
        vectors_in++;
    }

    Clock* clock_ = nullptr;
    uint32_t beats_ = 1, most_out_ = 0, beat_ = 0, level_ = 0, head_ = 0, landing_ = 0;
    bool behind_ = false, late_ = false;
    Cycle released_ = NEVER, filled_[2] = {NEVER, NEVER};
    Queue<char> marks_, unread_, window_;
    Queue<SlotBeat> stored_;  // before the decoder
    SlotBeat beat_in_ = {};
    uint32_t most_decoded_ = 0;
    bool short_ = false, halves_ = false, odd_ = false, upper_ = false;
    bool coded_ = false;
    uint32_t value_beats_ = 1, most_inside_ = 0, used_ = 0, used_before_ = 0, read_ = 0;
    std::vector<HoldSlot> whole_;  // in the decoder
    std::vector<HoldSlot> slots_;
    std::vector<Cycle> there_;
};

struct PooledBeat {
    uint32_t sample;
    uint16_t step;
    bool last, ends;  // last of its vector; ends: its bag is the sample's last
    bool repeat, kept;  // as of its slot
};

// rtl.interaction.pooling and bag_ring: bags share the adders in turn and leave in order.
class Pooler {
public:
    uint64_t beats_in = 0, beats_out = 0, adds = 0;
    Queue<PooledBeat> out;

    void init(Clock* clock, const Config& config) {
        clock_ = clock;
        beats_ = config.value_beats;
        depth_ = config.ring_beats;
        bags_ = config.bags;
        most_out_ = config.pooled_beats;
        const uint32_t threads = (config.loop + beats_ - 1) / beats_;
        threads_.resize(threads);
        ends_.resize(depth_);
        starts_.resize(bags_);
        origins_.resize(bags_);
        ready_.assign(bags_, false);
        closers_.init(clock, 3, 0);
        left_.init(clock, 1, 0);
        // From the choice of a bag's last vector to its sum, or to the reciprocal of its size.
        finished_.init(clock, config.mean ? config.reciprocal + 4 : config.adder + 3 + beats_, 0);
        out.init(clock, config.mean ? 3 + config.divider : 3, 0);
    }
    void step(Queue<SlotBeat>& in) {
        if (in.empty() && finished_.empty() && closers_.empty() && left_.empty() && !waiting_
            && !beat_ && !picks_ && !sampled_ && free_ == free_next_ && free_ == committed_
            && freed_ == free_ && least_ == committed_ && !ready_[out_bag_ % bags_])
            return;  // no state inside can change
        leave();
        const bool waited = waiting_;
        const bool started_waiting = started_ != announced_;
        const uint64_t committed = committed_;
        const bool go = turn(waited, started_waiting, committed);
        const bool commit = fill(in);
        waiting_ += commit - go;
        if (closers_.has()) threads_[closers_.pop()].active = false;
        if (left_.has()) {
            left_.pop();
            opened_--;
        }
    }

private:
    struct Thread {
        bool active = false;
        uint64_t head = 0, bag = 0;
    };
    void leave() {
        while (finished_.has()) ready_[finished_.pop() % bags_] = true;
        const uint32_t bag = out_bag_ % bags_;
        if (!ready_[bag] || out.held() == most_out_) return;
        const bool last = out_beat_ + 1 == beats_;
        const HoldSlot& origin = origins_[bag];
        out.push({origin.sample, origin.step, last, origin.last, origin.repeat, origin.kept});
        beats_out++;
        out_beat_ = last ? 0 : out_beat_ + 1;
        if (!last) return;
        ready_[bag] = false;
        out_bag_++;
        left_.push(0);
    }
    bool turn(bool waits, bool starts_waiting, uint64_t committed) {
        // Beats before the lowest position of a round have been read.
        if (sampled_) {
            const uint64_t lower = opens_ || sample_ < least_ ? sample_ : least_;
            least_ = lower;
            opens_ = closes_;
            if (closes_) free_next_ = lower;
        } else if (!waits && !beat_ && !picks_) {
            free_next_ = least_ = committed;
        }
        const bool turn = !beat_ && waits, steps = turn || beat_;
        const bool final = beat_ + 1 == beats_;
        Thread& now = threads_[thread_];
        const bool running = now.active;
        const uint64_t start = starts_[started_ % bags_];
        const uint64_t position = running ? now.head : start;
        const bool go = turn && (running ? now.head != committed : starts_waiting);
        picks_ = go || (beat_ && going_);
        sampled_ = turn;
        sample_ = running ? now.head : starts_waiting ? start : committed;
        closes_ = thread_ + 1 >= threads_.size();
        if (turn) going_ = go;
        if (go) {
            if (!running) now.bag = started_++;
            else adds += beats_;
            now.active = true;
            now.head = position + beats_;
            if (ends_[position % depth_]) {
                closers_.push(thread_);
                finished_.push(now.bag);
            }
        }
        if (steps) {
            clock_->moved = true;
            beat_ = final ? 0 : beat_ + 1;
            if (final) thread_ = closes_ ? 0 : thread_ + 1;
        }
        return go;
    }
    bool fill(Queue<SlotBeat>& in) {
        // Free places are counted a cycle late.
        const bool full = tail_ - freed_ >= depth_;
        if (freed_ != free_ || free_ != free_next_) clock_->moved = true;
        freed_ = free_;
        free_ = free_next_;
        if (full || !in.has() || !(inside_ || opened_ != bags_)) return false;
        const SlotBeat item = in.pop();
        const bool last = item.slot.bag_ends, commit = item.last, ends = commit && last;
        ends_[tail_ % depth_] = last;
        origins_[filling_ % bags_] = item.slot;
        if (!inside_) opened_++;
        beats_in++;
        tail_++;
        inside_ = !ends;
        if (commit) {
            if (fresh_) {
                starts_[filling_ % bags_] = committed_;
                announced_++;
            }
            committed_ = tail_;
            fresh_ = last;
        }
        filling_ += ends;
        return commit;
    }

    Clock* clock_ = nullptr;
    uint32_t beats_ = 1, depth_ = 0, bags_ = 0, most_out_ = 0;
    std::vector<Thread> threads_;
    std::vector<char> ends_, ready_;
    std::vector<uint64_t> starts_;
    std::vector<HoldSlot> origins_;
    Queue<uint32_t> closers_;
    Queue<uint64_t> finished_;
    Queue<char> left_;
    uint64_t tail_ = 0, committed_ = 0, freed_ = 0, free_ = 0, free_next_ = 0, filling_ = 0,
        announced_ = 0, started_ = 0, out_bag_ = 0, least_ = 0, sample_ = 0;
    uint32_t waiting_ = 0, opened_ = 0, thread_ = 0, beat_ = 0, out_beat_ = 0;
    bool inside_ = false, fresh_ = true, going_ = false, sampled_ = false, opens_ = true,
        closes_ = false, picks_ = false;
};

// rtl.interaction.results: packs the pooled vectors of a sample into packets.
class ResultPackager {
public:
    uint64_t samples = 0, packets = 0, vectors = 0;
    Closed closed;

    void init(Clock* clock, const Config& config, Packets* packets) {
        config_ = &config;
        made_ = packets;
        room_ = config.host_payload_beats - 1;
        left_ = room_;
        closed.init(clock, 2 * config.host_payload_beats, 2 * config.host_payload_beats);
    }
    void step(Queue<PooledBeat>& in, uint16_t credit) {
        if (const Packet* packet = closed.step(credit)) {
            packets++;
            vectors += packet->count;
        }
        if (in.has() && closed.room()) take(in.pop());
    }

private:
    void take(const PooledBeat& item) {
        const Config& config = *config_;
        const uint32_t shared = (1u << config.value_packing) - 1;
        const bool full = (in_packet_ & shared) == shared;
        const uint32_t left = left_ - config.value_beats;
        const bool closes = item.last && (item.ends || (full && left < config.value_beats));
        if (full || closes) {
            closed.beats.push(closes);
            payload_++;
        }
        if (!item.last) return;
        if (closes) {
            Packet* packet = made_->get(opcode::POOLED, 0, item.step);
            packet->count = in_packet_ + 1;
            packet->beats = payload_ + 1;
            packet->words.assign(DATA_WORDS, 0);
            pooled_tag::sample.set(packet->words.data(), item.sample);
            pooled_tag::first_bag.set(packet->words.data(), bags_ - in_packet_);
            pooled_tag::last.set(packet->words.data(), item.ends);
            packet->answers = item.ends;
            closed.packets.push(packet);
            payload_ = 0;
            samples += item.ends;
        }
        left_ = closes ? room_ : full ? left : left_;
        in_packet_ = closes ? 0 : in_packet_ + 1;
        bags_ = item.ends ? 0 : bags_ + 1;
    }

    const Config* config_ = nullptr;
    Packets* made_ = nullptr;
    uint32_t room_ = 0, left_ = 0, in_packet_ = 0, bags_ = 0, payload_ = 0;
};

}  // namespace ember
