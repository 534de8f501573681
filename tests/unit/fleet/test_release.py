"""Noise, threshold, ledger: what is released, at what cost, once."""

import hashlib
import json
import multiprocessing
import shutil
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from deployment import SCRIPTS
from fleet_samples import BUDGET, small_layout, vectors_of
from scipy.stats import chisquare

from causeway.core.errors import CausewayError
from causeway.fleet.protection import ledger as ledgers
from causeway.fleet.protection.ledger import Ledger, LedgerError, composed_epsilon
from causeway.fleet.protection.noise import SecureNoise, SeededNoise, noise_half_width
from causeway.fleet.release import release
from causeway.fleet.report_layout import DETAIL, TRAFFIC, WORD

LAYOUT = small_layout()
SEED = 3


def ledger_in(folder, budget=BUDGET, simulated=True, delta=0.0, name="ledger"):
    return Ledger(folder / name, [folder / f"anchor_{name}.json"], budget, delta, simulated)


def server(folder, role="leader", seed=SEED, threshold=5, **options):
    return release.Server(role, ledger_in(folder, name=role, **options), SeededNoise(seed), LAYOUT, threshold, "fleet")


def sums_of(n=20):
    return vectors_of(n, LAYOUT).sum(0, dtype=WORD)[None]


def give(made, request, reports=20, n=20):
    return made.noisy_share(release.released_cells(sums_of(n), request, LAYOUT), reports, request)


def spend(ledger, name, epoch=1, part="detail", window=-1, epsilon=Fraction(1, 2), content=b"bytes"):
    return ledger.release(
        name, epoch=epoch, part=part, window=window, epsilon=epsilon, simulated=ledger.simulated, draw=lambda: content
    )


@pytest.mark.parametrize("noise", [SecureNoise(), SeededNoise(1)], ids=["secure", "seeded"])
def test_noise_is_discrete_laplace(noise):
    """Against P(k) = tanh(1 / (2 b)) exp(-|k| / b); the sections' scales are L1 sensitivity over epsilon."""
    section = small_layout(applications=4000).by_name["variability"]
    assert section.noise_scale == pytest.approx(1 / 0.05)
    drawn = noise.draw([section], "test")
    assert drawn.dtype == np.int64
    edges = np.array([-1000, -60, -30, -15, -5, 0, 1, 6, 16, 31, 61, 1000])
    k = np.arange(-1000, 1000)
    chance = np.tanh(1 / 40) * np.exp(-np.abs(k) / 20)
    expected = np.histogram(k, edges, weights=chance)[0]
    seen = np.histogram(drawn, edges)[0]
    assert chisquare(seen, expected / expected.sum() * seen.sum()).pvalue > 1e-4


def test_a_test_seed_gives_the_same_noise_and_servers_differ():
    sections = list(LAYOUT.sections)
    one, again = (SeededNoise(1).draw(sections, "leader/x") for _ in range(2))
    assert (one == again).all()
    assert (one != SeededNoise(1).draw(sections, "helper/x")).any()
    assert (one != SeededNoise(2).draw(sections, "leader/x")).any()
    secure = [SecureNoise().draw(sections, "leader/x") for _ in range(2)]
    assert (secure[0] != secure[1]).any()


