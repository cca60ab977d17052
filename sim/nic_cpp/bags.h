// Bags that pool at their owner: from their requester to the owner's GPU, and their vectors back.
#pragma once
#include <vector>

#include "cache.h"
#include "packets.h"
#include "routes.h"
#include "segments.h"

namespace ember {

// A bag whose vector has a reserved place of the hold buffer.
struct BagStart {
    uint16_t destination, step;
    uint32_t place;
    bool own;  // this node is the owner
    uint32_t beats;  // of its vector
};

// A segment of a bag of `node`, at its owner.
struct OwnedSegment {
    Segment* segment;
    uint16_t node, step;
};

struct OutgoingSegment {
    uint32_t destination, step;
    Segment* segment;
    bool last;  // of its bag
};

// Put the landing of its vector into the head of a bag.
inline void land_at(uint64_t& head, uint32_t landing) {
    head = (head & ~bag_head::landing.at(~uint64_t{0})) | bag_head::landing.at(landing);
}

// rtl.bags.pool and packager: no packet cuts a bag.
class BagPool : public PoolOf<BagPool, OutgoingSegment> {
public:
    uint64_t segments = 0, bags = 0, keys = 0;
    uint32_t batch = ~0u;
    // Age, and pause of a waiting source, that close a packet, in timeouts.
    uint32_t ages = 1, waits = 1;

    void init(Clock* clock, Packets* packets, Segments* given, uint32_t opcode,
              uint32_t destinations, uint32_t buffers) {
        PoolOf::init(clock, packets, opcode, destinations, buffers);
        given_ = given;
    }
    // The source of the bags moves, or is `waiting` until another part moves.
    void source(bool waiting) {
        if (!waiting) placed_ = clock_->now;
        waiting_ = waiting;
    }

private:
    friend PoolOf<BagPool, OutgoingSegment>;
    static constexpr uint32_t SHORTEST = 2;

    Cycle expires(Cycle opened) const {
        return std::min(placed_ + Cycle(waiting_ ? waits : 1) * timeout,
                        opened + Cycle(ages) * timeout);
    }
    bool splits(const OutgoingSegment& item, const Packet& packet) {
        if (!item.segment->head) return false;
        const bool other = packet.step != item.step;
        const bool outgrown = packet.count + words_of(item.segment->words[0]) > limit;
        stepped += other;
        full += outgrown && !other;
        return other || outgrown;
    }
    void add(const OutgoingSegment& item, Packet& packet) {
        const Segment& segment = *item.segment;
        segments++;
        if (segment.head) {
            bags++;
            packet.bags++;
            keys += query_bag::keys.of(segment.words[0]);
        }
        packet.count += segment.size;
        for (uint32_t k = 0; k < segment.size; k++) {
            packet.words.push_back(uint32_t(segment.words[k]));
            packet.words.push_back(uint32_t(segment.words[k] >> 32));
        }
        given_->give(item.segment);
    }
    bool fills(const Packet& packet) const {
        return packet.count + SHORTEST > limit || packet.bags >= batch;
    }
    uint32_t beats(const Packet& packet, uint32_t) const {
        return (packet.count + RECORDS_PER_BEAT - 1) / RECORDS_PER_BEAT;
    }

    Segments* given_ = nullptr;
    bool waiting_ = false;
};

// rtl.bags.landing: ids of bags that wait for vectors, and the vectors on the way to their places.
class BagLanding {
public:
    uint64_t vectors = 0;
    Queue<uint32_t> ids;
    Queue<CacheBeat> out;

