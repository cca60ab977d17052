"""Queries of Tcl scripts for Vivado, such as ``get_cells``, and the objects that they match."""

import re
from typing import NamedTuple

from tests.gen.shells.netlist import Crossing, Netlist

__all__ = ["Query", "constraints", "covers", "matches", "queries"]


class Query(NamedTuple):
    """A query: ``cells`` of ``get_cells``, its patterns, and the queries in its arguments."""

    kind: str
    patterns: tuple[str, ...]
    inner: "tuple[Query, ...]" = ()


def queries(text: str) -> list[Query]:
    """Return the outermost queries of ``text``, Tcl without its comments."""
    text = re.sub(r"^\s*#.*$", "", text, flags=re.MULTILINE)
    found, at = [], 0
    while match := re.compile(r"\[(?:ipx::)?get_(\w+)").search(text, at):
        arguments, at = _arguments(text, match.end())
        words = re.findall(r"\{[^}]*\}|\[[^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*\]|\S+", arguments)
        patterns, skip = [], False
        for word in words:
            if skip or word.startswith("-"):
                skip = word == "-of_objects"
            elif not word.startswith("["):
                patterns += word.strip("{}").split()
        found.append(Query(match[1], tuple(patterns), tuple(queries(arguments))))
    return found


def _arguments(text: str, start: int) -> tuple[str, int]:
    depth, braces = 1, 0
    for at in range(start, len(text)):
        braces += (text[at] == "{") - (text[at] == "}")
        if not braces:
            depth += (text[at] == "[") - (text[at] == "]")
        if not depth:
            return text[start:at], at + 1
    raise ValueError(f"a bracket is open: {text[start:start + 80]}")


def _glob(pattern: str) -> re.Pattern:
    # Brackets are the bits of a bus.
    return re.compile(re.escape(pattern).replace(r"\*", ".*"))


def matches(query: Query, netlist: Netlist) -> set[str]:
    """Return the registers, instances, pins, ports or clock ports of ``netlist`` that ``query``
    selects. ``ValueError`` names a pattern that selects nothing."""
    if query.kind == "clocks":
        assert not query.patterns, "a clock's name is the shell's"
        return set().union(*(matches(inner, netlist) for inner in query.inner)) & {
            *netlist.clocks.values()}
    selected = set()
    for pattern in query.patterns:
        found = set(_select(query.kind, _glob(pattern), netlist))
        if not found:
            raise ValueError(f"get_{query.kind} {pattern} selects nothing")
        selected |= found
    return selected


def _select(kind: str, glob: re.Pattern, netlist: Netlist):
    if kind == "ports":
        yield from filter(glob.fullmatch, netlist.ports)
        return
    assert kind in ("cells", "pins"), kind
    if kind == "cells":
        yield from filter(glob.fullmatch, netlist.instances)
    ends = {"cells": [""], "pins": ["/C", "/D", "/PRE"]}[kind]
    for register, bits in netlist.registers.items():
        for end in ends:
            name = f"{register}[0]" if bits > 1 else register
            if bits and glob.fullmatch(name + end):
                yield register + end


def constraints(xdc: str) -> list[tuple[str, str]]:
    """Return each exception of ``xdc`` with its command: ``set_false_path``, ..."""
    return [(line.split()[0], line) for line in xdc.splitlines() if line.startswith("set_")]


def covers(constraint: str, crossing: Crossing, netlist: Netlist) -> bool:
    """Return whether ``constraint`` applies to ``crossing``."""
    ends = {"from": {crossing.source, netlist.clocks[crossing.source]},
            "to": {crossing.target, f"{crossing.target}/{crossing.pin}",
                   netlist.clocks[crossing.target]}}
    for option, names in ends.items():
        _before, found, after = constraint.partition(f"-{option} ")
        if found and not names & matches(queries(after)[0], netlist):
            return False
    return True
