"""Figures made of points: what they measure, which metrics they show, how they are drawn."""
