"""What is done to networks, and what becomes of their communities and their performance.

In go designs, lists of trials: networks with a condition, such as another activation function, or a dose, such as the
strength of a penalty. Out come tables with one row per network, or per
state of one that is looked at, and the effects that are read off them.
"""
