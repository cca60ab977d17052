"""Every preset for every shell: reproducible, fast enough, clean, and two in one file list."""

from pathlib import Path

import pytest

from gen.shells import SHELLS
from gen.verilog.lint import lint
from rtl.config import PRESETS
from tests.gen.schemas import check_json, check_kernel_xml

EVERY = ["none", *SHELLS]
SOON = {("kaggle", "vitis")}
"""Preset and shell that ``make test-all`` generates twice; the other pairs are slow tests."""
SECONDS = 90
"""Most CPU seconds of a preset."""


def top_of(config: str, shell: str) -> str:
    return config if shell == "none" else f"{config}_{shell}"


def contents(folder: Path) -> dict[Path, bytes]:
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*")
            if path.is_file()}


@pytest.mark.thorough
@pytest.mark.parametrize("config, shell", [
    pytest.param(config, shell, marks=() if (config, shell) in SOON else pytest.mark.slow)
    for config in PRESETS for shell in EVERY])
def test_same_bytes_in_another_process(generated, config, shell):
    first = contents(generated(config, shell))
    top = top_of(config, shell)
    assert {Path(f"{top}.v"), Path(f"{top}.json")} <= first.keys()
    assert first == contents(generated(config, shell, again=True))
    check_json(first[Path(f"{top}.json")].decode(), "description")
    if shell == "vitis":
        check_kernel_xml(first[Path("kernel.xml")].decode())


@pytest.mark.thorough
@pytest.mark.parametrize("shell, others", [
    ("opennic", [("kaggle", "vitis")]),
    pytest.param("vitis", [("kaggle", "vitis"), ("tiny", "none")], marks=pytest.mark.slow)])
def test_more_nics_in_one_file_list(generated, shell, others):
    """Modules of other NICs do not replace modules of ``tiny``, and ``tiny`` alone is clean."""
    lint([generated(config, kind) / f"{top_of(config, kind)}.v"
          for config, kind in [("tiny", shell), *others]], top_of("tiny", shell))


@pytest.mark.slow
@pytest.mark.parametrize("shell", EVERY)
@pytest.mark.parametrize("config", PRESETS)
def test_clean_and_in_time(generated, config, shell):
    folder, top = generated(config, shell), top_of(config, shell)
    lint([folder / f"{top}.v"], top)
    assert float(Path(f"{folder}.seconds").read_text()) < SECONDS


@pytest.mark.slow
@pytest.mark.parametrize("shell", EVERY)
def test_all_presets_in_one_file_list(generated, shell, tmp_path):
    tops = [top_of(config, shell) for config in PRESETS]
    both = tmp_path / "all.v"
    both.write_text("module all; endmodule\n")
    lint([both, *(generated(config, shell) / f"{top}.v" for config, top in zip(PRESETS, tops))],
         "all")
