"""Netlists of public designs, mapped by Yosys as a NIC's units are (:mod:`gen.netlists`).

A memory is what Yosys infers from the design's own Verilog: there are no black boxes.
"""

import gzip
import json
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from gen.cache import cached, digest
from gen.timing.public.designs import Design, Package
from gen.tools import BuildError
from gen.yosys import run_yosys, yosys_id

__all__ = ["SourceError", "licence_text", "map_design", "source_files"]


class SourceError(BuildError):
    """The Verilog of a design is not installed, or is not the version of the figures."""


def source_files(design: Design) -> list[Path]:
    """Return the Verilog files of ``design``; ``SourceError`` if they are not to be had."""
    package = _package(design)
    found = find_spec(package.module)
    if found is None or found.origin is None:
        raise SourceError(_install(design, package, "is not installed"))
    folder = Path(found.origin).parent / package.folder
    files = [folder / name for name in package.files]
    for file in files:
        if not file.is_file():
            raise SourceError(f"design {design.name!r}: {package.name} has no file {file.name}")
    return files


def licence_text(design: Design) -> str:
    """Return the licence that the package of ``design`` carries; ``SourceError`` if none."""
    package = _package(design)
    found = distribution(package.name)
    text = found.read_text(package.licence_file) or found.read_text(
        f"licenses/{package.licence_file}")
    if not text:
        raise SourceError(f"design {design.name!r}: {package.name} has no {package.licence_file}")
    return text


def map_design(design: Design) -> dict[str, Any]:
    """Return the netlist of ``design`` as Yosys writes it: ``ports``, ``cells``, ``netnames``.

    It is cached by the sources. ``SourceError`` if they are not installed, ``YosysError`` if they
    cannot be mapped.
    """
    sources = {f"{index}.v": file.read_text(encoding="utf-8")
               for index, file in enumerate(source_files(design))}
    parameters = "".join(f" -set {key} {value}" for key, value in design.parameters.items())
    script = "\n".join([
        f"read_verilog -sv {' '.join(sources)}",
        *([f"chparam{parameters} {design.top}"] if parameters else []),
        f"synth_xilinx -family xcup -abc9 -noiopad -noclkbuf -flatten -top {design.top}",
        f"select {design.top}", "write_json -selected design.json"])

    def build(folder: Path) -> None:
        for name, text in sources.items():
            (folder / name).write_text(text, encoding="utf-8")
        run_yosys(script, cwd=folder)
        written = folder / "design.json"
        (folder / "design.json.gz").write_bytes(gzip.compress(written.read_bytes(), 1, mtime=0))
        written.unlink()

    entry = cached(f"public-{digest([yosys_id(), script, *sources.values()])}", build)
    modules = json.loads(gzip.decompress((entry / "design.json.gz").read_bytes()))["modules"]
    return modules[design.top]


def _package(design: Design) -> Package:
    package = design.package
    if package is None:
        raise SourceError(f"design {design.name!r}: its source is in no package; "
                          f"it is in {design.repository} at {design.commit[:7]}")
    try:
        version = distribution(package.name).version
    except PackageNotFoundError as error:
        raise SourceError(_install(design, package, "is not installed")) from error
    if version != package.version:
        raise SourceError(_install(design, package, f"is installed as {version}"))
    return package


def _install(design: Design, package: Package, problem: str) -> str:
    return (f"design {design.name!r}: {package.name} {package.version} {problem}; "
            "the extra 'timing-checks' has it")
