"""From outcomes to documents: correction for the number of kernels, then sentences, reasons and tables, rendered once.

What the outcomes hold is found in `discovery` and `examination`; figures and pages stand in `plotting`.

Imports run from left to right: `kernel_effects` > `documents` > `across_kernels` > `sentences`.
"""
