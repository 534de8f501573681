"""Causes of runtime variability: features of launches, columns, search, shares, signs, stability and verdicts.

Each module is one step of the method and is named after the field's term for it; `discovery` runs them in order.
"""
