"""The budget of a tier of tests, as a multiple of the time of ``python -m gen --config tiny``.

::

    python -m tests.budget out/test.csv

reads the costs that ``pytest --costs`` wrote. It exits with status 1 and one line if the tests
exceed the budget.
"""

import argparse
import csv
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.costs import cpu_seconds

__all__ = ["BUDGETS", "main"]

BUDGETS = {"test": 110, "test-all": 440}
"""Most CPU seconds of the tests of each tier, as a multiple of the CPU seconds of generating preset
``tiny``. The cache may be empty: half of the time of ``test-all`` then builds NICs and proves
blocks."""


def yardstick() -> float:
    """Return the CPU seconds of generating preset ``tiny``, with an empty cache."""
    began = cpu_seconds()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "gen", "--config", "tiny", "--output", folder],
                       check=True, stdout=subprocess.DEVNULL)
    return cpu_seconds() - began


def main(path: Path) -> int:
    """Compare the costs in a file, named after its tier, with the tier's budget."""
    with path.open(newline="", encoding="utf-8") as file:
        spent = sum(float(row["cpu_seconds"]) for row in csv.DictReader(file))
    unit = yardstick()
    most = BUDGETS[path.stem] * unit
    print(f"{path}: {spent:,.0f} CPU seconds, {spent / unit:.0f} times those of `python -m gen "
          f"--config tiny` ({unit:.1f}), at most {BUDGETS[path.stem]} times", file=sys.stderr)
    return int(spent > most)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("costs", type=Path, help="written by pytest --costs, named after a tier")
    sys.exit(main(parser.parse_args().costs))
