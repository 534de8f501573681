"""The generator of a simulated fleet: applications, users, sessions, samples.

Nothing here is part of a deployed agent or server.

Imports run from left to right: `sampling` > `sessions` > `applications`.
"""
