"""Attacks by clients on a simulated fleet, measured: poisoned counts, Sybils, many reports of one user."""

from dataclasses import fields, replace

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from causeway.core.errors import CausewayError
from causeway.fleet.protection.aggregator import Aggregator, centred, join
from causeway.fleet.protection.envelope import Issuer
from causeway.fleet.protection.modes import Client
from causeway.fleet.release.estimates import DISTRIBUTIONS
from causeway.fleet.report_layout import WORD, ReportLayout
from causeway.fleet.study.attacks import Attack

EPOCH = 1
ROUNDING = 1e-12
"""Difference of two shares that is taken for rounding."""


class InProcessFleet:
    """Issuer, both servers and a client of one epoch, all in this process."""

    def __init__(self, layout: ReportLayout) -> None:
        keys = {role: X25519PrivateKey.generate() for role in ("leader", "helper")}
        self.layout = layout
        self.issuer = Issuer(Ed25519PrivateKey.generate())
        self.servers = {role: Aggregator(role, EPOCH, layout, key, self.issuer.public) for role, key in keys.items()}
        self.client = Client(
            layout=layout, epoch=EPOCH, leader=keys["leader"].public_key(), helper=keys["helper"].public_key()
        )

    def send(self, vector: np.ndarray, user: str, client: Client | None = None) -> None:
        """Send one user's report, `vector` of uint32, shape (cells,), to both servers."""
        messages = (client or self.client).messages(vector, lambda serial: self.issuer.issue(user, EPOCH, serial))
        for server, message in zip(self.servers.values(), messages, strict=True):
            server.receive(message, 0)

    def total(self) -> np.ndarray:
        """Return the sum of the joined reports: int64, shape (cells,)."""
        joined = join(self.servers["leader"].windows, self.servers["helper"].serials)
        leader, helper = (server.sums(joined, 1) for server in self.servers.values())
        return centred(leader + helper)[0]


class _UncheckedLayout(ReportLayout):
    def check(self, vector: np.ndarray) -> None:
        """Accept any vector, as a malicious client does."""


def poisoned_report(layout: ReportLayout, vectors: np.ndarray) -> Attack:
    """Send one report outside its bounds, which no server can see inside its share: it erases the application that most
    users report, and gives every other cell a value of its choice, here one beyond what all reports can give.

    Parameters
    ----------
    layout : ReportLayout
    vectors : ndarray of uint32, shape (n, cells)
        The other users' reports.
    """
    honest = vectors.sum(0, dtype=np.int64)
    erased = int(np.argmax(honest[: layout.applications]))
    wanted = np.concatenate([
        np.full(section.rows * section.columns, layout.farthest(section, len(vectors) + 1)[1] + 1)
        for section in layout.sections
    ])  # fmt: skip
    wanted[erased] = 0
    fleet = InProcessFleet(layout)
    for index, vector in enumerate(vectors):
        fleet.send(vector, f"user{index}")
    # a share is a number modulo 2**32, so that a report can take away, too
    unchecked = _UncheckedLayout(**{part.name: getattr(layout, part.name) for part in fields(layout)})
    fleet.send((wanted - honest).astype(WORD), "attacker", replace(fleet.client, layout=unchecked))
    total = fleet.total()
    first = 0
    seen = 0
    for section in layout.sections:
        cells = total[first : first + section.rows * section.columns]
        low, high = layout.farthest(section, len(vectors) + 1)
        seen += int(((cells < low) | (cells > high)).sum())
        first += len(cells)
    return Attack(
        group=2,
        name="one report outside its bounds",
        expected=(
            "not stopped: every cell takes the value that its sender wants, so the most popular application is erased;"
            " the designer's reader sees only cells beyond what all reports can give, and refuses the release for these"
        ),
        held=bool((total == wanted).all() and seen == layout.cells - 1),
        figures={
            "cells": float(layout.cells),
            "cells_of_its_choice": float((total == wanted).sum()),
            "cells_seen_by_the_reader": float(seen),
            "honest_reports_of_the_erased": float(honest[erased]),
            "reports_of_the_erased": float(total[erased]),
        },
    )


