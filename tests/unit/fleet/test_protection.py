"""Protected reports: the sums are exactly those of the unprotected ones, and servers refuse what they should."""

import math
import secrets
from dataclasses import replace

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from fleet_samples import small_layout, vectors_of

from causeway.core.errors import CausewayError
from causeway.fleet.protection import homomorphic, local_dp, modes, secret_sharing
from causeway.fleet.protection.aggregator import Aggregator, centred, join
from causeway.fleet.protection.envelope import SERIAL_BYTES, Issuer, ReportRefusedError, decode
from causeway.fleet.report_layout import WORD

EPOCH = 7
LAYOUT = small_layout()
N = 30


@pytest.fixture(scope="module")
def keys():
    return {
        "leader": X25519PrivateKey.generate(),
        "helper": X25519PrivateKey.generate(),
        "issuer": Ed25519PrivateKey.generate(),
    }


@pytest.fixture
def deployment(keys):
    """Return an issuer, both servers and a client's side."""
    issuer = Issuer(keys["issuer"], per_user=1)
    servers = {role: Aggregator(role, EPOCH, LAYOUT, keys[role], issuer.public) for role in ("leader", "helper")}
    return (
        issuer,
        servers,
        modes.Client(
            layout=LAYOUT, epoch=EPOCH, leader=keys["leader"].public_key(), helper=keys["helper"].public_key()
        ),
    )


def send(deployment, vector, user, to=("leader", "helper"), window=0):
    issuer, servers, client = deployment
    messages = dict(
        zip(
            ("leader", "helper"), client.messages(vector, lambda serial: issuer.issue(user, EPOCH, serial)), strict=True
        )
    )
    for role in to:
        servers[role].receive(messages[role], window)
    return messages


def total(servers, windows=1):
    joined = join(servers["leader"].windows, servers["helper"].serials)
    return centred(servers["leader"].sums(joined, windows) + servers["helper"].sums(joined, windows))


def whole_shard():
    vectors = vectors_of(N, LAYOUT)
    return modes.Shard(
        first=0, vectors=vectors, windows=np.arange(N) % modes.WINDOWS, users=[f"user{i}" for i in range(N)]
    )


def test_shares_add_up_to_the_clear_sums():
    shard = whole_shard()
    exact = modes.clear(shard, LAYOUT).arrays["sums"]
    assert int(exact.sum()) == int(shard.vectors.sum()) > 0
    found = modes.Share2(EPOCH).shard(shard, LAYOUT)
    assert (found.arrays["leader"] + found.arrays["helper"] == exact).all()
    assert (found.arrays["reports"] == modes.reports_by_window(shard.windows)).all()
    assert found.bytes_per_report < LAYOUT.cells * 4 + 400


def test_one_share_alone_is_noise():
    """Each bit of either server's share of a vector of zeros is set half of the time."""
    zeros = np.zeros(2000, WORD)
    key, masked = secret_sharing.split(zeros)
    for share in (secret_sharing.keystream(key, 2000), np.frombuffer(masked, WORD)):
        bits = np.unpackbits(share.view(np.uint8))
        assert abs(bits.mean() - 0.5) < 0.01
    assert (secret_sharing.keystream(key, 2000) + np.frombuffer(masked, WORD) == 0).all()


def test_no_keystream_is_used_twice():
    """Group 12: the key is drawn inside; equal vectors give unrelated halves, and nothing accepts a key or a seed."""
    vector = vectors_of(1, LAYOUT)[0]
    halves = [secret_sharing.split(vector) for _ in range(50)]
    assert len({key for key, _ in halves}) == len({masked for _, masked in halves}) == 50
    with pytest.raises(TypeError):
        secret_sharing.split(vector, b"k" * 32)


def test_ciphertexts_add_up_to_the_clear_sums():
    shard = whole_shard()
    exact = modes.clear(shard, LAYOUT).arrays["sums"]
    secret, public = homomorphic.make_keys()
    found = modes.Ahe(public, LAYOUT.cells).shard(shard, LAYOUT)
    for window in range(modes.WINDOWS):
        opened = homomorphic.decrypt(found.arrays[f"window_{window:02d}"].tobytes(), secret, LAYOUT.cells)
        assert (opened == exact[window]).all()


