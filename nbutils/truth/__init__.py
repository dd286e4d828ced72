"""Planted modules: networks of which one knows what their communities should be.

In go images side by side, or letters in fonts, with labels that depend on one factor, both or neither. Out come how far
communities match the truth, and from that how often a definition of a community finds what is there, and what is not.
"""
