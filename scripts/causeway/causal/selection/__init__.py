"""Variable selection: a linear model on groups of basis functions, forward and backward steps.

In which order and on what it runs stands in `discovery`.

Imports run from left to right: `lagged` > `backward` > `linear_model` > `problem`.
"""
