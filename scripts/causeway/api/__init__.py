"""The Python interface: results of a finished run opened for reading.

Nothing is computed here and nothing is written. What a run has made is found by its stable paths, each table is read
when it is asked for, and queries see the files of the results alone.

Imports run from left to right: `results_folder` > `events` > `sql` > `integrity`.
"""