def test_a_server_loads_no_more_than_it_needs_to_draw_noise():
    """All of opendp loads scikit-learn, two CPU-seconds in which the first release would wait."""
    program = """
import sys
from fractions import Fraction
from causeway.fleet.protection.noise import SecureNoise
from causeway.fleet.report_layout import Section
section = Section(name="", rows=3, columns=4, contribution_bound=1, epsilon=Fraction(1, 2), part="detail", first=0)
print(SecureNoise().draw([section], "").size, {"sklearn", "scipy.stats"} & set(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=SCRIPTS)
    assert done.stdout == "12 set()\n"


def test_production_noise_takes_no_seed_and_seeded_noise_no_production_ledger(tmp_path):
    """Group 12."""
    with pytest.raises(TypeError):
        SecureNoise(1)
    made = server(tmp_path, simulated=False)
    with pytest.raises(LedgerError, match="foreseen"):
        give(made, release.Request(1, DETAIL, release.WHOLE))
    assert made.ledger.entries() == []
    spend(ledger_in(tmp_path), "a")
    with pytest.raises(LedgerError, match="simulation"):
        ledger_in(tmp_path, simulated=False).entries()


def test_intervals_hold_what_they_promise():
    rng = np.random.default_rng(1)
    draws = rng.laplace(0, 20, (2, 200_000))
    for terms, noise in ((1, draws[0]), (2, draws.sum(0))):
        assert (np.abs(noise) <= noise_half_width(20, 0.95, terms)).mean() == pytest.approx(0.95, abs=0.002)


def test_an_anchor_may_lie_in_a_folder_that_is_not_there_yet(tmp_path):
    ledger = Ledger(tmp_path / "ledger", [tmp_path / "other" / "server" / "anchor.json"], BUDGET, 0.0, True)
    made = release.Server("leader", ledger, SeededNoise(SEED), LAYOUT, 5, "fleet")
    give(made, release.Request(1, DETAIL, release.WHOLE))
    assert json.loads((tmp_path / "other" / "server" / "anchor.json").read_text())["entries"] == 1


@pytest.mark.parametrize("reports", [0, 1, 4])
def test_below_the_threshold_nothing_is_released_and_nothing_spent(tmp_path, reports):
    """Group 6."""
    made = server(tmp_path, threshold=5)
    assert give(made, release.Request(1, DETAIL, release.WHOLE), reports, n=reports or 1) is None
    assert made.ledger.spent(1) == 0
    assert made.ledger.entries() == []
    assert give(made, release.Request(1, DETAIL, release.WHOLE), 5) is not None


def test_a_retry_gives_the_same_bytes_and_draws_once(tmp_path):
    """Group 7: also with other sums, another seed and after a restart."""
    request = release.Request(1, DETAIL, release.WHOLE)
    first = give(server(tmp_path), request)
    assert (give(server(tmp_path, seed=99), request, n=7) == first).all()
    assert server(tmp_path).ledger.spent(1) == pytest.approx(0.8)
    assert len(server(tmp_path).ledger.entries()) == 1


def test_noise_drawn_before_a_crash_is_not_drawn_again(tmp_path, monkeypatch):
    """Group 7: killed after the release was stored and before the ledger knew."""
    ledger = ledger_in(tmp_path)
    monkeypatch.setattr(ledger, "_append", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        spend(ledger, "a", content=b"first")
    assert spend(ledger_in(tmp_path), "a", content=b"second") == b"first"
    assert len(ledger_in(tmp_path).entries()) == 1


def test_a_release_that_is_lost_is_not_replaced(tmp_path):
    spend(ledger_in(tmp_path), "a")
    (tmp_path / "ledger" / "a.release").unlink()
    with pytest.raises(LedgerError, match="not drawn again"):
        spend(ledger_in(tmp_path), "a")


def test_a_spent_budget_is_refused_until_the_next_epoch(tmp_path):
    """Group 7."""
    ledger = ledger_in(tmp_path)
    spend(ledger, "a", epsilon=Fraction(6, 10))
    with pytest.raises(LedgerError, match="budget"):
        spend(ledger, "b", part="more", epsilon=Fraction(1, 2))
    assert ledger.spent(1) == pytest.approx(0.6)
    spend(ledger, "c", part="more", epsilon=Fraction(4, 10))
    with pytest.raises(LedgerError, match="budget"):
        spend(ledger, "d", part="again", epsilon=Fraction(1, 1000))
    spend(ledger, "e", epoch=2, epsilon=1)


def test_windows_cost_once_and_a_window_twice_costs_twice(tmp_path):
    """A user's report lies in one window; two releases of one window see it twice."""
    ledger = ledger_in(tmp_path)
    for window in range(24):
        spend(ledger, f"w{window}", part="traffic", window=window, epsilon=Fraction(4, 10))
    assert ledger.spent(1) == pytest.approx(0.4)
    spend(ledger, "again", part="traffic", window=3, epsilon=Fraction(4, 10))
    assert ledger.spent(1) == pytest.approx(0.8)


def test_a_deleted_or_shortened_ledger_releases_nothing(tmp_path):
    """Group 7: the other server's anchor remembers."""
    spend(ledger_in(tmp_path), "a", epsilon=Fraction(1, 4))
    spend(ledger_in(tmp_path), "b", epsilon=Fraction(1, 4), part="other")
    lines = (tmp_path / "ledger/ledger.jsonl").read_text().splitlines(keepends=True)
    for kept in (lines[:1], []):
        (tmp_path / "ledger/ledger.jsonl").write_text("".join(kept))
        with pytest.raises(LedgerError, match="remembers"):
            spend(ledger_in(tmp_path), "c", epsilon=Fraction(1, 4), part="third")
    (tmp_path / "ledger/ledger.jsonl").unlink()
    with pytest.raises(LedgerError, match="remembers"):
        ledger_in(tmp_path).spent(1)


def test_a_changed_ledger_releases_nothing(tmp_path):
    spend(ledger_in(tmp_path), "a", epsilon=Fraction(1, 2))
    spend(ledger_in(tmp_path), "b", epsilon=Fraction(1, 4), part="other")
    path = tmp_path / "ledger/ledger.jsonl"
    for changed in (path.read_text().replace('"1/2"', '"1/9"'), "{}\n" + path.read_text(), "no json\n"):
        original = path.read_text()
        path.write_text(changed)
        with pytest.raises(LedgerError, match="changed"):
            ledger_in(tmp_path).entries()
        path.write_text(original)


