"""Faults of a code converter, each with the test that finds it."""

from rtl.float.code_lane import CodeLane
from rtl.float.code_pair import CodePair
from tests.mutants import Mutant

__all__ = ["CODE_MUTANTS"]

_HAND = "float/test_code.py::test_by_hand"
_EDGES = "float/test_code.py::test_edges_of_exponent_significand_and_code[0]"
_RANDOM = "float/test_code.py::test_random_operands[0]"

CODE_MUTANTS = [
    # Distances that wrap, and exponents of subnormals.
    Mutant(CodePair, "right2[:6] | right2[6:9].any().replicate(6)", "right2[:6]", _EDGES),
    Mutant(CodePair, "left2[:5] | left2[5:9].any().replicate(5)", "left2[:5]", _EDGES),
    Mutant(CodePair, "scale1.eq(scale[23:31] | ~some_scale)", "scale1.eq(scale[23:31])", _EDGES),
    Mutant(CodePair, "bias1.eq(bias[23:31] | ~some_bias)", "bias1.eq(bias[23:31])", _EDGES),
    # Special operands.
    Mutant(CodePair, "Mux(bias_infinite, 0, fraction1)", "fraction1", _HAND),
    Mutant(CodePair, "(scale_top & bias_top & (scale[31] ^ bias[31]))", "0", _HAND),
    Mutant(CodeLane, "pair.nan | (zero & pair.invalid)", "pair.nan", _HAND),
    Mutant(CodeLane, "Mux(zero, pair.kept, Cat(normal[2:-1], exponent7[:8]))",
           "Cat(normal[2:-1], exponent7[:8])", _EDGES),
    # Sticky bits, and the places that rounding needs.
    Mutant(CodePair, "| value[:places].any()", "| 0", _RANDOM),
    Mutant(CodeLane, "| product[:point + 8 * places].any()", "| 0", _HAND),
    Mutant(CodeLane, "normal[0] | rest7", "normal[0]", _RANDOM),
    Mutant(CodeLane, "normal[0] | rest7", "rest7", _RANDOM),
    Mutant(CodeLane, "guard & (rest | odd)", "guard", _HAND),
    Mutant(CodeLane, "hidden & ~zero", "hidden", _EDGES),
    # Differences: the complement, the carry, the sign of 0.
    Mutant(CodeLane, "+ (subtract4 & more)", "+ 0", _HAND),
    Mutant(CodeLane, "more & ~subtract4", "more", _HAND),
    Mutant(CodeLane, "sign5 & ~(subtract5 & zero_sum)", "sign5", _HAND),
    Mutant(CodeLane, "m.If(none)", "m.If(0)", _HAND),
    # The end of a left shift, and overflow.
    Mutant(CodePair, "exponent7[3:] == group", "exponent7[3:6] == group", _RANDOM),
    Mutant(CodePair, "exponent8[:3] == FINE - 1 - bit", "exponent8[:3] == FINE - 2 - bit", _EDGES),
    Mutant(CodeLane, "groups[place].any() | pair.limit[place]", "groups[place].any()", _EDGES),
    Mutant(CodeLane, "pair.place & ends.replicate(FINE)", "pair.place", _RANDOM),
    Mutant(CodeLane, "exponent7[8] | exponent7[1:8].all()", "exponent7[1:8].all()", _RANDOM),
]
