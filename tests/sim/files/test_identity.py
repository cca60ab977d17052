"""Identity of the code that makes a result, and the description of differences."""

import pickle

import pytest

from sim.files import identity as module
from sim.files.identity import OtherCode, check_code, difference, identity, sources_hash


@pytest.fixture
def own_rtl(tmp_path, monkeypatch):
    """Provide sources of ``rtl`` that a test may change, without cached hashes."""
    monkeypatch.setattr(module.rtl, "__path__", [str(tmp_path)])
    for name in ("_paths", "_sources", "sources_hash"):
        monkeypatch.setattr(module, name, getattr(module, name).__wrapped__)
    return tmp_path


def test_the_hash_covers_every_source_that_results_depend_on(own_rtl):
    def after(name: str, text: str) -> str:
        (own_rtl / name).parent.mkdir(exist_ok=True)
        (own_rtl / name).write_text(text)
        return module.sources_hash()

    before = after("sub/block.py", "a = 1")
    assert after("README.md", "new") == before == after("block.pyc", "new")
    changed = [after(name, "new") for name in (
        "sub/block.py", "ram.v", "random.vh", "sub/profile.toml", "engine.cpp", "kernel.cu",
        "readings.csv", "loops.c", "loops.h")]
    assert len({before, *changed}) == 10
    only = module.sources_hash(only=("rtl/",))
    after("loops.h", "newer")
    assert module.sources_hash(only=("rtl/",)) != only
    assert module.sources_hash(only=("gen/",)) not in (only, module.sources_hash())


def test_the_hash_covers_versions(monkeypatch):
    before = sources_hash()
    versions = module.versions()
    monkeypatch.setattr(module, "sources_hash", module.sources_hash.__wrapped__)
    for name in versions:
        monkeypatch.setattr(module, "versions", lambda: versions | {name: "0"})
        assert module.sources_hash() != before


def test_other_code_is_told_in_one_line():
    check_code(sources_hash(), "worker a")
    with pytest.raises(OtherCode) as error:
        check_code("0" * 32, "worker a")
    told = str(pickle.loads(pickle.dumps(error.value)))
    assert told.startswith("worker a must run the code of this process, but ")
    own = identity()
    assert difference(own | {"numpy": "1.0"}) == f"its numpy is 1.0, not {own['numpy']}"
    assert difference(own | {"sim/frame.py": "0"}) == "its sim/frame.py differs"
    assert difference(own | {"sim/new.py": "0"}) == (
        "it has sim/new.py, which this process lacks")
    del own["rtl/nic.py"]
    assert difference(own) == "it lacks rtl/nic.py"
    assert difference(own | {"numpy": "1.0"}).endswith(" (and 1 more file or version)")
    assert difference(own | {"numpy": "1.0", "scipy": "1.0"}).endswith(
        " (and 2 more files or versions)")
