"""Pieces of a critical path in which work waited while its GPU was another's."""

import numpy as np

from causeway.numeric.intervals import Set, split
from causeway.waiting.graph.nodes import Graph
from causeway.waiting.path import walk
from causeway.waiting.taken_gpus import Device, TakenGpus

OTHER_RANK = "behind work of another rank on the same GPU"
OTHER_PROCESS = "another process had the GPU"
WAITS = (walk.SAME_STREAM, walk.OTHER_STREAM, walk.QUEUED, walk.START_UP)
"""Pieces in which work waits; their codes are of the work."""


class TakenPieces:
    """Sets apart the time in which work waited for another rank or process to leave its GPU.

    Parameters
    ----------
    graph : Graph
        Its texts are added to.
    taken : TakenGpus
        On the dataset's time line.
    """

    def __init__(self, graph: Graph, taken: TakenGpus) -> None:
        self._graph = graph
        self._covers: dict[Device, list[tuple[Set, np.ndarray]]] = {}
        for device, others in taken.others.items():
            code = np.full(others.busy[0].size, self._code(OTHER_RANK))
            self._covers.setdefault(device, []).append((others.busy, code))
        for device, turns in taken.contexts.items():
            codes = np.array([self._code(f"{OTHER_PROCESS}: {words}") for words in turns.words()], np.int64)
            self._covers.setdefault(device, []).append(((turns.start, turns.end), codes[turns.number()]))

    def _code(self, text: str) -> int:
        if text not in self._graph.texts:
            self._graph.texts.append(text)
        return self._graph.texts.index(text)

    def apart(self, pieces: np.ndarray) -> np.ndarray:
        """Return the pieces of a path with that time as pieces of their own: `walk.TAKEN`, with the code of a text.

        Parameters
        ----------
        pieces : ndarray of int64, shape (k, 4)
            `walk.PIECE`, in the order of time.

        Returns
        -------
        ndarray of int64, shape (m, 4)
        """
        waits = np.flatnonzero(np.isin(pieces[:, 2], WAITS)) if self._covers else np.zeros(0, np.int64)
        if not waits.size:
            return pieces
        device = self._graph.stream_key[self._graph.work.stream[pieces[waits, 3]]]
        found = [np.delete(pieces, waits, axis=0)]
        for key in np.unique(device, axis=0).tolist():
            rest = pieces[waits[(device == np.array(key)).all(axis=1)]]
            for cover, code in self._covers.get(tuple(key), ()):
                inside, outside = split(rest[:, 0], rest[:, 1], cover)
                theirs = np.stack([*inside[2:], np.full(inside.shape[1], walk.TAKEN), code[inside[1]]], axis=1)
                found.append(theirs)
                rest = np.stack([*outside[1:], *rest[outside[0], 2:].T], axis=1)
            found.append(rest)
        parts = np.concatenate(found)
        return parts[np.argsort(parts[:, 0], kind="stable")]
