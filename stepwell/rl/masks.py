"""Which rollouts take no part in a training step, each with a named cause."""

from enum import StrEnum

from stepwell.agent.protocol import StopReason


class MaskReason(StrEnum):
    """Why a rollout has no part in the loss. The first group is decided before the step and recorded in the manifest;
    the last two are decided by the trainer, which alone knows its own log-probabilities."""

    INFRA = "infra"
    """Infrastructure failed after its budget of attempts: there is no score."""
    DATA = "data"
    """The prompt or the task is broken: there is no score."""
    NO_TOKENS = "no_tokens"
    """Nothing was generated."""
    CONTEXT = "context"
    """Cut off: the next turn would not have fitted the context (overlong filtering)."""
    WALL_CLOCK = "wall_clock"
    """Cut off by the agent's wall clock (overlong filtering)."""
    SOLVED_AT_TURN_LIMIT = "solved_at_turn_limit"
    """Solved, but the agent never said so (overlong filtering)."""
    ROWS = "rows"
    """Its turns make several rows of tokens, in a record from before such rows were listed."""
    GRADING_TIMEOUT = "grading_timeout"
    """The hidden tests did not end in time."""
    MISMATCH = "mismatch"
    """Mean of exp|trainer - engine| above `mismatch_max`: no loss, no part in the denominator."""
    IMPORTANCE = "importance"
    """Geometric mean of trainer over engine out of bounds: weight 0, still in the denominator."""


def mask_scored(
    stop: StopReason,
    reward: float,
    *,
    generated_tokens: int,
    has_row: bool,
    grading_timed_out: bool,
    overlong_filtering: bool,
) -> MaskReason | None:
    """Why a rollout that has a score is masked, or None if it trains.

    As in MLPerf Training v6.1: overlong filtering, and the `mask_sample` of its agent (limits and timeouts).
    """
    if generated_tokens == 0:
        return MaskReason.NO_TOKENS
    if not has_row:
        return MaskReason.ROWS
    if grading_timed_out:
        return MaskReason.GRADING_TIMEOUT
    if not overlong_filtering:
        return None
    if stop is StopReason.CONTEXT:
        return MaskReason.CONTEXT
    if stop is StopReason.WALL_CLOCK:
        return MaskReason.WALL_CLOCK
    if stop is StopReason.TURNS and reward > 0:
        return MaskReason.SOLVED_AT_TURN_LIMIT
    return None
