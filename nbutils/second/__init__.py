"""The second study: many measures, what each is worth, and the questions fixed before the networks that answer them.

In goes a data set; out come its networks' tables, one word for each question, and a leaderboard of all measures.
"""
