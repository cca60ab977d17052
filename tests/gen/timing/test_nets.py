import pytest

from gen.timing.nets import CASES, dedicated


def test_three_cases():
    loads = [1, 4, 100]
    assert {case.name: case.delay(loads).tolist() for case in CASES} == {
        "optimistic": [150, 150, 150], "middle": [370, 390, 550], "pessimistic": [640, 680, 1000]}


@pytest.mark.parametrize("ends, ps", [
    (("lut", "O", "ff", "D"), 50), (("carry", "O", "ff", "D"), 25), (("carry", "CO", "ff", "D"), 0),
    (("mux", "O", "ff", "D"), 32), (("lut", "O", "carry", "S"), 0), (("lut", "O", "mux", "I1"), 0),
    (("mux", "O", "mux", "I0"), 0)])
def test_the_slice_holds_a_cell_and_its_only_load(ends, ps):
    assert dedicated(*ends, 1) == ps
    assert dedicated(*ends, 2) is None


@pytest.mark.parametrize("ends", [
    ("carry", "CO", "carry", "CI"), ("bram", "CASDOUTA", "bram", "CASDINA"),
    ("bram", "CASDOUTPB", "bram", "CASDINPB"),
    ("uram", "CAS_OUT_DOUT_A", "uram", "CAS_IN_DOUT_A"), ("dsp", "PCOUT", "dsp", "PCIN"),
    ("dsp", "ACOUT", "dsp", "ACIN"), ("buffer", "O", "ff", "D")])
def test_cascades_are_wires_whatever_they_load(ends):
    assert dedicated(*ends, 1) == dedicated(*ends, 3) == 0


@pytest.mark.parametrize("ends", [
    ("lut", "O", "ff", "CE"), ("lut", "O", "lut", "I0"), ("lut", "O", "mux", "S"),
    ("ff", "Q", "ff", "D"), ("lut", "O", "carry", "DI"), ("carry", "O", "carry", "CI"),
    ("carry", "CO", "carry", "CYINIT"), ("dsp", "P", "dsp", "C"), ("dsp", "PCOUT", "dsp", "C"),
    ("bram", "CASDOUTA", "bram", "CASDINB"), ("uram", "CAS_OUT_DOUT_A", "uram", "CAS_IN_DIN_A")])
def test_all_else_takes_the_fabric(ends):
    assert dedicated(*ends, 1) is None
