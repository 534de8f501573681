"""What is planted in a simulated run, in time: the same run with and without a cause, with the same random numbers.

How much longer a single launch lasts stands in `planted_effects`.

Imports run from left to right: `removals` > `memory_stalls`.
"""