def test_a_clock_set_back_is_noticed(tmp_path):
    """Group 7."""
    spend(ledger_in(tmp_path), "a", epoch=5)
    with pytest.raises(LedgerError, match="clock"):
        spend(ledger_in(tmp_path), "b", epoch=4)


def _race(folder, number, results):
    try:
        content = ledger_in(folder).release(
            f"r{number}",
            epoch=1,
            part=f"p{number}",
            window=-1,
            epsilon=Fraction(6, 10),
            simulated=True,
            draw=lambda: b"x" * number,
        )
        results.put(len(content))
    except LedgerError:
        results.put("refused")


def test_of_two_releases_racing_one_is_refused(tmp_path):
    """Group 7: together they would exceed the budget."""
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    racers = [context.Process(target=_race, args=(tmp_path, number, results)) for number in (1, 2)]
    for racer in racers:
        racer.start()
    found = [results.get(timeout=30) for _ in racers]
    for racer in racers:
        racer.join(30)
    assert sorted(map(str, found))[-1] == "refused"
    assert len(ledger_in(tmp_path).entries()) == 1
    assert json.loads((tmp_path / "anchor_ledger.json").read_text())["entries"] == 1


def test_composition_is_the_sum_at_delta_0_and_tighter_for_many():
    assert composed_epsilon([Fraction(2, 10), Fraction(8, 10)], 0) == pytest.approx(1.0)
    assert composed_epsilon([Fraction(2, 10), Fraction(8, 10)], 1e-9) <= 1.0
    month = composed_epsilon([Fraction(1, 10)] * 100, 1e-9)
    # advanced composition (Dwork, Rothblum and Vadhan 2010) bounds the optimum from above, the mean loss from below
    assert 100 * 0.1 * np.tanh(0.05) < month < 0.1 * np.sqrt(200 * np.log(1e9)) + 100 * 0.1 * np.expm1(0.1)
    assert month < 10


def test_the_designer_gets_sum_and_both_noises(tmp_path):
    vectors = vectors_of(20, LAYOUT)
    mask = np.random.default_rng(1).integers(0, 2**32, LAYOUT.cells, dtype=np.uint32)
    shares = {"leader": mask[None], "helper": (vectors.sum(0, dtype=WORD) - mask)[None]}
    request = release.Request(1, DETAIL, release.WHOLE)
    got = release.combine(
        [
            server(tmp_path, role).noisy_share(release.released_cells(part, request, LAYOUT), 20, request)
            for role, part in shares.items()
        ]
    )
    sections = [section for section in LAYOUT.sections if section.part == DETAIL]
    name = request.name("fleet", LAYOUT)
    noise = sum(SeededNoise(SEED).draw(sections, f"{role}/{name}") for role in shares)
    first = LAYOUT.by_name["kernels"].first
    assert (got == vectors[:, first:].astype(np.int64).sum(0) + noise).all()


def test_a_release_comes_back_from_its_bytes():
    rng = np.random.default_rng(1)
    made = release.Release(
        traffic=rng.integers(-5, 5, (24, 5)), released=rng.random(24) < 0.5, detail=rng.integers(-5, 5, 40), epsilon=0.9
    )
    content = release.encoded(made, {"mode": "share2"})
    found, facts = release.decoded(content)
    assert facts["mode"] == "share2"
    assert (found.traffic == made.traffic).all()
    assert (found.detail == made.detail).all()
    assert release.encoded(found, {"mode": "share2"}) == content
    assert [request.part for request in release.requests(1)].count(TRAFFIC) == 24


def test_a_release_that_is_cut_or_of_another_form_is_refused():
    made = release.Release(
        traffic=np.ones((24, 5), np.int64), released=np.ones(24, bool), detail=np.arange(40), epsilon=0.9
    )
    content = release.encoded(made, {"mode": "share2"})
    for wrong in (*(content[:size] for size in range(len(content))), b"[]\n", b"{}\n", b"1\n" + content, b"\xff\n"):
        with pytest.raises(CausewayError, match=r"the release cannot be read \(\w+\); fetch it again"):
            release.decoded(wrong)


def test_a_changed_line_of_the_ledger_is_named_by_its_number(tmp_path):
    ledger = ledger_in(tmp_path)
    for name in ("a", "b", "c"):
        spend(ledger, name, part=name, epsilon=Fraction(1, 4))
    lines = ledger.path.read_text(encoding="utf-8").splitlines()
    ledger.path.write_text("\n".join([lines[0], lines[2], lines[1]]) + "\n", encoding="utf-8")
    with pytest.raises(LedgerError, match=r": line 2 was changed or lost"):
        ledger.entries()


