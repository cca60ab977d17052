"""Public designs are mapped from the packages that contain them."""

from collections import Counter
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version

import pytest

from tests.gen.timing.public.designs import read_designs
from tests.gen.timing.public.mapping import SourceError, licence_text, map_design, source_files
from tests.optional import absent

DESIGNS = {design.name: design for design in read_designs()}
PACKAGED = [design for design in DESIGNS.values() if design.package]


def _needs(design):
    try:
        version(design.package.name)
    except PackageNotFoundError:
        pytest.skip(absent(design.package.module))


@pytest.mark.parametrize("design", PACKAGED, ids=lambda design: design.name)
def test_the_source_and_its_licence_are_found(design):
    _needs(design)
    assert any(f"module {design.top}" in file.read_text() for file in source_files(design))
    title = {"ISC": "ISC License", "MIT": "MIT License"}[design.licence]
    assert licence_text(design).lstrip().startswith(title)


def test_picorv32_is_mapped_whole():
    design = DESIGNS["picorv32"]
    _needs(design)
    netlist = map_design(design)
    assert set(design.clocks) <= netlist["ports"].keys()
    # The harness of the figures: its ports, and four registers or a shift register on each.
    assert {"io_resetn", "io_mem_axi_rdata", "io_eoi"} < netlist["ports"].keys()
    kinds = Counter(cell["type"] for cell in netlist["cells"].values())
    # 32 registers of 32 bits with two read ports, 14 bits per cell: distributed RAM, no black box.
    assert kinds["RAM32M16"] == 6
    # The README counts 583 registers without the harness; each of its 21 ports has at least one.
    assert kinds["FDRE"] + kinds["FDSE"] > 583
    assert 500 < sum(count for kind, count in kinds.items() if kind.startswith("LUT")) < 2500


def test_a_source_that_is_not_there_is_named():
    without = next(design for design in DESIGNS.values() if design.package is None)
    with pytest.raises(SourceError, match="its source is in no package; it is in"):
        map_design(without)
    package = DESIGNS["picorv32"].package
    gone = replace(DESIGNS["picorv32"], package=replace(package, name="no-such-package"))
    with pytest.raises(SourceError, match=r"no-such-package .* is not installed; install"):
        source_files(gone)


def test_another_version_or_file_is_named():
    design = DESIGNS["picorv32"]
    _needs(design)
    other = replace(design, package=replace(design.package, version="0.1"))
    with pytest.raises(SourceError, match=f"0.1 is installed as {design.package.version}"):
        source_files(other)
    other = replace(design, package=replace(design.package, files=("no_file.v",)))
    with pytest.raises(SourceError, match=r"has no file no_file\.v"):
        source_files(other)
    other = replace(design, package=replace(design.package, licence_file="NO_LICENCE"))
    with pytest.raises(SourceError, match="has no NO_LICENCE"):
        licence_text(other)
