"""Data sets: where their images come from, and what is known of them.

In goes a name such as "mnist" or "folder:leaves"; out come pixels, labels, probe examples and a data sheet.
"""
