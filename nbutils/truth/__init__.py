"""Ground truth: networks of which one knows what their communities, or their units, should be.

In go tasks made with the truth beside them: images side by side with labels that depend on one, both or neither, and
pictures, lines and sounds in which known motifs lie at known places. Out come tables of how well communities, and
sparse units, match it, and from them how often a definition of a community finds what is there, and what is not.
"""
