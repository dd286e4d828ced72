"""Any notebook over a grid of parameters.

In go a template and a grid; out come executed notebooks, one table of their measurements, and a report.
"""
