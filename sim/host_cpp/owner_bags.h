// Bags of owner-pooled tables that a node's GPU pools. References: host.wire.bags, sim.node.bags.
#pragma once
#include <cstdint>
#include <vector>

#include "gathers.h"
#include "rows.h"

namespace ember {

// Words of a bag, with its head. Reference: rtl.formats.words_of.
inline uint32_t words_of(uint64_t head) {
    const uint32_t keys = query_bag::keys.of(head), pairs = (keys + 1) / 2;
    const bool wide = query_bag::wide.of(head);
    return 1 + (wide ? keys : pairs) + (query_bag::weighted.of(head) ? pairs : 0);
}

// Whether a word of a query is the head of a bag.
inline bool is_bag(uint64_t word) {
    return query_bag::kind.of(word) == record::KEY_END && query_bag::bag.of(word);
}

// Words of the head, record or bag that begins with `word`.
inline uint32_t item_words(uint64_t word) { return is_bag(word) ? words_of(word) : 1; }

// Part `part` of the NIC's answer to a sample of a mini-batch.
inline float* part_of(const Asked& asked, uint64_t sample, uint64_t part) {
    const uint64_t place = asked.places ? uint64_t(asked.places[part]) : part;
    return asked.answers + (sample * asked.parts + place) * asked.values;
}

// A list of bags of other nodes: their heads, and the rows of all bags.
struct BagList {
    List heads;
    std::vector<uint64_t> rows;
};

// Read a list from its `words`. `held`: rows of each table whose bags this node pools, 0 for other
// tables; `places`: bags that may wait. Returns false if a bag is invalid or not this node's.
inline bool read_bags(const std::vector<uint64_t>& words, const int64_t* held, uint64_t tables,
                      uint64_t places, BagList& bags) {
    for (size_t at = 0; at < words.size();) {
        const uint64_t head = words[at], keys = bag_head::keys.of(head);
        const uint64_t table = bag_head::table.of(head), wide = bag_head::wide.of(head);
        const size_t end = at + words_of(head);
        if (!keys || bag_head::weighted.of(head) || bag_head::part.of(head)
            || bag_head::more.of(head) || end > words.size() || table >= tables
            || bag_head::landing.of(head) >= places)
            return false;
        for (uint64_t k = 0; k < keys; k++) {
            const uint64_t word = words[at + 1 + (wide ? k : k / 2)];
            bags.rows.push_back(wide ? word : word >> 32 * (k % 2) & 0xFFFFFFFF);
            if (bags.rows.back() >= uint64_t(held[table])) return false;
        }
        bags.heads.records.push_back(head);
        at = end;
    }
    return !words.empty();
}

// Pool `count` rows of a table into `bag`. Reference, bit for bit: host.dlrm.dlrm.pool.
template <class Row>
void pool_bag(const Rows& rows, uint64_t table, const Row* numbers, uint64_t count, bool mean,
              float* __restrict bag, std::vector<float>& next) {
    next.resize(rows.dimension);
    fill(rows, table, uint64_t(numbers[0]), bag);
    for (uint64_t k = 1; k < count; k++) {
        fill(rows, table, uint64_t(numbers[k]), next.data());
        for (uint64_t d = 0; d < rows.dimension; d++) bag[d] += next[d];
    }
    end_bag(bag, rows.dimension, int64_t(count), mean);
}

}  // namespace ember