def test_homomorphic_keys_and_bytes_that_do_not_fit():
    """Group 13."""
    vector = vectors_of(1, LAYOUT)[0]
    secret, public = homomorphic.make_keys()
    client = homomorphic.Encryptor(public, LAYOUT.cells)
    body = client.encrypt(vector)
    with pytest.raises(CausewayError, match="public one"):
        homomorphic.Encryptor(secret, LAYOUT.cells)  # the secret key must not reach clients
    with pytest.raises(CausewayError, match="no secret key"):
        homomorphic.decrypt(body, public, LAYOUT.cells)
    for damaged in (body[: len(body) // 2], b"", b"x" * 100):
        with pytest.raises(ReportRefusedError):
            client.load(damaged)
    other, _ = homomorphic.make_keys()
    wrong = homomorphic.decrypt(body, other, LAYOUT.cells)
    assert (wrong != vector).mean() > 0.9  # another key opens nothing: what comes out is unrelated
    with pytest.raises(CausewayError, match="slots"):
        homomorphic.check(small_layout(applications=200), 10)
    with pytest.raises(CausewayError, match="beyond"):
        homomorphic.check(LAYOUT, 2**32)


def test_encrypted_noise_may_be_negative():
    secret, public = homomorphic.make_keys()
    client = homomorphic.Encryptor(public, LAYOUT.cells)
    noise = np.arange(LAYOUT.cells) - 40
    found = homomorphic.decrypt(
        client.add_noise(client.encrypt(np.ones(LAYOUT.cells, WORD)), noise), secret, LAYOUT.cells
    )
    assert (found == noise + 1).all()


def test_local_noise_is_unbiased_and_as_wide_as_stated():
    rng = np.random.default_rng(1)
    n = 4000
    cells = local_dp.cells_of(LAYOUT)
    flags = np.zeros(cells, bool)
    flags[[1, 9]] = True
    sums = np.zeros(cells)
    for _ in range(n):
        drawn = rng.integers(0, 2**32, cells, dtype=np.uint32)
        sums += local_dp.flags_of(local_dp.randomise(flags, 2.0, drawn), cells)
    counts, sd = local_dp.estimate(sums, n, 2.0)
    assert counts[[1, 9]].tolist() == pytest.approx([n, n], abs=6 * sd)
    assert 0.7 < counts[~flags].std() / sd < 1.3
    assert counts[~flags].mean() == pytest.approx(0, abs=5 * sd / math.sqrt(cells - 2))  # each section spends its part


def test_local_noise_spends_no_more_than_it_says():
    for epsilon in (0.1, 0.5, 1.0, 3.0):
        loss = math.log(2**32 / local_dp.flip_threshold(epsilon) - 1)  # of one section, by the probability as rounded
        assert 0 <= epsilon - loss < 1e-6
    with pytest.raises(CausewayError, match="epsilon"):
        local_dp.flip_threshold(0)
    with pytest.raises(ReportRefusedError):
        local_dp.flags_of(b"123", 2000)


def test_one_hot_of_a_section_follows_its_units():
    vector = np.zeros(LAYOUT.cells, WORD)
    vector[LAYOUT.by_name["durations"].first + np.array([2, 3])] = [4, 12]
    picked = [int(np.nonzero(local_dp.one_hot(vector, LAYOUT, chance)[5:])[0][0]) for chance in (0.0, 0.24, 0.26, 0.99)]
    assert picked == [2, 2, 3, 3]


def test_a_vector_that_cannot_be_is_refused_before_it_is_protected(deployment):
    """Group 1, where the client protects: the sum is unchanged."""
    good, bad = vectors_of(2, LAYOUT)
    send(deployment, good, "a")
    bad = bad.copy()
    bad[0] += 5
    with pytest.raises(CausewayError, match="more than"):
        send(deployment, bad, "b")
    assert (total(deployment[1])[0] == good).all()


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda m: m[:50], "length"),
        (lambda m: b"", "length"),
        (lambda m: m + bytes(2 << 20), "length"),
        (lambda m: b"XXXX" + m[4:], "form"),
        (lambda m: m[:4] + b"\x09" + m[5:], "form"),
        (lambda m: m[:6] + b"\x08" + m[7:], "epoch"),
        (lambda m: m[:10] + bytes(16) + m[26:], "token"),
        (lambda m: m[:26] + bytes(16) + m[42:], "layout"),
        (lambda m: m[:42] + bytes(64) + m[106:], "token"),
        (lambda m: m[:-1] + bytes([m[-1] ^ 1]), "seal"),
        (lambda m: m[:-5], "seal"),
    ],
)
def test_a_damaged_message_is_refused_and_counted(deployment, damage, reason):
    """Group 1, where servers receive: the sum is unchanged, and nothing of the message is kept."""
    _, servers, _ = deployment
    vector = vectors_of(1, LAYOUT)[0]
    send(deployment, vector, "a")
    before = total(servers)
    messages = send(deployment, vector, "b", to=())
    for role in servers:
        with pytest.raises(ReportRefusedError) as caught:
            servers[role].receive(damage(messages[role]), 0)
        assert caught.value.reason == reason
        assert servers[role].refused == {reason: 1}
    assert (total(servers) == before).all()


