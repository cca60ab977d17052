"""Pages of results: one HTML file with sortable tables and charts, and a PNG of each chart.

:mod:`sim.page.chart` describes charts, :mod:`sim.page.content` pages. :func:`sim.page.html.render`
returns a page as HTML; Plotly draws its charts. :func:`sim.page.png.write_png` draws a chart as a
PNG with Matplotlib.
"""
