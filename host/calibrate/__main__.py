"""Command line of the calibration: ``python -m host.calibrate cpu|gpu``."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from gen.base.command import run_command
from gen.base.numbers import integer, number
from host.bounds import check_value
from host.calibrate.cpu import cores, measure_cpu
from host.calibrate.gpu.device import Device, Sizes
from host.calibrate.gpu.find import default_name, described, find_device
from host.calibrate.gpu.plan import ITEMS, run, wanted
from host.calibrate.gpu.profiles import derive_profiles
from host.calibrate.reading import Book
from host.calibrate.stopwatch import Stopwatch
from host.calibrate.write import write_profile

__all__ = ["app", "main"]

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False,
                  help="Measure this machine and write its profiles.")


def _positive(help: str, read: Callable[[Any], float] = integer, *, least: float = 1,
              most: float | None = None) -> Any:
    """Return an option of a number in plain decimal, ``least`` to ``most``."""
    def parse(text: Any) -> float:
        try:
            check_value("it", value := read(text), least=least, most=most)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None
        return value

    return typer.Option(parser=parse, metavar=read.__name__.upper(), help=help)


Output = Annotated[Path, typer.Option(help="Folder to write the profiles to.")]
Repeats = Annotated[int, _positive("Measurements per value; the result is their median.")]


@app.command()
def cpu(output: Output = Path("."), name: Annotated[str, typer.Option(
        help="Name of the profile: cpu_NAME.")] = "this_machine",
        repeats: Repeats = 7, mebibytes: Annotated[int, _positive(
            "MiB of memory to read; must exceed the caches.")] = 256) -> None:
    """Measure the CPU with NumPy and write cpu_NAME.toml."""
    _folder(output)
    called = f"cpu_{_checked(name)}"
    console, load = Console(stderr=True), _load()
    with console.status("measuring the CPU"):
        profile = measure_cpu(called, Stopwatch(repeats), mebibytes)
    path = output / f"{profile.name}.toml"
    write_profile(path, profile, f"Measured by python -m host.calibrate cpu{load}.")
    print(path)


@app.command()
def gpu(output: Output = Path("."), name: Annotated[str | None, typer.Option(
        help="Name of the profiles: gpu_NAME etc. Default: the GPU's name.")] = None,
        device: Annotated[str, typer.Option(
            help="PyTorch device: cuda; cpu only tests the command.")] = "cuda",
        only: Annotated[str | None, typer.Option(
            help=f"Measure only these items, with commas between, and keep earlier readings of "
                 f"the others. Items: {', '.join(ITEMS)}.")] = None,
        repeats: Repeats = 7, scale: Annotated[float, _positive(
            "Scale of the large operators; use less than 1 if memory is short.", number, least=1e-6,
            most=1.0)] = 1.0,
        budget: Annotated[float, _positive(
            "Seconds after which no further reading starts.", number)] = 420.0) -> None:
    """Measure the GPU: gpu_, pcie_, software_eager_ and software_tuned_NAME.toml.

    gpu_NAME_readings.csv and .json contain every reading with its spread, and the missing readings
    with the reason.
    """
    names = wanted(only)
    torch = find_device(device)
    _folder(output)
    called = default_name(torch, device) if name is None else f"gpu_{_checked(name)}"
    stem = output / f"{called}_readings"
    bench = Device(torch, device, repeats, Sizes(scale))
    book = Book(described(bench))
    if only is not None:
        _resume(book, stem.with_name(f"{stem.name}.json"))
    load = _load()

    def progress(line: str) -> None:
        # A line per item: a live display would disturb the measurement.
        if line in ITEMS:
            print(f"host.calibrate: measuring {line}", file=sys.stderr)

    with torch.no_grad():
        run(bench, names, book, budget, lambda: book.write(stem), progress)
    found = derive_profiles(called, book)
    written = list(book.write(stem))
    for profile in found.all:
        written.append(output / f"{profile.name}.toml")
        write_profile(written[-1], profile,
                      f"Measured by python -m host.calibrate gpu{load}, PyTorch "
                      f"{torch.__version__}.")
    for what, reason in book.missing.items():
        print(f"host.calibrate: {what} is missing: {reason}", file=sys.stderr)
    for path in written:
        print(path)


def _resume(book: Book, path: Path) -> None:
    """Add the readings of an earlier run on the same machine from ``path``, if it exists."""
    if not path.exists():
        return
    earlier = Book.read(path)
    for what in ("gpu", "torch", "cuda", "scale"):
        if earlier.machine.get(what) != book.machine[what]:
            raise ValueError(f"only cannot add to {path}: {what} must be "
                             f"{earlier.machine.get(what)!r} as in that file, not "
                             f"{book.machine[what]!r}; use another --output or --name")
    book.readings.update(earlier.readings)
    book.missing.update(earlier.missing)


def _checked(name: str) -> str:
    if not name.replace("_", "a").isalnum() or not name.isascii():
        raise ValueError(f"name must consist of letters, digits and underscores, not {name!r}")
    return name


def _folder(output: Path) -> None:
    if not output.is_dir():
        raise ValueError(f"output must be an existing folder, not {str(output)!r}")


def _load() -> str:
    """Return the load of the machine as text, and warn if other work shares its cores."""
    try:
        load = os.getloadavg()[0]
    except (AttributeError, OSError):  # not available on this system
        return ""
    if load > 0.5 * cores():
        print(f"host.calibrate: the machine is busy (load {load:.1f} on {cores()} cores): times "
              f"will be too long; stop other work and measure again", file=sys.stderr)
    return f" at a load of {load:.1f}"


def main(arguments: list[str] | None = None) -> None:
    """Run a command; a user's error is one line on standard error and exit status 2."""
    sys.exit(run_command(app, arguments, "host.calibrate"))


if __name__ == "__main__":
    main()
