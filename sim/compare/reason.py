"""The sentence that names the factor that decides between systems."""

from collections.abc import Sequence

from sim.evaluation.compared import Counts

__all__ = ["reason_of"]

_MANY_ROWS = 1.1
"""Distinct foreign rows per foreign bag above which keys per bag decide."""


def reason_of(rows: Sequence[dict], counts: Counts) -> str:
    """Return the sentence that names the deciding factor.

    rows: systems of a comparison, fastest first. counts: of its workload.
    """
    built = [row for row in rows if row["why"] is None]
    if not built:
        return "No system can be built."
    first = built[0]
    if len(built) == 1:
        return f"{first['system']} is the only system; its bottleneck is {first['bottleneck']}."
    second = built[1]
    ratio = second["interval_us"] / first["interval_us"]
    lead = (f"{first['system']} is {ratio:.2f} times as fast as {second['system']}, whose "
            f"bottleneck is {second['bottleneck']}")
    if ratio < 1.01:
        return (f"{first['system']} and {second['system']} are equally fast within 1 %; the "
                f"bottleneck of {first['system']} is {first['bottleneck']}.")
    size, other = (row["network_bytes_per_sample"] for row in (first, second))
    if not size:
        return f"{lead}: every node of {first['system']} has a copy of all tables it needs."
    # With tables that pool at their owner, NICs send vectors of bags as GPUs do.
    pooled = any(table["pool"] == "owner" for row in (first, second)
                 for table in row.get("tables") or ())
    sent = (f"{second['system']} sends {other / size:.2f} times as many bytes" if pooled else
            f"a share has {counts.rows_per_bag:.2f} distinct foreign rows per foreign bag")
    fixed = f"{lead}: the size of a mini-batch decides, because fixed costs exceed bytes."
    if second["bottleneck"] == "cpu":  # the host calls as often for fewer bytes
        return fixed
    if size < 0.9 * other:
        why = "keys per bag" if counts.rows_per_bag > _MANY_ROWS and not pooled else "bytes"
        return f"{lead}: {why} decide, because {sent}."
    if second["bottleneck"] in ("gpu", "nccl"):
        return fixed
    return f"{lead}; {sent}."