    void init(Clock* clock, const Config& config) {
        config_ = &config;
        places_.assign(config.owner_bags, 0);
        sizes_.assign(config.owner_bags, 1);
        laps_.assign(config.owner_bags, 0);
        free_.init(clock, 0, 0);
        for (uint32_t id = 0; id < config.owner_bags; id++) free_.put(id, 0);
        ids.skid(clock);
        beats_.init(clock, 0, 0);
        out.skid(clock);
    }
    Cycle next() const { return std::min(beats_.next(), free_.next()); }
    // Take an id for `place`; return the tag of its vector of `beats`.
    uint32_t ask(uint32_t place, uint32_t beats) {
        const uint32_t id = ids.pop();
        places_[id] = place;
        sizes_[id] = beats;
        return (id + laps_[id]++ * config_->owner_bags) & 0xFFFF;
    }
    // The last beat of a vector arrives in cycle `at`.
    void land(uint32_t tag, Cycle at) {
        const uint32_t id = tag & (config_->owner_bags - 1), beats = sizes_[id];
        for (uint32_t k = 1; k <= beats; k++)
            beats_.put({{places_[id], 0, 0}, k == beats}, at + config_->bag_landed + k - beats);
        free_.put(id, at + config_->bag_id_free);
    }
    void step(Queue<CacheBeat>& cached) {
        wire(free_, ids);
        if (beats_.empty() && cached.empty()) return;
        const bool bag = beats_.has(), vector = cached.has();
        const bool second = inside_ ? of_cache_ : !bag;
        if (!(second ? vector : bag) || !out.room()) return;
        const CacheBeat beat = second ? cached.pop() : beats_.pop();
        vectors += !second && beat.last;
        of_cache_ = second;
        inside_ = !beat.last;
        out.push(beat);
    }

private:
    const Config* config_ = nullptr;
    std::vector<uint32_t> places_, sizes_, laps_;
    Queue<uint32_t> free_;
    Queue<CacheBeat> beats_;
    bool inside_ = false, of_cache_ = false;
};

// rtl.bags.sender: joins each bag that may leave with its words.
class BagSender {
public:
    uint64_t bags = 0, own = 0;
    Queue<BagStart> starts;

    void init(Clock* clock, bool linked) {
        linked_ = linked;
        starts.skid(clock);
        buffer_.skid(clock);
        output_.skid(clock);
        lost_.skid(clock);
    }
    bool owns() const { return output_.has() && output_.front().own; }
    OwnedSegment pop_own() {
        const Sent sent = output_.pop();
        return {sent.segment, sent.destination, sent.step};
    }
    // `segments`: of the bags that start.
    template <class Source>
    void step(Source& segments, BagLanding& landing, Queue<OutgoingSegment>& packager) {
        // rtl.bags.lost: the entry of bags.
        Queue<OutgoingSegment>& next = linked_ ? lost_ : packager;
        if (linked_) wire(lost_, packager);
        if (output_.has() && !output_.front().own && next.room()) {
            const Sent sent = output_.pop();
            next.push({sent.destination, sent.step, sent.segment, sent.segment->tail});
        }
        bool ends = false;
        if (inside_ && buffer_.has() && output_.room()) {
            Segment* segment = buffer_.pop();
            if (segment->head) land_at(segment->words[0], landing_);
            output_.push({segment, bag_.destination, bag_.step, bag_.own});
            ends = segment->tail;
        }
        if (!inside_ || ends) {
            inside_ = starts.has() && (starts.front().own || landing.ids.has());
            if (inside_) {
                bag_ = starts.pop();
                landing_ = bag_.own ? bag_.place : landing.ask(bag_.place, bag_.beats);
                (bag_.own ? own : bags)++;
            }
        }
        if (segments.has() && buffer_.room()) buffer_.push(segments.pop());
    }

private:
    struct Sent {
        Segment* segment;
        uint16_t destination, step;
        bool own;
    };
    Queue<Segment*> buffer_;
    Queue<Sent> output_;
    Queue<OutgoingSegment> lost_;
    BagStart bag_{};
    uint32_t landing_ = 0;
    bool linked_ = false, inside_ = false;
};

// rtl.bags.receiver and check: receives bags of other nodes.
class BagReceiver {
public:
    uint64_t beats_taken = 0, words = 0, bags = 0, keys = 0;
    Queue<RecordBeat> beats;
    SegmentStore<OwnedSegment> out;
    std::vector<uint16_t> consumed;  // of each node: the credit in headers to it

