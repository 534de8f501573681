"""What the results claim about device time: where it is lost, slow steps, late ranks, why devices wait.

Imports run from left to right: `efficiency`, `missing_launches`, `recordings_apart`, `replay_savings`, `steps`,
`stragglers`, `waiting` > `step_waits`.
"""
