// What the harness needs to know of a compiled design: the storage of its ports and how to
// evaluate it. The generated glue fills this in; nothing here depends on what compiled the design.
#pragma once
#include <cstdint>

namespace ember {

// Storage of a top-level port: little-endian bytes, bits above the width are 0.
struct Port {
    void* data = nullptr;
    uint32_t bytes = 0;
};

// Takes the text of a trace, piece by piece.
using TraceSink = void (*)(const char* text, uint64_t bytes);

// A port of the design by position, in the order of the design's description.
class Design {
public:
    virtual ~Design() = default;
    virtual void eval() = 0;
    virtual Port port(uint32_t index) = 0;

    // Only a design that was compiled to be traced: write its signals as VCD, times in ns.
    virtual void trace_open(TraceSink) {}
    virtual void trace_dump(uint64_t) {}
    virtual void trace_close() {}
};

// Made by the glue. seed < 0: memories and registers start at 0; else at random from the seed.
Design* make_design(int64_t seed);

}  // namespace ember
