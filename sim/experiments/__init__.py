"""The evaluation: points, sweeps over them, figures, claims and the page."""
