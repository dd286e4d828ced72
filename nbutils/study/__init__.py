"""Many networks: their measures, the tests fixed in advance, and the verdicts.

In go runs; out come tidy tables (:class:`nbutils.study.results.Results`), test results and conclusions.
"""
