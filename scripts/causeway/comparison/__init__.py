"""Two datasets side by side: what is slower, what varies more, what is new, and whether that is more than noise.

Series of runs stand in `efficiency`.

Imports run from left to right: `compare` > `distributions`, `operator_changes` > `over_time` > `groups` >
`change_verdicts`, `gate` > `change_estimates` > `sides` > `runs`.
"""
