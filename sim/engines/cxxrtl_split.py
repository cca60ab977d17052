"""Splits the C++ that Yosys writes for a flattened design into pieces of bounded size.

``write_cxxrtl`` puts the evaluation of a design into one function. For a whole NIC the function has
4 MB, and a compiler runs out of memory. The function has a regular form: one statement per cell, in
an order in which every value is computed before it is used. This module distributes the statements
over functions of bounded size, in several files. There are two groups of functions: ``comb``, the
combinational logic of state and inputs, and ``edge``, the actions of a rising clock edge. A driver
that holds its inputs between calls of the two groups evaluates no logic twice.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from gen.base.tools import BuildError

__all__ = ["SplitDesign", "split_design"]

_FUNCTION_BYTES = 30_000
_FILE_BYTES = 1_500_000
_EVAL = re.compile(
    r"^bool (\w+)::eval\(performer \*performer\) \{\n"
    r"\tbool converged = (true|false);\n(.*?)\treturn converged;\n\}\n", re.MULTILINE | re.DOTALL)
_EDGE = re.compile(r"\tbool ((?:pos|neg)edge_\w+) = this->\1\(\);")
_LOCAL = re.compile(r"\tvalue<(\d+)> (\w+);")
_NAME = re.compile(r"\b[ip]_\w+")
_COMMIT = re.compile(r"^\t\tif \((\w+)\.commit\(observer\)\) changed = true;$", re.MULTILINE)
_WRITE = re.compile(r"^(\t+)(memory_\w+)\.update\(", re.MULTILINE)
_WRITER = """
// Skip a write with an empty mask: CXXRTL would queue it all the same.
template <size_t Width>
CXXRTL_ALWAYS_INLINE
void write_row(memory<Width> &rows, size_t index, const value<Width> &row,
               const value<Width> &mask, int priority) {
	if (!mask.is_zero()) rows.update(index, row, mask, priority);
}
"""


@dataclass(frozen=True)
class SplitDesign:
    """C++ of a design in several files.

    Members
    -------
    top: name of the design's class in namespace ``cxxrtl_design``. Its functions are ``comb()``;
        ``edge()``, followed by ``advance()``, which adopts the new state; and ``commit()``, which
        adopts the new state and returns whether anything changed. ``converges``: whether one call
        of ``comb()`` suffices. Otherwise ``commit()`` and ``comb()`` must alternate until nothing
        changes.
    header: text of the header.
    files: texts of the files that include the header.
    """

    top: str
    header: str
    files: tuple[str, ...]


def split_design(header: str, source: str, clock: str | None) -> SplitDesign:
    """Split ``source``, a design with one module, and its ``header`` ``design.h``.

    ``clock`` is the C++ name of the clock's port, None without a clock. ``BuildError`` if the text
    does not have the form that Yosys writes, or if the design uses another clock edge.
    """
    found = _EVAL.findall(source)
    if len(found) != 1:
        raise BuildError(f"the design must be one CXXRTL module, not {len(found)}")
    top, converges, body = found[0]
    lines = body.splitlines()
    rising = f"posedge_{clock}"
    other = {match[1] for line in lines if (match := _EDGE.fullmatch(line))} - {rising}
    if other:
        wanted = "no clock edge without a port clk" if clock is None else (
            f"one clock edge, {rising}")
        raise BuildError(f"the design must have {wanted}, not {', '.join(sorted(other))}")
    widths = {match[2]: match[1] for line in lines if (match := _LOCAL.fullmatch(line))}
    groups: dict[str, list[str]] = {"comb": [], "edge": []}
    for statement in _statements(lines):
        if statement.startswith(f"\tif ({rising}) {{\n"):
            statement = _WRITE.sub(r"\1write_row(\2, ", statement)
            groups["edge"].append(statement.replace(f"if ({rising}) {{", "{", 1))
        elif rising in statement:
            raise BuildError(f"unsupported output of CXXRTL: {statement[:200]!r}")
        else:
            groups["comb"].append(statement)
    functions = [(f"{group}_{number}", statements) for group, all_ in groups.items()
                 for number, statements in enumerate(_chunks(all_))]
    members, bodies = _place_locals(functions, widths)
    return SplitDesign(
        top, _header(header, top, converges, [name for name, _ in functions], members),
        tuple(_files(_main_file(header, source, top, functions), top, bodies)))


def _statements(lines: list[str]) -> Iterator[str]:
    """Yield each statement: a line, or a block with the lines before it that compute its inputs."""
    pending: list[str] = []
    depth = 0
    for line in lines:
        code = line.strip()
        if (not code or code.startswith("//") or _LOCAL.fullmatch(line)
                or _EDGE.fullmatch(line)) and not depth:
            continue
        pending.append(line)
        depth += (code.endswith("{")) - code.startswith("}")
        if depth == 0 and not code.startswith(("auto ", "CXXRTL_ASSERT(")):
            yield "\n".join(pending) + "\n"
            pending = []
    if pending:
        raise BuildError(f"unsupported output of CXXRTL: {pending[0][:200]!r}")


def _chunks(statements: list[str]) -> Iterator[list[str]]:
    """Distribute statements over functions, in order."""
    chosen: list[str] = []
    size = 0
    for statement in statements:
        if chosen and size + len(statement) > _FUNCTION_BYTES:
            yield chosen
            chosen, size = [], 0
        chosen.append(statement)
        size += len(statement)
    if chosen:
        yield chosen


def _place_locals(functions: list[tuple[str, list[str]]], widths: dict[str, str]
                  ) -> tuple[list[str], list[tuple[str, str]]]:
    """Declare each variable locally if only one function uses it, else as a member.

    Returns the declarations of the members and the body of each function.
    """
    users: dict[str, set[str]] = {}
    for name, statements in functions:
        for variable in {v for text in statements for v in _NAME.findall(text)} & widths.keys():
            users.setdefault(variable, set()).add(name)
    own: dict[str, list[str]] = {name: [] for name, _ in functions}
    members = []
    for variable, width in widths.items():
        named = users.get(variable, set())
        if len(named) > 1:
            members.append(f"\tvalue<{width}> {variable};")
        elif named:
            own[next(iter(named))].append(f"\tvalue<{width}> {variable};\n")
    return members, [(name, "".join(own[name]) + "".join(statements))
                     for name, statements in functions]


def _header(header: str, top: str, converges: str, functions: list[str],
            members: list[str]) -> str:
    lines = [*members, f"\tstatic constexpr bool converges = {converges};", "\tvoid comb();",
             "\tvoid edge();", "\tvoid advance();",
             *(f"\tvoid {function}();" for function in functions)]
    begin, end = "namespace cxxrtl_design {\n", f"}}; // struct {top}\n"
    if header.count(begin) != 1 or header.count(end) != 1:
        raise BuildError(f"struct {top} is missing in the output of CXXRTL")
    return header.replace(begin, begin + _WRITER).replace(end, "\n".join(lines) + "\n" + end)


def _main_file(header: str, source: str, top: str, functions: list[tuple[str, list[str]]]) -> str:
    """Return the source with calls in place of the statements."""
    # A module must have ``eval``; with a constant clock it is ``comb`` alone.
    parts = [f"bool {top}::eval(performer *) {{\n\tcomb();\n\treturn converges;\n}}\n"]
    for group in ("comb", "edge"):
        calls = "".join(f"\t{name}();\n" for name, _ in functions if name.startswith(group))
        parts.append(f"void {top}::{group}() {{\n{calls}}}\n")
    # Copying all registers is faster than finding those that have changed.
    taken = "".join(
        f"\tif (!{name}.write_queue.empty()) {name}.commit(observer);\n"
        if name.startswith("memory_") else f"\t{name}.curr = {name}.next;\n"
        for name in _COMMIT.findall(header))
    parts.append(f"void {top}::advance() {{\n\tcxxrtl::observer observer;\n{taken}}}\n")
    return _EVAL.sub(lambda _: "\n".join(parts), source)


def _files(first: str, top: str, bodies: list[tuple[str, str]]) -> Iterator[str]:
    """Distribute the functions over files; ``first`` begins the first one."""
    text = first + "\nnamespace cxxrtl_design {\n"
    for name, body in bodies:
        if len(text) + len(body) > _FILE_BYTES:
            yield text + "\n}\n"
            text = ('#include "design.h"\n\nusing namespace cxxrtl_yosys;\n\n'
                    "namespace cxxrtl_design {\n")
        text += f"\nvoid {top}::{name}() {{\n{body}}}\n"
    yield text + "\n}\n"
