"""What the results claim: each claim with effect, interval, verdict, the query that gives its number, and what to try.

Nothing is computed here that stands in a table, and nothing is drawn.

Imports run from left to right: `collection`, `figures` > `device_time`, `document`, `read_tables` > `comparison`,
`first_screen`, `folding`, `invariants`, `kernels` > `causes` > `headlines`, `suggestions` > `record`.
"""
