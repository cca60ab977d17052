// 64-bit hashes. Reference, bit for bit: host.hashing.
#pragma once
#include <cstdint>

namespace ember {

inline uint64_t mix64(uint64_t h) {
    h ^= h >> 33;
    h *= 0xFF51AFD7ED558CCD;
    h ^= h >> 33;
    h *= 0xC4CEB9FE1A85EC53;
    return h ^ h >> 33;
}

// One hash of several integers.
template <class... Values>
uint64_t mix64_of(Values... values) {
    uint64_t h = 0;
    ((h = mix64((h + 0x9E3779B97F4A7C15) ^ uint64_t(values))), ...);
    return h;
}

}  // namespace ember
