"""No token is from an engine that had not proved which weights it serves."""

from stepwell.audit.finding import Tally
from stepwell.audit.record import RunRecord
from stepwell.events import StepTrained, VersionAttested, VersionCreated
from stepwell.events.streams import engine_stream

HOLDS = "each engine attested a version, with the digest that the trainer recorded, before it generated with it"
UNIT = "attestations and turns"


def check(record: RunRecord, tally: Tally) -> None:
    """Applies the rule to attestations, then to every turn."""
    digests: dict[int, str] = {}
    for _, event in record.weights.events if record.weights else ():
        if isinstance(event, VersionCreated | StepTrained):
            digests[event.version] = event.digests.exported
    attested: set[tuple[str, int]] = set()
    for stream in record.of_kind("engine"):
        for seq, event in stream.every(VersionAttested):
            wanted = digests.get(event.version, "no such version")
            tally.expect(
                event.digest == wanted,
                stream.name,
                seq,
                f"attests version {event.version} as {event.digest}, trained was {wanted}",
            )
            attested.add((stream.name, event.version))
    for rollout in record.of_kind("rollout"):
        for turn in rollout.turns:
            engine = engine_stream(record.run, turn.engine)
            tally.expect(
                (engine, turn.version) in attested,
                rollout.name,
                turn.seq,
                f"turn {turn.turn} is by {turn.engine} under version {turn.version}, which it never attested",
            )
