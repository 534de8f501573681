"""What a reader of the trace would compute about each launch, by sorting and counting: nothing is taken from the
model.
"""

import numpy as np

KINDS = {"h2d_bytes_in_flight": 1, "d2h_bytes_in_flight": 2, "d2d_bytes_in_flight": 8}


def in_flight(start, end, moments, weights=None):
    """Sum of weights of intervals with start <= moment < end."""
    weights = np.ones(len(start), dtype=np.int64) if weights is None else weights

    def before(times):
        order = np.argsort(times)
        return np.concatenate([[0], np.cumsum(weights[order])])[np.searchsorted(times[order], moments, side="right")]

    return before(start) - before(end)


def features(kernels, copies):
    """Context features at each launch's start, on one device."""
    start = kernels["start"]
    end = kernels["end"]
    found = {
        "launches_in_flight": in_flight(start, end, start) - 1,
        "transfers_in_flight": in_flight(copies["start"], copies["end"], start),
    }
    for name, kind in KINDS.items():
        chosen = copies["kind"] == kind
        found[name] = in_flight(copies["start"][chosen], copies["end"][chosen], start, copies["bytes"][chosen])
    inputs = np.flatnonzero(copies["kind"] == 1)
    inputs = inputs[np.argsort(copies["end"][inputs])]
    ended = np.searchsorted(copies["end"][inputs], start, side="right")
    found["last_h2d_bytes"] = np.concatenate([[0], copies["bytes"][inputs]])[ended]
    busy = np.concatenate([[0], np.maximum.accumulate(end)[:-1]])
    found["idle_before_ns"] = np.maximum(0, start - busy)
    return found


def joined(parts):
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def deviations(values, *configuration):
    """Values minus the mean of their configuration."""
    values = values.astype(float)
    _, which = np.unique(np.stack(configuration), axis=1, return_inverse=True)
    which = which.ravel()
    return values - (np.bincount(which, values) / np.bincount(which))[which]


def effective_size(x, y):
    """Bartlett's effective number of pairs, for two autocorrelated series (reference/causal.md, finding 5)."""
    n = len(x)

    def autocorrelation(v, lag):
        v = v - v.mean()
        return (v[lag:] @ v[:-lag]) / (v @ v)

    total = sum(autocorrelation(x, lag) * autocorrelation(y, lag) for lag in range(1, min(200, n // 4)))
    return n / max(1.0, 1 + 2 * total)
