// Keys of samples: written as query records (host.wire.packets.query_records), and those counted that
// the nodes of a cluster need from one another (sim.nic.savings.foreign_keys).
#include <algorithm>
#include <cstdint>
#include <vector>

// First bit and width of the fields of a query record and of a sample's head, and their kinds.
struct Layout {
    uint32_t row, row_bits, table, table_bits, kind;
    uint32_t sample, slots, slots_bits, head_kind;
    uint64_t key, key_end, empty, head;
};

// Of each table: how it is placed, its (first) owner, how many there are.
struct Plan {
    const int64_t *kinds, *owner, *owners;
    uint64_t tables;
    int64_t by_row, everywhere;
    const uint32_t* hash;  // [bytes of a key][256]
    uint32_t hash_bytes, owner_bits, row_bits;
};

namespace {

int64_t owner_of(const Plan& plan, int64_t table, uint64_t key, int64_t requester) {
    const int64_t kind = plan.kinds[table];
    if (kind == plan.everywhere) return requester;
    if (kind != plan.by_row) return plan.owner[table];
    uint32_t value = 0;
    for (uint32_t byte = 0; byte < plan.hash_bytes; byte++)
        value ^= plan.hash[byte * 256 + (key >> 8 * byte & 255)];
    const int64_t low = value & ((1u << plan.owner_bits) - 1);
    return plan.owner[table] + (low * plan.owners[table] >> plan.owner_bits);
}

// A set of keys; no key is all ones.
class Keys {
public:
    explicit Keys(uint64_t most) {
        uint64_t places = 16;
        while (places < 2 * most) places *= 2;
        held_.assign(places, FREE);
    }

    bool add(uint64_t key) {
        const uint64_t last = held_.size() - 1;
        uint64_t at = (key * 0x9E3779B97F4A7C15 >> 20) & last;
        for (; held_[at] != FREE; at = (at + 1) & last)
            if (held_[at] == key) return false;
        held_[at] = key;
        return true;
    }

private:
    static constexpr uint64_t FREE = ~uint64_t{0};
    std::vector<uint64_t> held_;
};

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

// Records of samples of `bags` bags each, numbered from `number`; false where a value does not fit
// its field.
EXPORT bool ember_query_records(const Layout* layout, const int64_t* lengths, uint64_t samples,
                                uint64_t bags, const int64_t* tables, const int64_t* rows,
                                uint32_t number, uint64_t* records) {
    for (uint64_t sample = 0; sample < samples; sample++, lengths += bags) {
        uint64_t slots = 0;
        for (uint64_t bag = 0; bag < bags; bag++) slots += std::max<int64_t>(lengths[bag], 1);
        if (slots >> layout->slots_bits) return false;
        *records++ = uint64_t{number++} << layout->sample | slots << layout->slots
            | layout->head << layout->head_kind;
        for (uint64_t bag = 0; bag < bags; bag++) {
            if (!lengths[bag]) *records++ = layout->empty << layout->kind;
            for (int64_t place = lengths[bag]; place-- > 0;) {
                const uint64_t row = *rows++, table = *tables++;
                if (row >> layout->row_bits || table >> layout->table_bits) return false;
                *records++ = row << layout->row | table << layout->table
                    | (place ? layout->key : layout->key_end) << layout->kind;
            }
        }
    }
    return true;
}

// The different keys of each share that other nodes own, all shares together; share `node` is
// keys bounds[node] to bounds[node + 1]. -1 when a key names a table that is not there.
EXPORT int64_t ember_foreign_keys(const Plan* plan, const int64_t* tables, const int64_t* rows,
                                   const int64_t* bounds, uint64_t nodes) {
    int64_t found = 0;
    for (uint64_t node = 0; node < nodes; node++) {
        Keys seen(bounds[node + 1] - bounds[node]);
        for (int64_t at = bounds[node]; at < bounds[node + 1]; at++) {
            if (static_cast<uint64_t>(tables[at]) >= plan->tables) return -1;
            const uint64_t key = static_cast<uint64_t>(rows[at])
                | static_cast<uint64_t>(tables[at]) << plan->row_bits;
            if (owner_of(*plan, tables[at], key, node) != static_cast<int64_t>(node))
                found += seen.add(key);
        }
    }
    return found;
}
