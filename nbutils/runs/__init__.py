"""One network: built, trained and recorded.

In go data and parameters (:class:`nbutils.runs.spec.RunSpec`); out comes a :class:`nbutils.runs.run.Run`, kept in the
store.
"""
