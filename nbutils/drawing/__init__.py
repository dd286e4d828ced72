"""How numbers become what a page shows: the book's style, its colours, figures for desk and phone, tables, boxes.

In go tables and figures of matplotlib; out come pieces of HTML that notebooks display. Knows nothing of networks.
"""
