"""Causes of runtime variability: features of launches, columns, search, shares, signs, stability and verdicts.

The method is that of `docs/causes.md`; each module is one of its steps and is named after the field's term for it.
"""
