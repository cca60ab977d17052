"""Static timing analysis of the netlists that Yosys maps for UltraScale+.

:func:`gen.timing.analysis.timed_design` joins the netlists of a design to a graph, and
:func:`gen.timing.propagate.arrivals` computes arrival times for an assumption about nets (a case).
:mod:`gen.timing.paths`, :mod:`gen.timing.loops` and :mod:`gen.timing.loads` analyse the result, and
:func:`gen.timing.report.report_timing` writes the report.
"""
