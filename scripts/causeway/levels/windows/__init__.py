"""A window of time written for other viewers: Chrome traces, Paraver, SQLite as Nsight Systems has it.

Statistics over time stand in `pyramid`.

Imports run from left to right: `chrome`, `paraver` > `viewer_rows`, `nsys_sqlite` > `window`.
"""