    void init(Clock* clock, const Config& config, Segments* segments) {
        config_ = &config;
        consumed.assign(config.nodes, 0);
        beats.init(clock, 0, 0);
        output_.skid(clock);
        items_.init(clock, segments, false);
        places_.init(clock, config.bag_judged_places);
        judged_.init(clock, config.bag_judged, 0);
        freed_.init(clock, 1, 0);
        out.init(clock, config.bag_check_segments);
    }
    void step() {
        if (freed_.has()) consumed[freed_.pop()]++;
        if (judged_.has() && !out.full()) {
            const SplitItem item = judged_.pop();
            places_.give(config_->place_free);
            out.write({item.segment, item.node, item.step});
            if (item.tail()) {
                out.commit();
                bags++;
                keys += query_bag::keys.of(item.record);
            }
            if (item.last) freed_.push(item.node);
        }
        out.step();
        if (items_.out.has() && places_.any()) {
            places_.take();
            judged_.push(items_.out.pop());
        }
        items_.step(output_);
        if (beats.has() && output_.room()) {
            const RecordBeat beat = beats.pop();
            beats_taken++;
            words += beat.count;
            output_.push(beat);
        }
    }

private:
    const Config* config_ = nullptr;
    Queue<RecordBeat> output_;
    SegmentSplit items_;
    Credits places_;
    Queue<SplitItem> judged_;
    Queue<uint16_t> freed_;
};

// rtl.bags.places: bags that wait for the GPU, and the vectors that it returns.
class OwnerPlaces {
public:
    uint64_t bags = 0, vectors = 0;
    Queue<uint32_t> fills;  // last beats of vectors of the GPU
    Queue<CacheBeat> answers;

    void init(Clock* clock, const Config& config, const Plan& plan) {
        config_ = &config;
        plan_ = &plan;
        origins_.resize(config.owner_bags);
        sizes_.assign(config.owner_bags, 1);
        fills.init(clock, 0, 0);
        free_.init(clock, config.number_back, 0);
        for (uint32_t place = 0; place < config.owner_bags; place++) free_.put(place, 0);
        numbers_.skid(clock);
        others_.skid(clock);
        entry_.skid(clock);
        output_.skid(clock);
        complete_.init(clock, config.bag_complete, 0);
        beats_out_.init(clock, config.read_places);
        answers.init(clock, config.bag_answered, 0);
    }
    Cycle next() const { return fills.next(); }
    // The beat in front of `answers` leaves.
    CacheBeat answer() {
        beats_out_.give(config_->place_free);
        return answers.pop();
    }
    void step(SegmentStore<OwnedSegment>& foreign, BagSender& sender,
              Queue<OutgoingSegment>& lists) {
        read();
        if (fills.has()) {
            vectors++;
            complete_.push(fills.pop());
        }
        wire(output_, lists);
        if (busy_ && output_.room()) {
            Segment& segment = *item_.segment;
            if (segment.head) {
                origins_[place_] = {uint32_t(bag_head::landing.of(segment.words[0])), item_.node,
                                    item_.step};
                sizes_[place_] = uint32_t(plan_->beats[bag_head::table.of(segment.words[0])]);
                land_at(segment.words[0], place_);
                bags++;
            }
            output_.push({0, item_.step, &segment, segment.tail});
            busy_ = false;
        }
        if (!busy_ && entry_.has() && !(entry_.front().segment->head && !numbers_.has())) {
            item_ = entry_.pop();
            if (item_.segment->head) place_ = numbers_.pop();
            busy_ = true;
        }
        wire(free_, numbers_);
        const int port = turns_.grant(others_.has(), sender.owns());
        if (port >= 0 && entry_.room()) {
            const OwnedSegment item = port ? sender.pop_own() : others_.pop();
            turns_.taken(port, item.segment->tail);
            entry_.push(item);
        }
        if (foreign.has() && others_.room()) others_.push(foreign.pop());
    }

private:
    // Read the next beat of the first complete vector.
    void read() {
        if (!complete_.has() || !beats_out_.any()) return;
        beats_out_.take();
        const uint32_t place = complete_.front();
        const bool final = ++beat_ == sizes_[place];
        answers.push({origins_[place], final, sizes_[place]});
        if (!final) return;
        beat_ = 0;
        free_.push(complete_.pop());
    }

    const Config* config_ = nullptr;
    const Plan* plan_ = nullptr;
    std::vector<Meta> origins_;
    std::vector<uint32_t> sizes_;  // beats of the vector of each place
    Queue<uint32_t> free_, numbers_, complete_;
    Queue<OwnedSegment> others_, entry_;
    Queue<OutgoingSegment> output_;
    Credits beats_out_;
    Turns turns_;
    OwnedSegment item_{};
    uint32_t place_ = 0, beat_ = 0;
    bool busy_ = false;
};

}  // namespace ember
