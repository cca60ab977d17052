"""Netlists of public designs, mapped by Yosys as a NIC's units are (:mod:`gen.netlist.netlists`).

Yosys infers memories from the design's own Verilog: there are no black boxes.
"""

from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

from embernic_extras import installation
from gen.base.tools import BuildError
from gen.netlist.netlists import Netlist, synthesise
from tests.gen.timing.public.designs import Design, Package

__all__ = ["SourceError", "licence_text", "map_design", "source_files"]


class SourceError(BuildError):
    """The Verilog of a design is not installed, or is not the version of the figures."""


def source_files(design: Design) -> list[Path]:
    """Return the Verilog files of ``design``; ``SourceError`` if they are not available."""
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
    """Return the licence in the package of ``design``; ``SourceError`` if there is no licence."""
    package = _package(design)
    found = distribution(package.name)
    text = found.read_text(package.licence_file) or found.read_text(
        f"licenses/{package.licence_file}")
    if not text:
        raise SourceError(f"design {design.name!r}: {package.name} has no {package.licence_file}")
    return text


def map_design(design: Design) -> Netlist:
    """Return the netlist of ``design``, cached by its source.

    ``SourceError`` if the source is not installed, ``YosysError`` if it cannot be mapped.
    """
    source = "\n".join(file.read_text(encoding="utf-8") for file in source_files(design))
    return synthesise(design.top, source, design.parameters)


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
            f"{installation('timing-checks')}")
