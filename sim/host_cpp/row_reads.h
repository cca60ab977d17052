// Rows that a NIC reads from GPU memory. Reference: sim.node.row_reads.RowReads and
// host.timing.row_reads.RowReadTimes.
#pragma once
#include <algorithm>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "answers.h"

namespace ember {

class RowReads {
public:
    explicit RowReads(const HostConfig& config)
        : given_(config.row_reads), round_trip_(double(2 * config.latency)),
          cycles_per_byte_(config.cycles_per_byte), most_(config.vectors_fit) {}

    explicit operator bool() const { return given_.tables; }
    // Make lookup records of the reads in a packet to `address`; returns the violation, if any.
    Fault keys(uint64_t address, std::vector<uint64_t>& records) const {
        if (records.empty() || records.size() > most_) return {Fault::COUNT, opcode::READ_ROWS};
        for (uint64_t& record : records) {
            const uint64_t at = address + READ_UNIT * row_read::offset.of(record);
            const uint64_t place = at - given_.base, *ends = given_.starts + given_.tables;
            const uint64_t* next = std::upper_bound(given_.starts, ends, place);
            if (place >= given_.end || next == given_.starts
                || (place - next[-1]) % given_.row_bytes
                || READ_UNIT * row_read::units.of(record) != given_.row_bytes)
                return {Fault::ROW_READ, at};
            record = lookup::row.at((place - next[-1]) / given_.row_bytes)
                     | lookup::table.at(given_.numbers[next - 1 - given_.starts])
                     | lookup::landing.at(row_read::tag.of(record));
        }
        return {};
    }
    uint64_t asked(uint64_t rows, uint64_t bytes) const {
        return beyond(rows * given_.request_bytes, bytes);
    }
    uint64_t answered(uint64_t rows, uint64_t bytes) const {
        return beyond(rows * given_.answer_bytes, bytes);
    }
    // The time at which the last row of a packet that has crossed PCIe leaves GPU memory.
    double take(double now, uint64_t rows, uint64_t bytes) {
        const uint64_t reads = rows * given_.reads;
        while (!back_.empty() && held_ + reads > given_.tags) {
            held_ -= back_.front().second;
            now = std::max(now, back_.front().first);
            back_.pop_front();
        }
        free_ = std::max(now, free_) + double(asked(rows, bytes)) * cycles_per_byte_;
        held_ += reads;
        back_.push_back({free_ + round_trip_
                         + double(rows * given_.answer_bytes) * cycles_per_byte_, reads});
        return free_;
    }

private:
    static uint64_t beyond(uint64_t needed, uint64_t bytes) {
        return needed > bytes ? needed - bytes : 0;
    }

    const RowReadsAt given_;
    const double round_trip_, cycles_per_byte_;
    const uint64_t most_;
    double free_ = 0;
    std::deque<std::pair<double, uint64_t>> back_;
    uint64_t held_ = 0;
};

}  // namespace ember