def test_a_half_for_the_other_server_is_refused(deployment):
    messages = send(deployment, vectors_of(1, LAYOUT)[0], "a", to=())
    with pytest.raises(ReportRefusedError, match="role"):
        deployment[1]["leader"].receive(messages["helper"], 0)


def test_replays_are_refused(deployment, keys):
    """Group 4: twice in an epoch, in another epoch, one token for two reports."""
    issuer, servers, client = deployment
    vector = vectors_of(1, LAYOUT)[0]
    messages = send(deployment, vector, "a")
    for role in servers:
        with pytest.raises(ReportRefusedError, match="duplicate"):
            servers[role].receive(messages[role], 3)  # also in another window
    tomorrow = Aggregator("leader", EPOCH + 1, LAYOUT, keys["leader"], issuer.public)
    with pytest.raises(ReportRefusedError, match="epoch"):
        tomorrow.receive(messages["leader"], 0)
    moved = replace(decode(messages["leader"]), epoch=EPOCH + 1).encoded()
    with pytest.raises(ReportRefusedError, match="token"):
        tomorrow.receive(moved, 0)
    token = decode(messages["leader"])
    again = client.messages(vector, lambda serial: token.signature, serial=token.serial)
    with pytest.raises(ReportRefusedError, match="duplicate"):
        servers["leader"].receive(again[0], 0)
    assert (total(servers)[0] == vector).all()


def test_an_invented_token_is_refused(deployment):
    _, servers, client = deployment
    forged = Issuer(Ed25519PrivateKey.generate())
    messages = client.messages(vectors_of(1, LAYOUT)[0], lambda serial: forged.issue("a", EPOCH, serial))
    with pytest.raises(ReportRefusedError, match="token"):
        servers["leader"].receive(messages[0], 0)


def test_half_arrived_reports_are_in_no_sum(deployment):
    """Group 5: dropped at either server; the sum is that of the joined reports, exactly."""
    vectors = vectors_of(9, LAYOUT)
    to = [("leader", "helper"), ("leader",), ("helper",)] * 3
    for number, (vector, roles) in enumerate(zip(vectors, to, strict=True)):
        send(deployment, vector, f"user{number}", roles)
    assert (total(deployment[1])[0] == vectors[::3].sum(0)).all()


