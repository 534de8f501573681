"""The replay: when everything would have run with one thing changed, under the same dependencies.

Imports run from left to right: `replay_table` > `changes` > `replayed`.
"""
