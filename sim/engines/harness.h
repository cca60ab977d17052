// The harness's interface to a compiled design: the storage of its ports and its evaluation. The
// generated glue implements it; the interface does not depend on the compiler of the design.
#pragma once
#include <cstdint>

namespace ember {

// Storage of a top-level port: little-endian bytes, bits above the width are 0.
struct Port {
    void* data = nullptr;
    uint32_t bytes = 0;
};

// Receives the text of a trace, piece by piece.
using TraceSink = void (*)(const char* text, uint64_t bytes);

// A compiled design; its ports are indexed in the order of the design's description.
class Design {
public:
    virtual ~Design() = default;
    virtual void eval() = 0;
    virtual Port port(uint32_t index) = 0;

    // Write the signals as VCD, times in ns; only for a traceable design.
    virtual void trace_open(TraceSink) {}
    virtual void trace_dump(uint64_t) {}
    virtual void trace_close() {}
};

// Defined by the glue. seed < 0: memories and registers start at 0; else random, from the seed.
Design* make_design(int64_t seed);

}  // namespace ember
