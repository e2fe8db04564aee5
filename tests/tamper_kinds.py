"""What somebody with all rights may do to a recorded run, as data: how, and where it must be found.

A run of `tests.audited_run` named `r`: two steps of two prompts with three rollouts each. `place` is the stream and seq
at which both the ledger's audit and the verifier that stands alone must find it.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass

from tests.tampered import Copy

ROLLOUT, OTHER = "rollout/r/1/0/0", "rollout/r/1/0/1"
GROUP, VERDICT = "prompt/r/1/0", "verdict/r-1-0-1"
TURN, ENDED, GRADED = 1, 2, 3
"""Places in a rollout's stream."""
CLOSED = 1
"""Place of a group's last event."""


@dataclass(frozen=True)
class Tamper:
    """One kind."""

    name: str
    how: Callable[[Copy], object]
    place: tuple[str, int | None]
    """Where it must be found."""
    rules: frozenset[str]
    """Which rules may find it there."""


def _flip(held: Copy) -> None:
    hash, exact = held.streams[ROLLOUT][TURN]
    held.streams[ROLLOUT][TURN] = (hash, exact.replace(b'"turn":0', b'"turn":1'))


def _not_canonical(held: Copy) -> None:
    hash, exact = held.streams[OTHER][ENDED]
    held.streams[OTHER][ENDED] = (hash, exact.replace(b',"key"', b', "key"'))


def _reorder(held: Copy) -> None:
    lines = held.streams[ROLLOUT]
    lines[TURN], lines[ENDED] = lines[ENDED], lines[TURN]


def _insert(held: Copy) -> None:
    held.streams[ROLLOUT].insert(ENDED, held.streams[ROLLOUT][TURN])


def _insert_and_rechain(held: Copy) -> None:
    lines = [exact for _, exact in held.streams[ROLLOUT]]
    turn = json.loads(lines[TURN])
    turn |= {"key": "turn/0/1", "body": {**turn["body"], "turn": 1}}
    held.rechain(ROLLOUT, [*lines[:ENDED], json.dumps(turn).encode(), *lines[ENDED:]])


def _reorder_and_rechain(held: Copy) -> None:
    lines = [exact for _, exact in held.streams[ROLLOUT]]
    held.rechain(ROLLOUT, [lines[1], lines[0], *lines[2:]])


def _append_after_the_end(held: Copy) -> None:
    lines = [exact for _, exact in held.streams[GROUP]]
    closed = json.loads(lines[CLOSED])
    held.rechain(GROUP, [*lines, json.dumps({**closed, "key": "again"}).encode()])


def _drop_and_rechain(stream: str, place: int) -> Callable[[Copy], None]:
    def how(held: Copy) -> None:
        lines = [exact for _, exact in held.streams[stream]]
        held.rechain(stream, lines[:place] + lines[place + 1 :])

    return how


def _swap_blobs(held: Copy) -> None:
    a, b = (held.body(name, TURN)["payload"] for name in (ROLLOUT, OTHER))
    held.blobs[a], held.blobs[b] = held.blobs[b], held.blobs[a]


def _other_blob(held: Copy) -> None:
    held.forge(ROLLOUT, TURN, payload=held.put({"tokens": [7]}))


def _swap_rollouts(held: Copy) -> None:
    a, b = ([exact for _, exact in held.streams[name]] for name in (ROLLOUT, OTHER))
    held.rechain(ROLLOUT, b)
    held.rechain(OTHER, a)


def _forge_with_verdict(held: Copy) -> None:
    held.forge(VERDICT, 0, score=1.0)
    held.forge(OTHER, GRADED, score=1.0, verdict_head=held.streams[VERDICT][0][0])


def _forge_with_group(held: Copy) -> None:
    """Rollout, verdict and group agree; the step that trained them has the group's head."""
    _forge_with_verdict(held)
    children = held.body(GROUP, CLOSED)["children"]
    for child in children:
        child["head"] = held.streams[child["stream"]][-1][0]
    held.forge(GROUP, CLOSED, scores=[1.0, 1.0, 0.0], children=children)


def _payload_of(stream: str, seq: int, name: str) -> Callable[[Copy], object]:
    return lambda held: held.blobs.pop(held.body(stream, seq)[name])


def _corrupt(stream: str, type: str, name: str) -> Callable[[Copy], None]:
    def how(held: Copy) -> None:
        digest = held.body(stream, held.find(stream, type))[name]
        held.blobs[digest] = bytes([held.blobs[digest][0] ^ 1]) + held.blobs[digest][1:]

    return how


def _backdate(held: Copy, *, rechain: bool) -> None:
    held.change(GROUP, 0, lambda fields: fields.update(time="2025-01-01T00:00:00.000000Z"))
    if rechain:
        held.rechain(GROUP)


def _weights_file(held: Copy) -> None:
    export = held.body("weights/r", held.find("weights/r", "StepTrained"))["export"]
    held.blobs.pop(json.loads(held.blobs[export])["model.safetensors"])


def _forge_of(stream: str, type: str, number: int = 0, **body: object) -> Callable[[Copy], None]:
    return lambda held: held.forge(stream, held.find(stream, type, number), **body)


def _signature(held: Copy) -> None:
    seq = held.find("seal/r", "HeadSigned", 1)
    signature = held.body("seal/r", seq)["signature"]
    held.forge("seal/r", seq, signature=("0" if signature[0] != "0" else "1") + signature[1:])


def _rules(*names: str) -> frozenset[str]:
    return frozenset(names)