def test_after_a_crash_before_the_anchor_no_older_copy_releases_again(tmp_path, monkeypatch):
    """Group 7: a retry finds the ledger's line; what it hands out must be known to the anchor, too."""
    folder = tmp_path / "ledger"
    anchor = tmp_path / "anchor_ledger.json"
    spend(ledger_in(tmp_path), "a", part="traffic", window=0, epsilon=Fraction(1, 4))
    shutil.copytree(folder, tmp_path / "copy")
    written = ledgers.write_whole

    def killed(path, content):
        if path == anchor:
            raise KeyboardInterrupt
        written(path, content)

    for ask in (lambda: spend(ledger_in(tmp_path), "b", content=b"again"), lambda: ledger_in(tmp_path).released("b")):
        monkeypatch.setattr(ledgers, "write_whole", killed)
        with pytest.raises(KeyboardInterrupt):
            spend(ledger_in(tmp_path), "b", content=b"first")
        monkeypatch.undo()
        assert json.loads(anchor.read_text())["entries"] == 1
        assert ask() == b"first"
        last = (folder / "ledger.jsonl").read_bytes().splitlines()[-1]
        assert json.loads(anchor.read_text()) == {"head": hashlib.sha256(last).hexdigest(), "entries": 2}
        shutil.rmtree(folder)
        shutil.copytree(tmp_path / "copy", folder)
        with pytest.raises(LedgerError, match="remembers"):
            spend(ledger_in(tmp_path), "b", content=b"second")
        anchor.write_text(json.dumps({"head": ledger_head(folder), "entries": 1}))


def ledger_head(folder):
    """Return the SHA-256 of a ledger's last line."""
    return hashlib.sha256((folder / "ledger.jsonl").read_bytes().splitlines()[-1]).hexdigest()


def test_while_the_anchor_cannot_be_written_nothing_is_handed_out_and_nothing_more_entered(tmp_path, monkeypatch):
    """Group 7: the anchor's disk is full; a second request would find the line of the first."""
    written = ledgers.write_whole
    anchor = tmp_path / "anchor_ledger.json"

    def full(path, content):
        if path == anchor:
            raise OSError(28, "No space left on device")
        written(path, content)

    monkeypatch.setattr(ledgers, "write_whole", full)
    for name in ("a", "a", "b"):
        with pytest.raises(OSError, match="No space"):
            spend(ledger_in(tmp_path), name, part=name, epsilon=Fraction(1, 4), content=name.encode())
    assert [entry["release"] for entry in ledger_in(tmp_path).entries()] == ["a"]
    monkeypatch.undo()
    assert spend(ledger_in(tmp_path), "a", part="a", epsilon=Fraction(1, 4)) == b"a"
    assert json.loads(anchor.read_text())["head"] == ledger_head(tmp_path / "ledger")


def test_an_anchor_that_is_missing_is_not_begun_anew(tmp_path):
    """Group 7: its disk may not be mounted; only a crash at the first line leaves a ledger without one."""
    anchor = tmp_path / "anchor_ledger.json"
    spend(ledger_in(tmp_path), "a", part="a", epsilon=Fraction(1, 4), content=b"first")
    anchor.unlink()
    assert spend(ledger_in(tmp_path), "a", part="a", epsilon=Fraction(1, 4)) == b"first"
    spend(ledger_in(tmp_path), "b", part="b", epsilon=Fraction(1, 4))
    anchor.unlink()
    with pytest.raises(LedgerError, match=r"anchor_ledger\.json: is missing, though the ledger has 2 lines"):
        spend(ledger_in(tmp_path), "b", part="b", epsilon=Fraction(1, 4))
    assert not anchor.exists()


@pytest.mark.parametrize("content", [b'{"head', b"[]", b"{}", b"\xff\x00", None], ids=str)
def test_an_anchor_that_cannot_be_read_is_named(tmp_path, content):
    anchor = tmp_path / "anchor_ledger.json"
    spend(ledger_in(tmp_path), "a")
    anchor.unlink()
    if content is None:
        anchor.mkdir()
    else:
        anchor.write_bytes(content)
    with pytest.raises(LedgerError, match=r"anchor_ledger\.json: holds no head of a ledger"):
        ledger_in(tmp_path).entries()


@pytest.mark.parametrize("content", [b"\xff\xff\n", b'{"previous": "%s"}\n' % (b"0" * 64), b"[1]\n"], ids=str)
def test_a_ledger_that_cannot_be_read_is_named(tmp_path, content):
    ledger = ledger_in(tmp_path)
    ledger.path.write_bytes(content)
    with pytest.raises(LedgerError, match=r"ledger\.jsonl: .*until the ledger is restored"):
        ledger.entries()
