"""Whether an agent goes round in circles: the same turn again and again, the same error, or talk without any action.

The rules and their numbers are those of OpenHands' stuck detector; errors are what the tools call one.
"""

from collections.abc import Sequence

from stepwell.agent.protocol import NO_CALL, Action
from stepwell.agent.turn import TurnPayload

REPEATED = 4
"""Turns in a row with the same action and the same observation."""
ERRORS = 3
"""Turns in a row with the same action, each answered by an error."""
MONOLOGUE = 3
"""Turns in a row that call nothing."""
ALTERNATING = 6
"""Turns in a row in which two take turns."""


def why_stuck(turns: Sequence[TurnPayload]) -> str | None:
    """What the last turns show, or None where the agent still gets on. A pure function of what was recorded."""
    told = [(turn.action, turn.observation) for turn in turns[-ALTERNATING:]]
    if len(told) >= REPEATED and all(turn == told[-1] for turn in told[-REPEATED:]):
        return f"the same action had the same result {REPEATED} times"
    if len(told) >= MONOLOGUE and all(_calls_nothing(action) for action, _ in told[-MONOLOGUE:]):
        return f"{MONOLOGUE} turns called nothing"
    if len(told) >= ERRORS and all(
        action == told[-1][0] and _is_error(observation) for action, observation in told[-ERRORS:]
    ):
        return f"the same action failed {ERRORS} times"
    if len(told) == ALTERNATING and told[:2] * (ALTERNATING // 2) == told:
        return f"two turns took turns {ALTERNATING // 2} times"
    return None


def _calls_nothing(action: Action) -> bool:
    return action.tool == "invalid" and action.arguments.get("reason") == NO_CALL


def _is_error(observation: str) -> bool:
    return observation.startswith("Error: ")
