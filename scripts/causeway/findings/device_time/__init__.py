"""What the results claim about device time: where it is lost, slow steps, late ranks, what does not fill it.

Imports run from left to right: `efficiency`, `facts_said`.
"""
