// rtl.rings.row_reads: misses become reads of rows at their addresses in GPU memory.
#pragma once
#include "cache.h"
#include "nic_config.h"

namespace ember {

class NicRowReads {
public:
    uint64_t reads = 0;
    Queue<uint64_t> out;

    void init(Clock* clock, const Config& config, const Plan& plan) {
        config_ = &config;
        bases_ = plan.bases;
        out.init(clock, config.row_read, 0);
        places_.init(clock, config.row_read_places);
        units_ = config.vector_packing ? 4 >> config.vector_packing : 4 * config.vector_beats;
    }
    bool room() { return places_.any(); }
    void enter(const Miss& miss) {
        const uint64_t row = miss.key & ((uint64_t{1} << lookup::row.bits) - 1);
        const uint64_t table = miss.key >> lookup::row.bits;
        places_.take();
        out.push(row_read::offset.at(bases_[table] / READ_UNIT + row * units_)
                 | row_read::units.at(units_) | row_read::tag.at(miss.id));
        reads++;
    }
    uint64_t leave() {
        places_.give(config_->place_free);
        return out.pop();
    }

private:
    const Config* config_ = nullptr;
    const uint64_t* bases_ = nullptr;
    uint64_t units_ = 0;
    Credits places_;
};

}  // namespace ember
