"""Comparison of the NICs' pooled vectors with PyTorch's."""

from dataclasses import dataclass, field

import numpy as np

from sim.torch.lookups.bags import Bags

__all__ = ["Comparison", "apart", "same", "ulps"]


def same(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """Return where two float32 arrays have equal bits or are both NaN: bool."""
    return (ours.view(np.uint32) == theirs.view(np.uint32)) | (np.isnan(ours) & np.isnan(theirs))


def ulps(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """Return the distance of each two values in units in the last place: int64.

    The distance of +0 and -0 is 0, and so is that of two NaN. If exactly one value is NaN, the
    distance is 2^32.
    """
    def place(values: np.ndarray) -> np.ndarray:
        bits = np.ascontiguousarray(values, np.float32).view(np.int32).astype(np.int64)
        return np.where(bits < 0, -(bits & 0x7FFFFFFF), bits)

    nans = np.isnan(ours), np.isnan(theirs)
    apart = np.abs(place(ours) - place(theirs))
    return np.where(nans[0] | nans[1], np.where(nans[0] & nans[1], 0, 1 << 32), apart)


def apart(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Return the largest difference of two values in rows ``[n, d]``, relative to the row.

    The unit is the largest finite value of the row. Values that are not finite are ignored.
    """
    finite = np.isfinite(ours) & np.isfinite(theirs)
    with np.errstate(all="ignore"):
        shares = np.abs(ours.astype(np.float64) - theirs).max(axis=1, initial=0, where=finite) / (
            np.abs(theirs).max(axis=1, initial=0, where=finite))
    return float(np.nanmax(shares, initial=0.0))


@dataclass
class Comparison:
    """Counts over bags, each ``[bags of one key, other bags]``.

    bags: number of bags.
    equal: bags with equal vectors.
    ulp: largest difference of a value, in units in the last place.
    most: largest difference of a value, relative to the largest value of its vector.
    """

    bags: list[int] = field(default_factory=lambda: [0, 0])
    equal: list[int] = field(default_factory=lambda: [0, 0])
    ulp: list[int] = field(default_factory=lambda: [0, 0])
    most: float = 0.0

    def add(self, ours: np.ndarray, theirs: np.ndarray, bags: Bags) -> None:
        """Compare the pooled vectors, float32 ``[n, d]``, of bags."""
        if bags.single and np.array_equal(ours.view(np.uint32), theirs.view(np.uint32)):
            self.bags[0] += len(bags)
            self.equal[0] += len(bags)
            return
        one = bags.lengths == 1
        count = int(one.sum())
        equal = same(ours, theirs).all(axis=1)
        for kind, (mine, found) in enumerate(((one, count), (~one, len(one) - count))):
            self.bags[kind] += found
            self.equal[kind] += int((mine & equal).sum())
        if equal.all():
            return
        away = ulps(ours[~equal], theirs[~equal]).max(axis=1, initial=0)
        for kind, mine in enumerate((one[~equal], ~one[~equal])):
            self.ulp[kind] = max(self.ulp[kind], int(away[mine].max(initial=0)))
        self.most = max(self.most, apart(ours[~equal], theirs[~equal]))

    def with_(self, other: "Comparison") -> "Comparison":
        """Return the sum of two comparisons."""
        found = Comparison()
        for name in ("bags", "equal"):
            setattr(found, name, list(map(sum, zip(getattr(self, name), getattr(other, name)))))
        found.ulp = list(map(max, zip(self.ulp, other.ulp)))
        found.most = max(self.most, other.most)
        return found

    def to_json(self) -> dict:
        """Return the counts as plain values."""
        return {"one_key": self._of(0), "others": self._of(1) | {"most_difference": self.most}}

    def _of(self, kind: int) -> dict:
        return {"bags": self.bags[kind], "equal": self.equal[kind], "most_ulp": self.ulp[kind]}
