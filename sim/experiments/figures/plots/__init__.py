"""Figures made of points: their entries, metrics and drawing."""
