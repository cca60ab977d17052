"""Bench: measures figures of the design against their targets (``python -m sim bench``).

Figures are cycle counts and shares, which are equal on every machine. The speed of the simulation
is a ratio of times within a run. A missed target is no error; only wrong results are.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from host.reading import read_regular
from sim.bench.bags import bag_jobs
from sim.bench.blocks import block_jobs
from sim.bench.delivery import delivery_jobs
from sim.bench.dots import dot_jobs
from sim.bench.gradients import gradient_jobs
from sim.bench.interaction import interaction_job
from sim.bench.latency import latency_jobs
from sim.bench.nic import nic_jobs
from sim.bench.resources import resource_jobs
from sim.bench.rows import SECTIONS, Job, Progress
from sim.bench.unique import unique_jobs
from sim.files.identity import sources_hash
from sim.files.locks import locked
from sim.files.outputs import MOST_RESULTS, LiveJson, write_json
from sim.files.stop import note_kept_results

__all__ = ["NOT_BUILT", "SCHEMA", "BenchProgress", "bench"]

SCHEMA = "embernic/bench/1"

NOT_BUILT: dict[str, str] = {"HBM store": "caches are on chip only"}
"""Parts of the design without a block, by name, with a remark."""


def _speed(progress: Progress) -> Sequence[dict]:
    from sim.bench.speed import (
        speed_rows,  # loads the whole cluster, which other sections do not need
    )

    return speed_rows(progress)


def _twins() -> list[Job]:
    from sim.bench.twins import twin_jobs  # loads the whole cluster, too

    return twin_jobs()


def _bytes() -> list[Job]:
    from sim.bench.network_bytes import bytes_jobs  # loads the whole cluster, too

    return bytes_jobs()


_SPEED = Job("speed", "speed of the cluster simulation", _speed)

BenchProgress = Callable[[int, int, str], None]
"""Called with the jobs done, the number of jobs, and a line on the current one."""


def bench(only: Sequence[str] = (), json_path: str | None = None,
          progress: BenchProgress = lambda done, total, line: None,
          finished: Callable[[dict], None] = lambda row: None) -> dict:
    """Measure and return ``schema``, ``complete``, ``rows`` and ``not_built``.

    Parameters
    ----------
    only: names from :data:`sim.bench.rows.SECTIONS`; empty means all.
    json_path: file for the rows, written after each job; the same call resumes an interrupted one.
        ``-`` is standard output, written at the end.
    progress: called periodically.
    finished: called with each row, also with rows that are read from the file.

    A row has ``name``, ``value``, ``unit``, ``target`` (or None), ``sense`` (``>=`` or ``<=``),
    ``holds``, ``note``, ``bound`` (largest value that the bottleneck allows) and ``section``; a
    latency has ``block``, ``from``, ``to`` and ``stated`` (by the block's ``LATENCY``) in place of
    sense, note and bound.

    Raises
    ------
    ValueError
        ``only`` contains an unknown section, or the file contains unfinished rows of another
        request.
    """
    jobs = _jobs(only)
    head = {"schema": SCHEMA, "complete": False, "request": {
        "only": sorted({job.section for job in jobs}), "sources": sources_hash()}}
    live = LiveJson(json_path)
    with locked({"json": json_path}), note_kept_results(live, json_path):
        rows = _finished_rows(json_path, head)
        for row in rows:
            finished(row)
        done = {row["job"] for row in rows}
        for number, job in enumerate(jobs):
            if job.name in done:
                continue

            def tell(line: str, number: int = number, job: Job = job) -> None:
                progress(number, len(jobs), f"{job.name}: {line}")

            progress(number, len(jobs), job.name)
            found = [row if isinstance(row, dict) else row.as_dict() for row in job.measure(tell)]
            for place, row in enumerate(found):
                row |= {"section": job.section, "job": job.name,
                        "job_done": place == len(found) - 1}
            rows += found
            live.write(head | {"rows": rows})
            for row in found:
                finished(row)
        progress(len(jobs), len(jobs), "done")
        result = head | {"complete": True, "not_built": NOT_BUILT, "rows": rows}
        write_json(result, json_path)
        return result


def _finished_rows(path: str | None, head: dict) -> list[dict]:
    """Return the rows of an unfinished file of the same request.

    ``ValueError`` for an unfinished file of another request, or of other sources, and a file too
    large to read.
    """
    if path in (None, "-") or not Path(path).is_file():
        return []
    text = read_regular(path, MOST_RESULTS)
    try:
        found = json.loads(text)
        if found["complete"] is not False or not all(row["job"] for row in found["rows"]):
            return []
        rows = found.pop("rows")
    except (ValueError, TypeError, KeyError, RecursionError):
        return []
    if found != head:
        raise ValueError(f"json {path} holds unfinished results of another request or of other "
                         f"sources of EmberNIC: name another file, or delete it")
    return rows


def _jobs(only: Sequence[str]) -> list[Job]:
    for name in only:
        if name not in SECTIONS:
            raise ValueError(f"only must be of {', '.join(SECTIONS)}, not {name!r}")
    every = [*block_jobs(), *bag_jobs(), *unique_jobs(), *delivery_jobs(), *gradient_jobs(),
             *dot_jobs(), *latency_jobs(), *nic_jobs(), interaction_job(), *_bytes(), _SPEED,
             *_twins(), *resource_jobs()]
    return [job for job in every if not only or job.section in only]
