"""docs/driver.md: its code runs, and its link leads to every code that a driver reads or writes."""

import re

from host.wire.indices import MOST_INDICES
from rtl.formats import DescriptorKind, Opcode, RecordKind, ReductionLevel, Status, StepKind
from rtl.rings.step_table import MOST_SAMPLES
from tests.pages import DOCS, run_page

PAGE = (DOCS / "driver.md").read_text(encoding="utf-8")
WIRE = (DOCS / "kaggle/wire-format.md").read_text(encoding="utf-8")


def test_the_page_is_true():
    assert run_page("driver.md") == 1


def test_the_linked_page_has_every_code():
    assert "(kaggle/wire-format.md#codes)" in PAGE
    codes = WIRE.partition("## Codes")[2]
    assert re.findall(r"^\| (\d+) \| (\w+) \|", codes, re.MULTILINE) == [
        (str(int(code)), code.name)
        for kind in (RecordKind, Status, StepKind, ReductionLevel, DescriptorKind) for code in kind]


def test_the_tasks_have_every_opcode_of_the_host():
    assert "(kaggle/wire-format.md#tasks-of-the-host)" in PAGE
    tasks = WIRE.partition("## Tasks of the host")[2].partition("\n## ")[0]
    named = set(re.findall(r"\b[A-Z]+(?:_[A-Z]+)*\b", tasks))
    training = {"SPILLED", "ROW_UPDATES", "STATE_REQUESTS", "STATE_UPDATES", "STEP_REPORTS"}
    assert named >= {code.name for code in Opcode if code >= Opcode.QUERIES} - training


def test_the_bounds_are_true():
    assert f"{MOST_INDICES:,}" in WIRE and f"2^{MOST_SAMPLES.bit_length() - 1}" in WIRE
