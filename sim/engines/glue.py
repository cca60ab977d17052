"""Generate the C++ between the harness and a compiled design: where its ports are stored."""

from collections.abc import Sequence

from gen.rtlil import Port

__all__ = ["verilator_glue"]

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


def verilator_glue(name: str, prefix: str, ports: Sequence[Port]) -> str:
    """Return glue for Verilator's class ``prefix`` of a design with ``ports``, in this order."""
    members = [port.name.replace("__", "___05F") for port in ports]
    return _TEMPLATE.format(
        name=name, prefix=prefix, count=len(ports),
        ports="\n".join(f"            {{&top->{member}, sizeof top->{member}}},"
                        for member in members),
        inputs=", ".join(str(i) for i, port in enumerate(ports) if port.direction == "input"))
