"""The order in which sources are compiled."""

from sim.engines import toolchain
from sim.engines.toolchain import compile_files


def test_the_costliest_unit_is_compiled_first(tmp_path, monkeypatch):
    """A unit costs as much as the files it includes, and less if it is not optimised."""
    def source(name, text):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    for name, size in (("a", 100), ("b", 200), ("c", 50_000), ("d", 60_000), ("e", 20_000)):
        source(f"part_{name}.cpp", "x" * size)
    sources = [
        source("unit0.cpp", '#include "part_a.cpp"\n#include "part_b.cpp"\n'),
        source("unit1.cpp", '#include "part_c.cpp"\n'),
        source("unit0__Slow.cpp", '#include "part_d.cpp"\n'),
        source("unit2.cpp", '#include "part_e.cpp"\n'),
        source("plain.cpp", "y" * 1000)]
    monkeypatch.setattr(toolchain, "run_tool", lambda command: "")
    compiled = compile_files(sources, tmp_path, (), ())
    assert [path.stem for path in compiled] == [
        "unit1", "unit0__Slow", "unit2", "plain", "unit0"]
