"""Public designs: the file is complete, and errors in it name field and value."""

import re
import tomllib

import pytest

from tests.gen.timing.public.designs import SHIPPED, read_designs

DESIGN = """
[[design]]
name = "adder"
what = "an adder"
repository = "someone/adder"
commit = "0123456789012345678901234567890123456789"
licence = "MIT"
top = "adder"
clocks = ["clk"]
parameters = { WIDTH = 8 }

[design.package]
name = "adder"
version = "1.0"
module = "adder"
folder = "rtl"
files = ["adder.v"]
licence_file = "LICENSE"

[[design.published]]
device = "xcvu3p-ffvc1517-2-e"
family = "UltraScale+"
speed_grade = -2
mhz = 500
kind = "maximum"
surroundings = "alone"
tool = "Vivado 2017.3"
where = "README.md"
"""


@pytest.fixture
def written(tmp_path):
    def write(text):
        path = tmp_path / "some.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_a_design_is_read_as_it_is_written(written):
    (design,) = read_designs(written(DESIGN))
    assert (design.name, design.top, design.clocks) == ("adder", "adder", ("clk",))
    assert design.parameters == {"WIDTH": 8}
    assert design.package.files == ("adder.v",)
    (published,) = design.published
    assert (published.speed_grade, published.mhz, published.kind) == (-2, 500.0, "maximum")


@pytest.mark.parametrize(("line", "wrong", "complaint"), [
    ('top = "adder"', "", "design 'adder': top is missing"),
    ('top = "adder"', "top = 3", "design 'adder': top must be a text, not 3"),
    ('top = "adder"', 'top = " "', "design 'adder': top must be a text, not ' '"),
    ('name = "adder"\nwhat', "what", "a design: name is missing"),
    ('top = "adder"', 'top = "adder"\nboard = "x"', "design 'adder': unknown field 'board'"),
    ('clocks = ["clk"]', 'clocks = "clk"',
     "design 'adder': clocks must be a list of texts, not 'clk'"),
    ('clocks = ["clk"]', "clocks = []", "design 'adder': clocks must be a list of texts, not []"),
    ("WIDTH = 8", "WIDTH = true", "design 'adder': parameters.WIDTH must be an integer, not True"),
    ("{ WIDTH = 8 }", "8", "design 'adder': parameters must be a table, not 8"),
    ('files = ["adder.v"]', "files = [1]",
     "design 'adder', package: files must be a list of texts, not [1]"),
    ("[design.package]", "recorded = [3, 2]\n[design.package]",
     "design 'adder': recorded must be three falling numbers above 0, not [3, 2]"),
    ("[design.package]", "recorded = [3, 4, 1]\n[design.package]",
     "design 'adder': recorded must be three falling numbers above 0, not [3, 4, 1]"),
    ("[design.package]", "recorded_on_vivados_netlist = 3\n[design.package]",
     "recorded_on_vivados_netlist must be three falling numbers above 0, not 3"),
    ('version = "1.0"', "", "design 'adder', package: version is missing"),
    ("speed_grade = -2", "speed_grade = -4",
     "design 'adder', published[0]: speed_grade must be one of -1, -2, -3, not -4"),
    ('family = "UltraScale+"', 'family = "7"',
     "design 'adder', published[0]: family must be one of UltraScale, UltraScale+, not '7'"),
    ('kind = "maximum"', 'kind = "best"',
     "published[0]: kind must be one of maximum, met, achieved, not 'best'"),
    ('surroundings = "alone"', 'surroundings = "few"',
     "published[0]: surroundings must be one of alone, full design, not 'few'"),
    ("mhz = 500", "mhz = 0", "published[0]: mhz must be a number between 0 and 2000, not 0"),
    ("mhz = 500", 'mhz = "500"', "mhz must be a number between 0 and 2000, not '500'"),
    ("mhz = 500", "mhz = nan", "mhz must be a number between 0 and 2000, not nan"),
    ("mhz = 500", "mhz = 2000", "mhz must be a number between 0 and 2000, not 2000"),
])
def test_what_is_wrong_is_named_with_its_value(written, line, wrong, complaint):
    assert line in DESIGN
    with pytest.raises(ValueError, match=r"^some\.toml: .*" + re.escape(complaint)):
        read_designs(written(DESIGN.replace(line, wrong)))


def test_names_differ_and_there_is_a_design(written):
    with pytest.raises(ValueError, match="name must differ between designs, not 'adder' twice"):
        read_designs(written(DESIGN + DESIGN))
    with pytest.raises(ValueError, match="the file: design is missing"):
        read_designs(written(""))
    without = DESIGN[:DESIGN.index("[[design.published]]")]
    with pytest.raises(ValueError, match="design 'adder': published is missing"):
        read_designs(written(without))


def test_a_file_that_is_no_toml_is_named_with_its_line(written):
    with pytest.raises(ValueError, match=r"some\.toml: .*line 1"):
        read_designs(written("[[design\n"))


def test_the_shipped_designs_are_complete():
    designs = {design.name: design for design in read_designs()}
    # PicoRV32 and at least six more.
    assert len(designs) >= 7
    for design in designs.values():
        assert re.fullmatch(r"[0-9a-f]{40}", design.commit), design.name
        assert re.fullmatch(r"[\w.-]+/[\w.-]+", design.repository), design.name
        for figure in design.published:
            # The part names its own speed grade.
            assert re.search(rf"{figure.speed_grade}L?(-|$)", figure.device), figure
    figures = {(row.device, row.mhz) for row in designs["picorv32"].published}
    assert ("xcvu3p-ffvc1517-2-e", 666.0) in figures and len(figures) == 8


def test_the_extra_names_the_packages_of_the_designs(pytestconfig):
    extras = tomllib.loads((pytestconfig.rootpath / "pyproject.toml").read_text(
        encoding="utf-8"))["project"]["optional-dependencies"]
    wanted = {f"{design.package.name}=={design.package.version}"
              for design in read_designs() if design.package}
    assert wanted and set(extras["timing-checks"]) == wanted
    assert SHIPPED.is_file()
