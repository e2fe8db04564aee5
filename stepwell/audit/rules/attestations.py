"""No token is from an engine that had not proved which weights it serves.

An engine's stream has no common order with that of the weights, and none is needed: nobody can name a version's digest
before the version is made, so an attestation with the recorded digest came after it. Within the stream attestations are
numbered upwards.
"""

from stepwell.audit.finding import Finding, Tally
from stepwell.audit.record import RunRecord, StreamRecord
from stepwell.events import VersionAttested
from stepwell.events.streams import engine_stream

HOLDS = "each engine attested a version, with the digest that the trainer recorded, before it generated with it"
UNIT = "attestations and turns"


def check(record: RunRecord, tally: Tally) -> None:
    """Applies the rule to attestations, then to every turn."""
    attested: set[tuple[str, int]] = set()
    shared = record.ancestors.values()
    for stream in (*record.of_kind("engine"), *(each for each in shared if each.name.startswith("engine/"))):
        _check_order(stream, tally)
        for seq, event in stream.every(VersionAttested):
            wanted = record.exported(stream.name.split("/")[1], event.version) or "no such version"
            tally.expect(
                event.digest == wanted,
                stream.name,
                seq,
                f"attests version {event.version} as {event.digest}, trained was {wanted}",
            )
            attested.add((stream.name, event.version))
    for rollout in (*record.of_kind("rollout"), *(each for each in shared if each.name.startswith("rollout/"))):
        below = engine_stream(rollout.name.split("/")[1], "")
        tally.checked += len(rollout.turns)
        for turn in rollout.turns:  # of a big run the most by far: words only where something is wrong
            if (below + turn.engine, turn.version) not in attested:
                what = f"turn {turn.turn} is by {turn.engine} under version {turn.version}, which it never attested"
                tally.findings.append(Finding(rollout.name, turn.seq, what))


def _check_order(engine: StreamRecord, tally: Tally) -> None:
    newest = -1
    for seq, event in engine.every(VersionAttested):
        if event.load <= newest:
            tally.findings.append(Finding(engine.name, seq, f"load {event.load} attested after load {newest}"))
        newest = event.load
