"""Who may append to which streams: each kind of stream has one kind of appender.

An actor is `<kind>:<id>`, as `sandbox:host-3/4711`. The sequence number fences two writers of one kind; this table
keeps the other kinds out altogether, so that a fact's origin follows from its stream.
"""

from db.errors import NotOwner

OWNERS: dict[str, str] = {
    "run": "control",
    "operator": "control",
    "health": "control",
    "history": "control",
    "seal": "control",
    "deleted": "control",
    "prompt": "control",
    "validation": "control",
    "rollout": "sandbox",
    "verdict": "sandbox",
    "weights": "trainer",
    "engine": "engine",
    "run-set": "trial",
    "trial": "trial",
    "quarantine": "operator",
    "override": "operator",
    "test": "test",
}
"""Kind of actor by kind of stream (the stream's name up to its first slash). A prompt group appends its prompt's fate,
a rollout's attempt the rollout, the grader the verdict, the trainer every weight version, an engine its own life; the
run's workflow, through activities of the control worker, the run and what its operators asked. A quarantine is declared
by an operator, mostly of a run that is over and has no workflow any more; nothing of the run depends on it. So is an
override of what a trial's judges found."""

ACTORS = frozenset(OWNERS.values())
"""Kinds of actor. Of what a run does an operator appends nothing: operators ask, and the run's workflow records what it
accepted."""


def check_owner(stream: str, actor: str) -> None:
    """Refuse an append to a kind of stream that is not the actor's.

    Raises:
        NotOwner: the stream is another kind's.
        ValueError: no such kind of stream or of actor.
    """
    kind, colon, name = actor.partition(":")
    if not colon or not name or kind not in ACTORS:
        raise ValueError(f"actor {actor!r} is not <kind>:<id> with a kind among {', '.join(sorted(ACTORS))}")
    stream_kind, slash, rest = stream.partition("/")
    owner = OWNERS.get(stream_kind)
    if owner is None or not slash or not rest:
        raise ValueError(f"stream {stream!r} is not <kind>/… with a kind among {', '.join(sorted(OWNERS))}")
    if owner != kind:
        raise NotOwner(f"{actor} may not append to {stream}: {stream_kind}/… is appended by {owner} only")
