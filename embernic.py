"""Command ``embernic``: the command lines of the packages under one name."""

import runpy
import sys

__all__ = ["PROGRAMS", "SIMULATOR", "main"]

PROGRAMS = {
    "gen": ("gen", "write the Verilog of a NIC"),
    "documents": ("gen.documents", "write registers, wire format and timing of a NIC"),
    "calibrate": ("host.calibrate", "measure the operators of this machine"),
    "measurements": ("host.measurements", "read times from a trace of PyTorch"),
}
"""Commands with their own package: the package, and a summary."""

SIMULATOR = ("run", "train", "compare", "serve", "plan", "reproduce", "torch", "hitrate",
             "batching", "datasets", "faults", "bench")
"""Commands of ``python -m sim``."""


def main() -> None:
    """Run ``python -m PACKAGE`` for the command that the arguments begin with.

    The help imports no package.
    """
    given = sys.argv[1:]
    if not given or given[0] in ("--help", "-h"):
        print(_usage())
        sys.exit(0 if given else 2)
    command = given[0]
    if command not in (*PROGRAMS, *SIMULATOR):
        print(f"embernic: command must be one of {', '.join((*PROGRAMS, *SIMULATOR))}, "
              f"not {command[:60]!r}", file=sys.stderr)
        sys.exit(2)
    if command in PROGRAMS:
        package = PROGRAMS[command][0]
        del sys.argv[1]
    else:
        package = "sim"
    runpy.run_module(package, run_name="__main__", alter_sys=True)


def _usage() -> str:
    lines = [f"  {name:<14}{summary} (python -m {package})"
             for name, (package, summary) in PROGRAMS.items()]
    return "\n".join((
        "Usage: embernic COMMAND [ARGUMENTS]...", "", "Commands:", *lines, "",
        "Commands of the simulator (python -m sim):", f"  {', '.join(SIMULATOR)}", "",
        "embernic COMMAND --help shows the options of a command."))


if __name__ == "__main__":
    main()