def sybils(layout: ReportLayout, vectors: np.ndarray, share: float = 0.05) -> Attack:
    """Let a fraction of the users, Sybils, report one cell, within the contribution bounds.

    Parameters
    ----------
    layout : ReportLayout
    vectors : ndarray of uint32, shape (n, cells)
        The other users' reports.
    share : float, 0 to 1
        The Sybils' share of all users.
    """
    n = len(vectors)
    count = round(n * share / (1 - share))
    poisoned = np.zeros(layout.cells, WORD)
    beyond = 0
    fleet = InProcessFleet(layout)
    for section in layout.sections:
        poisoned[section.first] = section.contribution_bound
        more = np.zeros(layout.cells, WORD)
        more[section.first] = section.contribution_bound + 1
        beyond += _is_taken(fleet, more, f"beyond {section.name}")
    total = _total_with(fleet, vectors, poisoned, count)
    fair = vectors.sum(0, dtype=np.float64)
    worst = 0.0
    for section in layout.sections:
        before = fair[section.cells] / (n * section.contribution_bound)
        after = total[section.cells] / ((n + count) * section.contribution_bound)
        worst = max(worst, float(np.abs(after - before).max()))
    part = count / (n + count)
    return Attack(
        group=3,
        name="sybils inside the bounds",
        expected=(
            "no cell's part of what all users may count moves by more than their share of users; no client sends more"
            " than the bounds"
        ),
        held=worst <= part + ROUNDING and beyond == 0,
        figures={"sybils": part, "bias": worst, "beyond_bounds": float(beyond)},
    )


def sybils_of_one_application(layout: ReportLayout, vectors: np.ndarray, share: float = 0.05) -> Attack:
    """Let Sybils claim the application that the fewest users report, and fill one cell of each of its distributions,
    the one with the lowest count, within the contribution bounds.

    Published shares are those of an application's own row, so the Sybils weigh as their part of this row.

    Parameters
    ----------
    layout : ReportLayout
    vectors : ndarray of uint32, shape (n, cells)
        The other users' reports.
    share : float, 0 to 1
        The Sybils' share of all users.
    """
    n = len(vectors)
    count = round(n * share / (1 - share))
    fair = vectors.sum(0, dtype=np.int64)
    by_application = fair[: layout.applications]
    claimed = int(np.argmin(np.where(by_application > 0, by_application, n + 1)))
    poisoned = np.zeros(layout.cells, WORD)
    poisoned[claimed] = 1
    cells = {}
    for section in (layout.by_name[name] for name in DISTRIBUTIONS):
        first = section.first + claimed * section.columns
        row = slice(first, first + section.columns)
        filled = int(np.argmin(fair[row]))
        poisoned[first + filled] = section.contribution_bound
        cells[section.name] = (row, filled, count * section.contribution_bound)
    total = _total_with(InProcessFleet(layout), vectors, poisoned, count)
    moved = []
    held = True
    for row, filled, lies in cells.values():
        honest = int(fair[row].sum())
        if not honest:
            continue
        before = float(fair[row][filled] / honest)
        moved.append(float(total[row][filled] / total[row].sum()) - before)
        held = held and abs(moved[-1] - (1 - before) * lies / (honest + lies)) <= ROUNDING
    figures = {"sybils": count / (n + count), "sybils_of_its_reports": count / (count + int(by_application[claimed]))}
    return Attack(
        group=3,
        name="sybils who claim one rare application",
        expected="not stopped: a share of its row moves by the Sybils' part of the row's counts",
        held=held,
        figures=figures | ({"bias": max(moved)} if moved else {}),
    )


def _total_with(fleet: InProcessFleet, vectors: np.ndarray, poisoned: np.ndarray, count: int) -> np.ndarray:
    """Return the fleet's sum of the honest reports, `vectors` of shape (n, cells), and of so many `poisoned` ones."""
    for index, vector in enumerate(vectors):
        fleet.send(vector, f"user{index}")
    for index in range(count):
        fleet.send(poisoned, f"sybil{index}")
    return fleet.total()


def _is_taken(fleet: InProcessFleet, vector: np.ndarray, user: str) -> bool:
    """Tell whether a report is sent and taken."""
    try:
        fleet.send(vector, user)
    except CausewayError:
        return False
    return True


def many_gpus(layout: ReportLayout, vector: np.ndarray, gpus: int = 1000) -> Attack:
    """Let a user with many GPUs try to report `vector`, uint32, shape (cells,), from each."""
    fleet = InProcessFleet(layout)
    taken = 0
    for _ in range(gpus):
        try:
            fleet.send(vector, "farm")
            taken += 1
        except CausewayError:
            continue
    held = taken == 1 and bool((fleet.total() == vector).all())
    return Attack(
        group=9,
        name="a user with many GPUs",
        expected="one report is taken",
        held=held,
        figures={"gpus": float(gpus), "taken": float(taken)},
    )
