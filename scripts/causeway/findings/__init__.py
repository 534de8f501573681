"""What the results claim: each claim with effect, interval, verdict, the query that gives its number, and what to try.

Nothing is computed here that stands in a table, and nothing is drawn.

Imports run from left to right: `collection`, `figures` > `document`, `first_screen` > `comparison`, `device_time`,
`folding`, `invariants`, `kernels`, `quality` > `causes` > `headlines`, `suggestions` > `record`.
"""
