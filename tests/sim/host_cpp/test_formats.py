"""The generated header agrees with Python, and the compiler checks the structures."""

import ctypes
import re
from pathlib import Path

import pytest

import sim.host_cpp
from host.wire.layouts import field_bits
from rtl.formats import LookupRecord, Opcode
from sim.engines import BuildError
from sim.engines.library import library
from sim.host_cpp.formats import header_text
from sim.host_cpp.structures import HostConfig, Shared, definition, fields

HEADERS = (Path(sim.host_cpp.__file__).parent,)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("EMBERNIC_CACHE", str(tmp_path / "cache"))


def _source(folder: Path, text: str = "") -> Path:
    path = folder / "unit.cpp"
    path.write_text(f'#include "formats.h"\n{text}')
    return path


def test_fields_and_opcodes_are_those_of_the_rtl(tmp_path):
    read = ('extern "C" __attribute__((visibility("default"))) uint64_t read(const uint64_t* at) '
            "{ return ember::lookup::table.of(*at) << 8 | ember::opcode::PARTIALS; }\n")
    functions = library(
        _source(tmp_path, read), {"read": (ctypes.c_uint64, [ctypes.POINTER(ctypes.c_uint64)])},
        include=HEADERS, generated={"formats.h": header_text()})
    bit, _ = field_bits(LookupRecord)["table"]
    record = ctypes.c_uint64(0xABC << bit | 0x123)
    assert functions.read(record) == 0xABC << 8 | Opcode.PARTIALS
    for code in Opcode:
        assert re.search(rf"\b{code.name} = {code.value};", header_text())


def test_a_structure_that_lies_otherwise_does_not_compile(tmp_path):
    text = header_text().replace("struct HostConfig {\n    uint64_t node;",
                                 "struct HostConfig {\n    uint32_t node;")
    assert text != header_text()
    with pytest.raises(BuildError, match="static"):
        library(_source(tmp_path), {}, include=HEADERS, generated={"formats.h": text})


def test_a_definition_checks_every_offset():
    class Pair(Shared):
        _fields_ = (*fields(ctypes.c_uint32, "first"), *fields(ctypes.c_double, "second"))

    text = definition(Pair)
    assert "uint32_t first;" in text and "offsetof(Pair, second) == 8" in text
    assert "sizeof(Pair) == 16" in text
    assert len(HostConfig._fields_) == definition(HostConfig).count("offsetof(HostConfig, ")
