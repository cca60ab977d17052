"""A small timing report written by hand, valid by ``gen/documents/schemas/timing.schema.json``."""

from typing import Any

from gen.netlist.netlists import registers
from gen.timing.cells import KINDS
from gen.verilog.convert import Verilog

__all__ = ["report_of", "small_report"]

_PS = {"optimistic": 2500.0, "middle": 5000.0, "pessimistic": 8000.0}
_LOOPS = {"optimistic": [], "middle": [3333.3], "pessimistic": [10000.0]}


def _slack(ps: float) -> dict[str, float]:
    return {"250": 4000 - ps, "300": round(1e6 / 300 - ps, 1)}


def _path(ps: float, **more: Any) -> dict[str, Any]:
    return {"ps": ps, "mhz": round(1e6 / ps, 1), "slack_ps": _slack(ps), "from": "part.ram",
            "to": "part.count", "from_kind": "bram", "to_kind": "ff", "pin": "enable", "luts": 6,
            "source": "rtl/part.py:7", **more}


def _net(name: str, **kinds: int) -> dict[str, Any]:
    return {"net": name, "loads": sum(kinds.values()),
            "kinds": {kind: kinds.get(kind, 0) for kind in KINDS}}


def _case(name: str) -> dict[str, Any]:
    ps = _PS[name]
    end = {"from_kind": "bram", "to_kind": "ff", "pin": "enable", "ends": 3, "ps": ps,
           "slack_ps": _slack(ps), "failing": {"250": int(ps > 4000), "300": int(ps > 3333)}}
    port = {**end, "from_kind": "port", "pin": "reset", "ps": ps + 1000,
            "slack_ps": _slack(ps + 1000)}
    return {"case": name, "ps": ps, "mhz": round(1e6 / ps, 1), "slack_ps": _slack(ps), "ends": 3,
            "failing": end["failing"], "classes": [end], "port_classes": [port],
            "histogram": {"first_ps": -4000, "bin_ps": 250, "ends": [1, 0, 2]},
            "loops": [_path(loop, **{"from": "part.count"}) for loop in _LOOPS[name]]}


def small_report(name: str) -> dict[str, Any]:
    """Return the timing of a design called ``name`` with a block ``part`` of two instances.

    Only optimistic nets meet 250 MHz. Of two nets with many loads, a register drives one.
    """
    ends = {"from": {"signal": "part.ram", "source": ""},
            "to": {"signal": "part.count", "source": "rtl/part.py:7"}}
    used = {"lut": 1000, "ff": 2000, "bram36": 1.5, "uram": 0, "dsp": 1}
    return {
        "schema": "embernic/timing/1", "name": name, "clock": "clk",
        "assumptions": {
            "delays": "cells: a table", "mapping": "Yosys", "left_out": ["placement", "skew"],
            "nets": [{"case": case, "base_ps": base, "ps_per_root_of_fan_out": slope}
                     for case, base, slope in (("optimistic", 150, 0), ("middle", 350, 20),
                                               ("pessimistic", 600, 40))]},
        "interval_mhz": {"pessimistic": 125.0, "middle": 200.0, "optimistic": 400.0},
        "cases": [_case(case) for case in _PS],
        "blocks": [{"name": f"{name}__part", "instances": 2, "luts": 6, **{
            case: {"ps": ps, "mhz": round(1e6 / ps, 1), **ends, "inside": {
                "ps": ps - 400, "mhz": round(1e6 / (ps - 400), 1)}} for case, ps in _PS.items()}}],
        "paths": [_path(5000.0, hops=[
            {"cell": "part.ram", "type": "ember_ram", "entry": "", "exit": "read_data[3]",
             "cell_ps": 1003.0, "net_ps": 3936.0, "fan_out": 9, "signal": "part.ram",
             "source": "rtl/part.py:6"},
            {"cell": "part.ff", "type": "FDRE", "entry": "CE", "exit": "", "cell_ps": 61.0,
             "net_ps": 0.0, "fan_out": 0, "signal": "part.count", "source": "rtl/part.py:7"}])],
        "nets": {"most_loads": [_net("rst", reset=2000), _net("part.go", data=1, enable=400)],
                 "resets": [_net("rst", reset=2000)],
                 "enables": [_net("part.go", data=1, enable=400)]},
        "costly_nets": {"bound": 225, "nets": [
            {**_net("part.go", data=1, enable=400), "driver": "lut", "register": "", "ps": 4100.0},
            {**_net("part.$signal$3[1]", data=300), "driver": "ff",
             "register": "part.$signal$3", "ps": 4200.0},
            {**_net("part.$signal$3[0]", data=310), "driver": "ff",
             "register": "part.$signal$3", "ps": 4200.0}]},
        "control_sets": {"count": 3, "largest": [
            {"clock": "clk", "enable": "part.go", "reset": "rst", "flip_flops": 400},
            {"clock": "clk", "enable": "1", "reset": "", "flip_flops": 9}]},
        "ends_of_other_clocks": 4,
        "area": [{"instance": "", **used}, {"instance": "part", **used},
                 {"instance": "part_2", **used}],
    }


def report_of(verilog: Verilog) -> dict[str, Any]:
    """Return a report in which each register of ``verilog`` drives a costly net, and all instances
    in its top have equal areas."""
    report = small_report(verilog.name)
    net, block = report["costly_nets"]["nets"][-1], report["area"][-1]
    report["costly_nets"]["nets"] = [
        {**net, "register": name}
        for name in sorted(set(registers(verilog, verilog.name, []).values()))]
    report["area"] = [{**block, "instance": cell.name}
                      for cell in verilog.modules[verilog.name].cells]
    return report