def test_a_server_that_lost_what_it_had_leaves_the_rest_exact(deployment, keys):
    """Group 5: the helper dies and comes back empty."""
    issuer, servers, _ = deployment
    vectors = vectors_of(6, LAYOUT)
    for number in range(3):
        send(deployment, vectors[number], f"user{number}")
    servers["helper"] = Aggregator("helper", EPOCH, LAYOUT, keys["helper"], issuer.public)
    for number in range(3, 6):
        send(deployment, vectors[number], f"user{number}")
    assert (total(servers)[0] == vectors[3:].sum(0)).all()


def test_shuffled_arrival_changes_nothing(deployment, keys):
    """Group 16."""
    _, servers, _ = deployment
    vectors = vectors_of(8, LAYOUT)
    messages = [send(deployment, vector, f"user{number}", to=()) for number, vector in enumerate(vectors)]
    for number in np.random.default_rng(2).permutation(8):
        servers["leader"].receive(messages[number]["leader"], int(number) % 2)
    for number in range(8):
        servers["helper"].receive(messages[number]["helper"], 0)
    found = total(servers, windows=2)
    assert (found == [vectors[::2].sum(0), vectors[1::2].sum(0)]).all()


def test_a_user_with_a_thousand_gpus_reports_once(deployment):
    """Group 9."""
    issuer, servers, client = deployment
    sent = 0
    for vector in vectors_of(1, LAYOUT).repeat(1000, axis=0):
        try:
            messages = client.messages(vector, lambda serial: issuer.issue("farm", EPOCH, serial))
        except CausewayError as error:
            assert "tokens" in str(error)  # noqa: PT017
            continue
        sent += 1
        for role, message in zip(("leader", "helper"), messages, strict=True):
            servers[role].receive(message, 0)
    assert sent == 1
    assert issuer.issue("farm", EPOCH + 1, bytes(SERIAL_BYTES))  # and once tomorrow


def test_a_value_hidden_inside_a_share_does_its_damage(deployment):
    """Group 2: nothing stops it in this mode; what it does is exactly what it adds, and only where it adds it."""
    issuer, servers, client = deployment
    honest = vectors_of(20, LAYOUT)
    for number, vector in enumerate(honest):
        send(deployment, vector, f"user{number}")
    lie = np.zeros(LAYOUT.cells, WORD)
    lie[3] = 1_000_000
    reckless = replace(client, layout=_Unchecked(LAYOUT))
    messages = reckless.messages(lie, lambda serial: issuer.issue("liar", EPOCH, serial))
    for role, message in zip(("leader", "helper"), messages, strict=True):
        servers[role].receive(message, 0)
    wrong = total(servers)[0] - honest.sum(0)
    assert wrong[3] == 1_000_000
    assert not np.delete(wrong, 3).any()


class _Unchecked:
    """A layout whose check a malicious client left out."""

    def __init__(self, layout):
        self.digest = layout.digest

    def check(self, vector):
        """Accept everything."""


def test_sybils_inside_the_bounds_move_a_cell_by_their_share_at_most():
    """Group 3."""
    honest = vectors_of(950, LAYOUT)
    lie = np.zeros((50, LAYOUT.cells), WORD)
    lie[:, 0] = 1
    lie[:, LAYOUT.by_name["durations"].first] = 16
    for vector in lie:
        LAYOUT.check(vector)
    sums = np.concatenate([honest, lie]).sum(0)
    fair = honest.sum(0)
    for section in LAYOUT.sections:
        moved = sums[section.cells] / (1000 * section.contribution_bound) - fair[section.cells] / (
            950 * section.contribution_bound
        )
        assert np.abs(moved).max() <= 0.05 + 1e-12


def test_bounds_are_by_user_and_serials_have_their_length():
    issuer = Issuer(Ed25519PrivateKey.generate(), per_user=2)
    for _ in range(2):
        issuer.issue("a", 1, secrets.token_bytes(SERIAL_BYTES))
    with pytest.raises(CausewayError, match="tokens"):
        issuer.issue("a", 1, secrets.token_bytes(SERIAL_BYTES))
    issuer.issue("b", 1, secrets.token_bytes(SERIAL_BYTES))
    with pytest.raises(CausewayError, match="bytes"):
        issuer.issue("c", 1, b"short")
