"""The scaling study: simulated tables of a chosen size, the MPI program timed on them over rank counts, and what the times say."""