CHAINS, PARENT, SEALS = _rules("chains"), _rules("commitments"), _rules("seals")
BLOBS = _rules("blobs", "batches", "commitments")

KINDS: tuple[Tamper, ...] = (
    Tamper("flip a byte of an event", _flip, (ROLLOUT, TURN), CHAINS),
    Tamper("write an event in another form", _not_canonical, (OTHER, ENDED), CHAINS),
    Tamper("drop an event", lambda held: held.streams[ROLLOUT].pop(TURN), (ROLLOUT, TURN), CHAINS),
    Tamper("drop an event, link the rest", _drop_and_rechain(ROLLOUT, TURN), (GROUP, CLOSED), PARENT),
    Tamper("cut the end off a rollout", lambda held: held.streams[ROLLOUT].pop(), (GROUP, CLOSED), PARENT),
    Tamper("drop a whole rollout", lambda held: held.streams.pop(ROLLOUT), (GROUP, CLOSED), PARENT),
    Tamper("drop a whole group", lambda held: held.streams.pop(GROUP), ("run/r", 6), PARENT),
    Tamper("insert an event", _insert, (ROLLOUT, ENDED), CHAINS),
    Tamper("insert an event, link the rest", _insert_and_rechain, (GROUP, CLOSED), PARENT),
    Tamper("swap two events", _reorder, (ROLLOUT, TURN), CHAINS),
    Tamper("swap two events, link the rest", _reorder_and_rechain, (GROUP, CLOSED), PARENT),
    Tamper("swap two rollouts", _swap_rollouts, (GROUP, CLOSED), PARENT),
    Tamper("append after the end", _append_after_the_end, (GROUP, CLOSED + 1), CHAINS),
    Tamper("swap the bytes of two blobs", _swap_blobs, (ROLLOUT, TURN), BLOBS),
    Tamper("name another blob", _other_blob, (GROUP, CLOSED), PARENT),
    Tamper("lose a payload", _payload_of(ROLLOUT, TURN, "payload"), (ROLLOUT, TURN), BLOBS),
    Tamper("lose a batch", _payload_of("run/r", 6, "manifest"), ("run/r", 6), BLOBS),
    Tamper("change a batch", _corrupt("run/r", "StepAdmitted", "manifest"), ("run/r", 3), BLOBS),
    Tamper("lose a file of the weights", _weights_file, ("weights/r", 1), BLOBS),
    Tamper("forge a reward", _forge_of(OTHER, "RolloutGraded", score=1.0), (OTHER, GRADED), _rules("scores")),
    Tamper("forge a reward and its verdict", _forge_with_verdict, (GROUP, CLOSED), PARENT | _rules("scores")),
    Tamper("forge a reward up to the group", _forge_with_group, ("run/r", 6), PARENT | _rules("batches")),
    Tamper("back-date an event", lambda held: _backdate(held, rechain=False), (GROUP, 1), CHAINS),
    Tamper("back-date an event, link the rest", lambda held: _backdate(held, rechain=True), ("run/r", 6), PARENT),
    Tamper("change who appended", lambda held: held.change(ROLLOUT, TURN, _by_control), (ROLLOUT, TURN), CHAINS),
    Tamper("give one key twice", lambda held: held.change(ROLLOUT, ENDED, _key_again), (ROLLOUT, ENDED), CHAINS),
    Tamper("change a fate", _forge_of(GROUP, "GroupClosed", fate="skipped"), ("run/r", 6), PARENT),
    Tamper(
        "change the version of a turn",
        _forge_of(ROLLOUT, "TurnRecorded", version=0),
        (ROLLOUT, TURN),
        _rules("versions"),
    ),
    Tamper(
        "drop an attestation", _drop_and_rechain("engine/r/e1", 2), ("rollout/r/1/0/0", TURN), _rules("attestations")
    ),
    Tamper(
        "attest other weights",
        _forge_of("engine/r/e1", "VersionAttested", 1, digest="x9"),
        ("engine/r/e1", 2),
        _rules("attestations"),
    ),
    Tamper("train another batch", _forge_of("weights/r", "StepTrained", manifest="0" * 64), ("run/r", 4), PARENT),
    Tamper("skip a version", _forge_of("weights/r", "StepTrained", version=2), ("weights/r", 1), _rules("steps")),
    Tamper(
        "forge a pass@k",
        _forge_of("run/r", "ValidationRecorded", pass_k=0.5),
        ("run/r", 1),
        _rules("validations"),
    ),
    Tamper(
        "validate other weights",
        _forge_of("validation/r/v0-main", "ValidationOpened", weights_digest="x9"),
        ("validation/r/v0-main", 0),
        _rules("validations"),
    ),
    Tamper("back-date the run's first event", lambda held: _first_event(held), ("run/r", 4), SEALS),
    Tamper("forget a stall", _drop_and_rechain("health/r", 0), ("health/r", 2), SEALS),
    Tamper("change a signature", _signature, ("seal/r", 2), SEALS),
    Tamper("drop a signed head, link the rest", _drop_and_rechain("seal/r", 1), ("seal/r", 1), SEALS),
    Tamper("declare another key", _forge_of("seal/r", "KeyDeclared", public_key="ab" * 32), ("seal/r", 1), SEALS),
)
"""Each must be found by both."""


def _by_control(fields: dict) -> None:
    fields["actor"] = "control:test/1"


def _key_again(fields: dict) -> None:
    fields["key"] = "turn/0/0"


def _first_event(held: Copy) -> None:
    held.change("run/r", 0, lambda fields: fields.update(time="2025-01-01T00:00:00.000000Z"))
    held.rechain("run/r")
