"""What the pages of the book show: each file helps the notebook that it is named after; the rest serves several.

In go tidy tables; out come figures, small tables and pages.
"""
