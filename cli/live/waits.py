"""What a run waits for and who can do something about it, a line each."""

from dataclasses import dataclass

from cli.live.words import clock_time
from stepwell.contracts.operators import OpenHold
from stepwell.contracts.run import Progress, Stall
from stepwell.report.picture import RunPicture
from stepwell.report.standing import PauseInForce


@dataclass(frozen=True)
class Wait:
    """One thing that a run waits for."""

    what: str
    """Which, the same as long as it is the same."""
    line: str
    """In words, with what to do about it."""


def waits(picture: RunPicture, progress: Progress | None, silence: str) -> list[Wait]:
    """All that holds the run up, the worst first; empty for one that gets on, or is over.

    Args:
        picture: Of the run.
        progress: What its workflow says, if it answers; else the ledger is taken at its word.
        silence: Why it does not answer; empty if it does, or was not asked yet.
    """
    if picture.finished is not None:
        return []
    standing = picture.standing
    stalls = [stall.stall for stall in standing.health.standing] if progress is None else list(progress.stalls)
    holds = standing.operators.holds if progress is None else progress.holds
    found = [Wait("silence", silence)] if silence else []
    found += [Wait(f"stall {stall.what}", stall_words(stall)) for stall in stalls]
    found += [Wait(f"hold {hold.hold}", hold_words(picture.run, hold)) for hold in holds]
    if standing.pause is not None:
        found.append(Wait("pause", pause_words(picture.run, standing.pause)))
    return found


def stall_words(stall: Stall) -> str:
    """`waiting for trainer: no trainer worker is alive (…)`."""
    return f"waiting for {stall.what}: {stall.cause}"


def hold_words(run: str, hold: OpenHold) -> str:
    """What the run asks, and the command that answers."""
    return f"waiting for an operator: {hold.hold}: {hold.cause}; {answer_to(run, hold.hold)}"


def answer_to(run: str, hold: str) -> str:
    """The command that answers a gate or moves a limit."""
    if hold.startswith("limit/"):
        name = hold.removeprefix("limit/")
        return f"`stepwell limit {run} {name}=VALUE --reason …` moves it, {name}=none takes it away"
    return f"answer: stepwell approve {run} {hold} --reason … (or reject)"


def pause_words(run: str, pause: PauseInForce) -> str:
    """Who paused the run, why, and what ends it."""
    verb = "drained" if pause.how == "drain" else f"paused ({pause.how})"
    return f"{verb} by {pause.who} at {clock_time(pause.since_s)}: {pause.why}; `stepwell resume {run}` ends it"
