"""Berkeley SoftFloat as an oracle, one operation at a time."""

import numpy as np
import softfloatpy

from tests.rtl.float.cases import NAN

__all__ = ["softfloat"]


def softfloat(operation: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return ``f32_<operation>`` of the bits ``a`` and ``b``, every NaN as 0x7FC00000."""
    compute = getattr(softfloatpy, f"f32_{operation}")
    results = []
    for x, y in zip(a.tolist(), b.tolist()):
        result = compute(softfloatpy.Float32.from_bytes(x.to_bytes(4, "big")),
                         softfloatpy.Float32.from_bytes(y.to_bytes(4, "big")))
        results.append(NAN if softfloatpy.f32_is_nan(result)
                       else int.from_bytes(result.to_bytes(), "big"))
    return np.array(results, dtype=np.uint32)
