"""Tasks with known motifs, and networks whose sparse units should stand for them.

In go pictures, lines and sounds made with the place of every motif beside them. Out come networks with a layer of motif
channels, and how far the channels, and communities of them, match the truth.
"""
