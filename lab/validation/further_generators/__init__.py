"""Further generators of tables with known causes, each with assumptions of its own: what was chosen on one is checked
on another. The cases that draw from them, and their scores, live one folder up.

Imports run from left to right: `additive`, `special_cases`, `run_shifts` > `composed` > `mechanisms`.
"""
