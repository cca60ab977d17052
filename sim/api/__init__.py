"""Python API: the commands of ``python -m sim`` as functions that return plain dictionaries.

=====================  =============================================================
function               command
=====================  =============================================================
:func:`run`            ``sim run``: samples through a cluster, every result checked
:func:`train`          ``sim train``: a DLRM trained on a cluster
:func:`bench`          ``sim bench``: the rates, latencies and resources of the design
:func:`hitrate`        ``sim hitrate``: hit rate of the local cache against its size
:func:`batching`       ``sim batching``: keys saved by each batching algorithm
:func:`plan`           ``sim plan``: requirements of a model, and the bottleneck
:func:`describe`       ``sim datasets describe``: contents of a data set
:func:`compare`        ``sim compare``: all systems on one model, cluster and data
:func:`reproduce`      ``sim reproduce``: the page of results; the paper's figures and claims
:func:`serve`          ``sim serve``: latency under load, and load within a p99
:func:`faults`         ``sim faults``: the fault suite of the reliable link
:func:`torch`          ``sim torch``: a PyTorch script with its embedding bags on NICs
:func:`attach`         a context in which the embedding bags of a program are on NICs
:func:`frame`          rows of any of these results as a pandas ``DataFrame``
=====================  =============================================================

Keyword arguments have the names of the command-line options; None selects the default. Options
that may be repeated or listed (``set``, ``policy``, ``only``, ``figures``, ``qps``, ``slo``,
``system``, ``sizes``) are sequences, not strings. A function returns the dictionary that its
command writes with ``--json``, and does not write to standard output. Paths may be any
``os.PathLike``; ``data`` may be several paths.

``ValueError``: invalid argument, with the message of the command; :class:`host.errors.InputError`
for an invalid input file. ``TypeError``: unknown argument, or a value of the wrong type.
``OSError``: a file cannot be written. :class:`sim.engines.BuildError`: a NIC cannot be compiled.
:class:`embernic_extras.ExtraError`, an ``ImportError``: an extra is not installed.

Each function checks all its output files before it opens any.
"""

from sim.api.evaluation import compare, reproduce, serve
from sim.api.nics import bench, faults, run, train
from sim.api.offline import batching, describe, hitrate, plan
from sim.api.program import attach, torch
from sim.frame import frame

__all__ = [
    "attach", "batching", "bench", "compare", "describe", "faults", "frame", "hitrate", "plan",
    "reproduce", "run", "serve", "torch", "train",
]
