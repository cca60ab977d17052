"""Generator of the C++ glue between the harness and a CXXRTL design."""

from collections.abc import Sequence

from gen.verilog.rtlil import Port

__all__ = ["cxxrtl_glue"]

_TEMPLATE = """\
// Ports of {name} for the harness.
#include "harness.h"
#include "{header}"

#include <string>

namespace {{

template <size_t Bits>
ember::Port storage(cxxrtl::value<Bits>& port) {{
    return {{port.data, sizeof port.data}};
}}

// A port that is a register: its value before the next clock edge.
template <size_t Bits>
ember::Port storage(cxxrtl::wire<Bits>& port) {{
    return {{port.curr.data, sizeof port.curr.data}};
}}

// Fill each row of the memories of gen/ember_ram*.v, differently for each instance.
void randomize(cxxrtl::module& top, uint64_t seed) {{
    cxxrtl::debug_items items;
    top.debug_info(&items, nullptr, "");
    for (const auto& [path, parts] : items.table) {{
        const auto& memory = parts.front();
        if (memory.type != cxxrtl::debug_item::MEMORY || !items.attrs(path).count("ram_style"))
            continue;
        uint64_t state = seed;
        for (const char letter : path)
            state = (state ^ static_cast<unsigned char>(letter)) * 0x100000001B3u;
        const size_t words = (memory.width + 31) / 32;
        const uint32_t top_mask = ~uint32_t(0) >> (32 * words - memory.width);
        for (size_t row = 0; row < memory.depth; row++) {{
            uint32_t* word = memory.curr + row * words;
            for (size_t i = 0; i < words; i++) {{
                state = state * 0x5851F42D4C957F2Du + 0x14057B7EF767814Fu;
                word[i] = static_cast<uint32_t>(state >> 32);
            }}
            word[words - 1] &= top_mask;
        }}
    }}
}}

class Compiled final : public ember::Design {{
public:
    explicit Compiled(int64_t seed) {{
        if (seed >= 0) randomize(top, static_cast<uint64_t>(seed));
    }}
    // The harness drives inputs before it evaluates with the clock low, not between that and the
    // rising edge, so combinational values are up to date at the edge. After the edge they are
    // stale until the clock is low again.
    void eval() override {{
        const bool high = {clock};
        if (high && !was_high) {{
            top.edge();
            top.advance();
        }} else {{
            top.comb();
            if (!top.converges) {{
                while (top.commit()) top.comb();
            }}
        }}
        was_high = high;
    }}
    ember::Port port(uint32_t index) override {{ return ports[index]; }}

private:
    cxxrtl_design::{top} top;
    bool was_high = false;
    ember::Port ports[{count}] = {{
{ports}
    }};
}};

}}  // namespace

ember::Design* ember::make_design(int64_t seed) {{ return new Compiled(seed); }}
"""


def cxxrtl_glue(name: str, top: str, header: str, ports: Sequence[Port]) -> str:
    """Return glue for class ``top`` of ``header``: the wrapper around ``name``, see
    :func:`sim.engines.glue.verilog_wrapper`."""
    clock = next((i for i, port in enumerate(ports) if port.name == "clk"), None)
    return _TEMPLATE.format(
        name=name, top=top, header=header, count=len(ports),
        clock="false" if clock is None else f"top.p_p{clock}.data[0]",
        ports="\n".join(f"        storage(top.p_p{i})," for i in range(len(ports))))
