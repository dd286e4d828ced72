"""What a measure of networks is worth: how reliable it is, what it is associated with, and what it adds to others.

In go one value per network or per run and epoch; out come estimates with intervals, and one of five words.
"""
