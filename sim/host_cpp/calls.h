// Function types of an engine (harness.cpp). Engines may come from several shared libraries.
#pragma once
#include <cstdint>

namespace ember {

using Run = void(void* engine, uint64_t until);
using Ask = uint64_t(void* engine);
using Pop = uint64_t(void* engine, uint32_t stream, uint64_t room, uint32_t* beats,
                     uint64_t* cycles);
using Push = void(void* engine, uint32_t stream, uint64_t count, const uint32_t* beats,
                  const uint64_t* cycles);
using Access = void(void* engine, uint32_t address, uint32_t data, uint64_t cycle, int write);

}  // namespace ember
