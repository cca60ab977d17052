"""Generator of the C++ glue between the harness and a Verilator design: its ports' storage."""

import re
from collections.abc import Sequence

from gen.verilog.rtlil import Port

__all__ = ["WRAPPER", "traceable", "verilator_glue", "verilog_wrapper"]

WRAPPER = "ember_wrapper"
_NUMBERED = re.compile(r"^  ((?:wire|reg) (?:\[[\d:]+\] +)?\\\$(?:\d+|start) [^;\n]*;)$",
                       re.MULTILINE)

_TEMPLATE = """\
// Ports of {name} for the harness.
#include "harness.h"
#include "{prefix}.h"
{trace_includes}
#include <cstring>
#include <memory>
#include <string>

double sc_time_stamp() {{ return 0; }}

namespace {{
{trace_file}
class Compiled final : public ember::Design {{
public:
    explicit Compiled(int64_t seed) {{
        // 2: random values from the seed where there is no initial value; 0: zeros there. The
        // memories of gen/ember_ram*.v fill their rows themselves.
        context.randReset(seed < 0 ? 0 : 2);
        context.randSeed(seed < 0 ? 1 : static_cast<int>(seed) + 1);
        const std::string argument = "+ember_random=" + std::to_string(seed);
        const char* arguments[] = {{"{name}", argument.c_str()}};
        context.commandArgs(seed < 0 ? 1 : 2, arguments);
        Verilated::threadContextp(&context);
{trace_on}        top = std::make_unique<{prefix}>(&context, "{name}");
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
{trace_methods}
private:
    VerilatedContext context;
    std::unique_ptr<{prefix}> top;
    ember::Port ports[{count}];
{trace_members}}};

}}  // namespace

ember::Design* ember::make_design(int64_t seed) {{ return new Compiled(seed); }}
"""

_TRACE = {
    "trace_includes": '#include "verilated_vcd_c.h"\n',
    "trace_file": """
struct Text final : VerilatedVcdFile {
    ember::TraceSink sink = nullptr;
    bool open(const std::string&) override { return true; }
    void close() override {}
    ssize_t write(const char* text, ssize_t bytes) override {
        sink(text, static_cast<uint64_t>(bytes));
        return bytes;
    }
};
""",
    "trace_on": """\
        context.traceEverOn(true);
""",
    "trace_methods": """
    void trace_open(ember::TraceSink sink) override {
        text.sink = sink;
        top->trace(&vcd, 0);
        vcd.set_time_unit("1ns");
        vcd.set_time_resolution("1ns");
        vcd.open("");
    }
    void trace_dump(uint64_t time) override { vcd.dump(time); }
    void trace_close() override { vcd.close(); }
""",
    # The VCD object is last: it is destroyed first, while its sink still exists.
    "trace_members": """\
    Text text;
    VerilatedVcdC vcd{&text};
""",
}


def verilog_wrapper(name: str, ports: Sequence[Port], traced: bool = False) -> str:
    """Return Verilog of module ``WRAPPER`` around ``name``, with ports ``p0``, ``p1``, ...

    The wrapper registers the reset: Verilator evaluates logic that depends combinationally on a
    top-level input whenever anything changes, and nearly all logic depends on the reset. The
    wrapper of a ``traced`` design leaves its own signals out of the trace.
    """
    lines = ["/*verilator tracing_off*/"] if traced else []
    lines += [f"module {WRAPPER} ("]
    lines.append(",\n".join(f"  {port.direction} [{port.width - 1}:0] p{i}"
                            for i, port in enumerate(ports)))
    lines.append(");")
    places = {port.name: f"p{i}" for i, port in enumerate(ports)}
    if "rst" in places and "clk" in places:
        lines += ["  reg reset = 1'b1;",
                  f"  always @(posedge {places['clk']}) reset <= {places['rst']};"]
        places["rst"] = "reset"
    lines += ["  /*verilator tracing_on*/"] if traced else []
    lines += [f"  {name} dut ("]
    # Escaped: the name of a port may be a keyword, as ``time`` is.
    lines.append(",\n".join(f"    .\\{port} ({place})" for port, place in places.items()))
    lines += ["  );", "endmodule", ""]
    return "\n".join(lines)


def traceable(verilog: str) -> str:
    """Return ``verilog`` with unnamed (numbered) wires left out of traces."""
    return _NUMBERED.sub(r"/*verilator tracing_off*/ \1 /*verilator tracing_on*/", verilog)


def verilator_glue(name: str, prefix: str, ports: Sequence[Port], traced: bool = False) -> str:
    """Return glue for Verilator's class ``prefix`` of the wrapper around ``name``."""
    return _TEMPLATE.format(
        **(_TRACE if traced else dict.fromkeys(_TRACE, "")),
        name=name, prefix=prefix, count=len(ports),
        ports="\n".join(f"            {{&top->p{i}, sizeof top->p{i}}},"
                        for i in range(len(ports))),
        inputs=", ".join(str(i) for i, port in enumerate(ports) if port.direction == "input"))
