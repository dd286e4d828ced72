"""What every other room stands on: checked arguments, files and the store, provenance, worker processes, words in
messages.

In go arrays, tables and paths; out come checked arrays, kept results and lines of text. Knows nothing of networks.
"""
