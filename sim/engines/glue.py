"""Generate the C++ between the harness and a compiled design: where its ports are stored."""

from collections.abc import Sequence

from gen.rtlil import Port

__all__ = ["WRAPPER", "verilator_glue", "verilog_wrapper"]

WRAPPER = "ember_wrapper"

_TEMPLATE = """\
// Ports of {name} for the harness.
#include "harness.h"
#include "{prefix}.h"

#include <cstring>
#include <memory>
#include <string>

double sc_time_stamp() {{ return 0; }}

namespace {{

class Compiled final : public ember::Design {{
public:
    explicit Compiled(int64_t seed) {{
        // 2 fills what has no initial value from the seed, 0 with zeros; gen/ember_ram*.v fill
        // each row of the memories by themselves.
        context.randReset(seed < 0 ? 0 : 2);
        context.randSeed(seed < 0 ? 1 : static_cast<int>(seed) + 1);
        const std::string argument = "+ember_random=" + std::to_string(seed);
        const char* arguments[] = {{"{name}", argument.c_str()}};
        context.commandArgs(seed < 0 ? 1 : 2, arguments);
        Verilated::threadContextp(&context);
        top = std::make_unique<{prefix}>(&context, "{name}");
        const ember::Port all[] = {{
{ports}
        }};
        std::memcpy(ports, all, sizeof all);
        for (uint32_t index : {{{inputs}}})
            std::memset(ports[index].data, 0, ports[index].bytes);
    }}
    ~Compiled() override {{ top->final(); }}
    void eval() override {{ top->eval(); }}
    ember::Port port(uint32_t index) override {{ return ports[index]; }}

private:
    VerilatedContext context;
    std::unique_ptr<{prefix}> top;
    ember::Port ports[{count}];
}};

}}  // namespace

ember::Design* ember::make_design(int64_t seed) {{ return new Compiled(seed); }}
"""


def verilog_wrapper(name: str, ports: Sequence[Port]) -> str:
    """Return Verilog of module ``WRAPPER`` around ``name``, with ports ``p0``, ``p1``, ...

    It registers the reset. Verilator evaluates what depends on an input without a register between
    whenever anything changes; with the reset straight from outside that is nearly everything.
    """
    lines = [f"module {WRAPPER} ("]
    lines.append(",\n".join(f"  {port.direction} [{port.width - 1}:0] p{i}"
                            for i, port in enumerate(ports)))
    lines.append(");")
    places = {port.name: f"p{i}" for i, port in enumerate(ports)}
    if "rst" in places and "clk" in places:
        lines += ["  reg reset = 1'b1;",
                  f"  always @(posedge {places['clk']}) reset <= {places['rst']};"]
        places["rst"] = "reset"
    lines += [f"  {name} dut ("]
    # Escaped: a port may have the name of a keyword, as ``time`` does.
    lines.append(",\n".join(f"    .\\{port} ({place})" for port, place in places.items()))
    lines += ["  );", "endmodule", ""]
    return "\n".join(lines)


def verilator_glue(name: str, prefix: str, ports: Sequence[Port]) -> str:
    """Return glue for Verilator's class ``prefix`` of the wrapper around ``name``."""
    return _TEMPLATE.format(
        name=name, prefix=prefix, count=len(ports),
        ports="\n".join(f"            {{&top->p{i}, sizeof top->p{i}}},"
                        for i in range(len(ports))),
        inputs=", ".join(str(i) for i, port in enumerate(ports) if port.direction == "input"))
