"""Static timing analysis of the netlists that Yosys maps for UltraScale+.

:func:`gen.timing.analysis.timed_design` joins the netlists of a design to one graph and orders it,
and :func:`gen.timing.propagate.arrivals` computes what arrives where in one case of nets.
:mod:`gen.timing.paths`, :mod:`gen.timing.loops` and :mod:`gen.timing.loads` answer questions about
the result, and :func:`gen.timing.report.report_timing` writes the answers down.
"""
