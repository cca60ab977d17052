// Placement of keys: hash and owner. Reference: host.placement.shard.
#pragma once
#include "formats.h"

namespace ember {

inline uint32_t hash_of(const Plan& plan, uint64_t key) {
    uint32_t value = 0;
    for (uint64_t byte = 0; byte < plan.hash_bytes; byte++)
        value ^= plan.hash[byte * 256 + (key >> 8 * byte & 255)];
    return value;
}

inline int64_t owner_of(const Plan& plan, uint64_t table, uint32_t hash, int64_t requester) {
    if (plan.kinds[table] == descriptor::REPLICATED) return requester;
    if (plan.kinds[table] != descriptor::ROW) return plan.owner[table];
    const int64_t low = hash & ((1u << OWNER_BITS) - 1);
    return plan.owner[table] + (low * plan.owners[table] >> OWNER_BITS);
}

}  // namespace ember
