// rtl.interaction.dot_interaction: the cycles in which a sample's vectors are taken and its dots
// leave.
#pragma once
#include "nic_config.h"
#include "queue.h"

namespace ember {

// A beat of a sample's vectors, or of its result; `last` of the vector or of the result.
struct VectorBeat {
    uint32_t sample;
    uint16_t step;
    bool last, ends;  // ends: the vector is the sample's last one
};

class Dots {
public:
    Queue<VectorBeat> out;

    void init(Clock* clock, const Config& config) {
        clock_ = clock;
        config_ = &config;
        wide_ = config.wide;
        depth_ = config.slice_ring;
        room_ = config.dot_room;
        dense_.fifo(clock, config.dot_room);
        slices_.fifo(clock, depth_, config.slice_loaded);
        beats_.init(clock, config.dot_first, 0);
        out.skid(clock);
    }

    void step(Queue<VectorBeat>& in) {
        leave();
        schedule();
        if (wide_) {
            const bool given = valid_ && !full_;
            if (given) load(flags_last_, flags_first_, flags_final_);
            transpose(given);
        }
        const bool ready = wide_ ? !whole_[filling_] : !full_;
        const bool takes = in.has() && ready && dense_.room();
        if (takes) take(in.pop());
        if (emptied_) whole_[emptied_half_] = emptied_ = false;
        const uint32_t level = taken_ + come_ - released_now_;
        if (released_now_ || released_) clock_->moved = true;
        taken_ = level;
        full_ = level == depth_;
        released_now_ = released_;
        released_ = come_ = 0;
    }

private:
    struct Dense {
        VectorBeat beat;
        bool dots;
    };
    struct Slice {
        uint32_t vectors, pairs;
        bool first, final;
    };

    void leave() {
        if (!out.room()) return;
        if (dots_) {
            if (!beats_.has()) return;
            const bool last = beats_.pop();
            room_given_++;
            out.push({sample_.sample, sample_.step, last, false});
            dots_ = !last;
        } else if (dense_.has()) {
            const Dense dense = dense_.pop();
            out.push({dense.beat.sample, dense.beat.step, dense.beat.last && !dense.dots, false});
            dots_ = dense.beat.last && dense.dots;
            sample_ = dense.beat;
        }
    }

    // rtl.interaction.dot_schedule.
    void schedule() {
        const uint32_t units = config_->dot_units;
        bool done = false;
        const bool some = left_, ending = left_ <= units;
        const uint32_t count = now_.final ? (ending ? left_ : units) : 0;
        const uint32_t filled = fill_ + count;
        const bool emit = spilled_ || (now_.final && some && (ending || filled >= 16));
        const bool spills = ending && filled > 16;
        const bool go = active_ && !(emit && !room_);
        if (go) {
            clock_->moved = true;
            done = ending && !spills && (now_.final || number_ + 1 >= config_->dot_reuse);
            if (emit) {
                beats_.push(ending && !spills);
                room_--;
            }
            left_ = ending ? 0 : left_ - units;
            number_++;
            fill_ = filled & 15;
            spilled_ = spills;
        }
        room_ += room_given_;
        room_given_ = 0;
        released_ = done ? now_.vectors : 0;
        if (done) {
            active_ = spilled_ = false;
            fill_ = 0;
        }
        if (!active_ && slices_.has()) {
            now_ = slices_.pop();
            active_ = true;
            left_ = now_.pairs;
            number_ = 0;
        }
    }

    void load(bool last, bool first, bool final) {
        come_ = 1;
        pairs_ += vectors_ + config_->itself;
        vectors_++;
        clock_->moved = true;
        if (!last) return;
        slices_.push({vectors_, pairs_, first, final});
        vectors_ = pairs_ = 0;
    }

    // rtl.interaction.transpose: one half is filled while the other is read.
    void transpose(bool given) {
        const bool pull = whole_[reading_] && (!valid_ || given);
        if (pull) {
            flags_last_ = at_vector_ == last_vector_[reading_];
            flags_first_ = !at_slice_;
            flags_final_ = at_slice_ == last_slice_[reading_];
            valid_ = clock_->moved = true;
            at_vector_ = flags_last_ ? 0 : at_vector_ + 1;
            if (flags_last_) at_slice_ = flags_final_ ? 0 : at_slice_ + 1;
            if (flags_last_ && flags_final_) {
                emptied_ = true;
                emptied_half_ = reading_;
                reading_ = !reading_;
            }
        } else if (given) {
            valid_ = false;
        }
    }

    void take(const VectorBeat& beat) {
        if (!place_) dense_.push({beat, !beat.ends || bool(config_->itself)});
        if (wide_) {
            if (beat.last && beat.ends) {
                whole_[filling_] = true;
                last_slice_[filling_] = part_;
                last_vector_[filling_] = place_;
                filling_ = !filling_;
            }
            part_ = beat.last ? 0 : part_ + 1;
        } else {
            load(beat.ends, true, true);
        }
        if (beat.last) place_ = beat.ends ? 0 : place_ + 1;
    }

    Clock* clock_ = nullptr;
    const Config* config_ = nullptr;
    bool wide_ = false;
    Queue<Dense> dense_;
    Queue<Slice> slices_;
    Queue<char> beats_;
    // Input: vectors of the slice so far, places in the ring.
    uint32_t depth_ = 0, place_ = 0, part_ = 0, vectors_ = 0, pairs_ = 0, taken_ = 0, come_ = 0,
        released_ = 0, released_now_ = 0;
    bool full_ = false;
    bool whole_[2] = {}, filling_ = false, reading_ = false, valid_ = false, emptied_ = false,
         emptied_half_ = false, flags_last_ = false, flags_first_ = false, flags_final_ = false;
    uint32_t last_vector_[2] = {}, last_slice_[2] = {}, at_vector_ = 0, at_slice_ = 0;
    // The slice being computed.
    Slice now_{};
    bool active_ = false, spilled_ = false;
    uint32_t left_ = 0, number_ = 0, fill_ = 0, room_ = 0, room_given_ = 0;
    // Output.
    bool dots_ = false;
    VectorBeat sample_{};
};

}  // namespace ember
