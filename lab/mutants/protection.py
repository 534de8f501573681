"""Mutants of the fleet's protection: keys, seals, tokens, the ledger, what is logged, what is signed."""

from lab.mutants.mutant import Mutant

FLEET = "scripts/causeway/fleet/"
PROTECTION = ("fleet/test_protection.py", "fleet/test_deployment_attacks.py")


def _of(file: str, old: str, new: str, tests: tuple[str, ...] = PROTECTION, chosen: str = "") -> Mutant:
    return Mutant(FLEET + file, old, new, tests, chosen)


MUTANTS = {
    "keys of keystreams have two bytes of entropy": _of(
        "protection/secret_sharing.py",
        "key = secrets.token_bytes(KEY_BYTES)",
        "key = secrets.token_bytes(2) * (KEY_BYTES // 2)",
        chosen="keystream_keys",
    ),
    "one key masks all reports": _of(
        "protection/secret_sharing.py", "key = secrets.token_bytes(KEY_BYTES)", "key = bytes(KEY_BYTES)"
    ),
    "both sides ignore the seal's context": _of(
        "protection/envelope.py",
        'return b"|".join([b"causeway-fleet/1", role.encode(), mode.encode(), struct.pack("<I", epoch), serial, layout])',
        'return b"causeway-fleet/1"',
        chosen="moved_to_another",
    ),
    "any token is good": _of(
        "protection/envelope.py",
        "except InvalidSignature:\n        raise",
        "except InvalidSignature:\n        return\n        raise",
    ),
    "a user has as many tokens as wanted": _of(
        "protection/envelope.py",
        "if self.issued.get(who, 0) >= self.per_user:",
        "if False:",
        ("fleet/test_protection.py", "fleet/test_tokens.py"),
    ),
    "a report counts twice": _of("protection/aggregator.py", "if envelope.serial in self.input_shares:", "if False:"),
    "a share for the other server is taken": _of(
        "protection/aggregator.py",
        "if getattr(envelope, name) != expected:",
        'if name != "role" and getattr(envelope, name) != expected:',
    ),
    "a report without its other half is counted": _of(
        "protection/aggregator.py",
        "return {serial: leader[serial] for serial in helper if serial in leader}",
        "return dict(leader)",
    ),
    "local noise turns a flag on too rarely": _of(
        "protection/local_dp.py",
        "return math.ceil(_ONE / (math.exp(epsilon) + 1))",
        "return math.floor(_ONE / (math.exp(1.5 * epsilon) + 1))",
    ),
    "each section spends the whole budget": _of(
        "protection/local_dp.py",
        "np.uint32(flip_threshold(epsilon / len(SECTIONS)))",
        "np.uint32(flip_threshold(epsilon))",
    ),
    "the ledger allows more than the budget": _of(
        "protection/ledger.py",
        "if total > float(self.budget) * (1 + 1e-9):",
        "if False:",
        ("fleet/test_release.py", "fleet/test_deployment_attacks.py"),
    ),
    "windows of a part cost their smallest epsilon": _of(
        "protection/ledger.py",
        "return max(each, default=Fraction(0))",
        "return min(each, default=Fraction(0))",
        ("fleet/test_release.py", "fleet/test_deployment_attacks.py"),
    ),
    "noise from a seed serves production": _of(
        "protection/ledger.py",
        "if simulated != self.simulated:",
        "if False:",
        ("fleet/test_release.py", "fleet/test_deployment_attacks.py"),
    ),
    "a lost release is drawn again": _of(
        "protection/ledger.py",
        'if hashlib.sha256(content).hexdigest() != entry["sha256"]:',
        "if False:",
        ("fleet/test_release.py", "fleet/test_deployment_attacks.py"),
    ),
    "a changed ledger is believed": _of(
        "protection/ledger.py",
        'follows = entry["previous"] == head',
        "follows = True",
        ("fleet/test_release.py", "fleet/test_deployment_attacks.py"),
    ),
    "a deleted ledger is a new one": _of(
        "protection/ledger.py",
        "if anchored not in heads:",
        "if False:",
        ("fleet/test_release.py", "fleet/test_deployment_attacks.py"),
    ),
    "a release is handed out before it is stored": _of(
        "protection/ledger.py",
        "write_whole(stored, draw())",
        "stored.write_bytes(draw())",
        ("fleet/test_release.py", "fleet/test_deployment_attacks.py"),
    ),
    "a stored report is not on the disk": _of(
        "deployment/store.py",
        "os.fsync(self._handle)",
        "pass",
        ("fleet/test_deployment_attacks.py",),
        "store_that_is_full",
    ),
    "what a message said stands in the log": _of(
        "deployment/server.py",
        'LOG.warning("%s: a malformed request (%s)", state.options.role, type(error).__name__)',
        'LOG.warning("%s: a malformed request (%s)", state.options.role, error)',
        ("fleet/test_deployment_attacks.py",),
        "nothing_of_the_message",
    ),
    "the log names a failed connection's error": _of(
        "deployment/server.py",
        "type(sys.exc_info()[1]).__name__)",
        "sys.exc_info()[1])",
        ("fleet/test_deployment_attacks.py", "fleet/test_servers.py"),
    ),
    "files that nobody signed are trusted": _of(
        "deployment/public_folder.py",
        'name for name in {*files, *facts["files"]} if hashes.get(name) != facts["files"].get(name)',
        'name for name in {*files, *facts["files"]} if name not in hashes',
        ("fleet/test_deployment_attacks.py", "fleet/test_servers.py"),
    ),
    "a secret can be read by anybody": _of(
        "deployment/transport.py",
        "path.chmod(0o600)",
        "path.chmod(0o644)",
        ("fleet/test_deployment_attacks.py", "fleet/test_servers.py"),
    ),
}
