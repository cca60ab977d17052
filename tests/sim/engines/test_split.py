"""The split of the C++ that Yosys writes: the place of each statement, and rejected inputs."""

import re

import pytest

from gen.base.tools import BuildError
from sim.engines import cxxrtl_split
from sim.engines.cxxrtl_split import split_design

HEADER = """\
#include <cxxrtl/cxxrtl.h>
namespace cxxrtl_design {
struct p_top : public module {
	wire<8> p_q;
	memory<8> memory_p_rows { 4u };
		if (p_q.commit(observer)) changed = true;
		if (memory_p_rows.commit(observer)) changed = true;
}; // struct p_top
} // namespace cxxrtl_design
"""
SOURCE = """\
#include "design.h"
namespace cxxrtl_design {
bool p_top::eval(performer *performer) {
	bool converged = true;
	bool posedge_p_clk = this->posedge_p_clk();
	// \\src: design.v:1
	value<8> i_shared;
	value<8> i_own;
	value<8> i_unused;
	// cell a
	i_own = p_a;
	i_shared = not_u<8>(i_own);
	// memory read
	auto tmp_0 = memory_index(i_shared, 0, 4);
	CXXRTL_ASSERT(tmp_0.valid && "out of bounds read");
	if(tmp_0.valid) {
		value<8> tmp_1 = memory_p_rows[tmp_0.index];
		p_o = tmp_1;
	} else {
		p_o = value<8> {};
	}
	if (posedge_p_clk) {
		p_q.next = (p_rst ? value<8>{0u} : i_shared);
	}
	if (posedge_p_clk) {
		auto tmp_2 = memory_index(p_a, 0, 4);
		if (tmp_2.valid) {
			memory_p_rows.update(tmp_2.index, p_a, p_mask, 0);
		}
	}
	return converged;
}

void p_top::reset() {}
} // namespace cxxrtl_design
"""


def functions(split):
    found = {}
    for text in split.files:
        found |= dict(re.findall(r"^void p_top::(\w+)\(\) \{\n(.*?)^\}\n", text, re.M | re.S))
    return found


def test_groups_of_statements():
    split = split_design(HEADER, SOURCE, "p_clk")
    found = functions(split)
    assert split.top == "p_top"
    assert found["comb"] == "\tcomb_0();\n" and found["edge"] == "\tedge_0();\n"
    assert "tmp_1" in found["comb_0"] and ".next" not in found["comb_0"]
    assert found["edge_0"].count("\t{\n") == 2 and "posedge" not in found["edge_0"]
    assert "write_row(memory_p_rows, tmp_2.index, p_a, p_mask, 0);" in found["edge_0"]
    assert "p_q.curr = p_q.next;" in found["advance"]
    assert "memory_p_rows.commit(observer);" in found["advance"]
    assert "converges = true;" in split.header


def test_variables_are_members_where_functions_share_them():
    split = split_design(HEADER, SOURCE, "p_clk")
    assert "\tvalue<8> i_shared;" in split.header and "i_own" not in split.header
    assert functions(split)["comb_0"].startswith("\tvalue<8> i_own;\n")
    assert "i_unused" not in "".join((split.header, *split.files))


@pytest.mark.parametrize("limit", [1, 80, 10_000])
def test_every_statement_once_and_in_order(monkeypatch, limit):
    monkeypatch.setattr(cxxrtl_split, "_FUNCTION_BYTES", limit)
    monkeypatch.setattr(cxxrtl_split, "_FILE_BYTES", limit)
    split = split_design(HEADER, SOURCE, "p_clk")
    found = functions(split)
    names = re.findall(r"\w+(?=\(\);)", found["comb"] + found["edge"])
    whole = "".join(found[name] for name in names)
    marks = ["i_own = p_a", "i_shared = not", "auto tmp_0", "ASSERT(tmp_0", "p_o = tmp_1",
             "p_q.next =", "auto tmp_2", "write_row("]
    places = [whole.index(mark) for mark in marks]
    assert places == sorted(places)
    assert all(whole.count(mark) == 1 for mark in marks)
    assert all(f"\tvoid {name}();" in split.header for name in names)
    assert all(text.startswith("#include \"design.h\"\n") for text in split.files)
    assert (len(names), len(split.files)) == {1: (5, 6), 80: (4, 5), 10_000: (2, 1)}[limit]


@pytest.mark.parametrize("change, clock, text", [
    (lambda s: s.replace("converged;\n}", "converged;\n}\n" + s), "p_clk",
     "the design must be one CXXRTL module, not 2"),
    (lambda s: "", "p_clk", "the design must be one CXXRTL module, not 0"),
    (lambda s: s, "p_p1", "the design must have one clock edge, posedge_p_p1, not "
                          "posedge_p_clk"),
    (lambda s: s, None, "the design must have no clock edge without a port clk, not posedge_p_clk"),
    (lambda s: s.replace("if (posedge_p_clk) {", "if (a && posedge_p_clk) {", 1), "p_clk",
     "unsupported output of CXXRTL: .*a && posedge_p_clk"),
    (lambda s: s.replace("\t}\n\treturn", "\treturn"), "p_clk", "unsupported output of CXXRTL"),
])
def test_rejected_inputs(change, clock, text):
    with pytest.raises(BuildError, match=text):
        split_design(HEADER, change(SOURCE), clock)


def test_a_header_of_another_design_is_refused():
    with pytest.raises(BuildError, match="struct p_top is missing in the output of CXXRTL"):
        split_design(HEADER.replace("p_top", "p_other"), SOURCE, "p_clk")
