"""When an agent counts as stuck, and that its rollout ends so."""

import pytest

from stepwell.agent.codeact import CodeActTools
from stepwell.agent.protocol import NO_CALL, Action
from stepwell.agent.stuck import why_stuck
from stepwell.agent.turn import TurnPayload


def turn(command: str, observation: str, tool: str = "execute_bash") -> TurnPayload:
    return TurnPayload(
        delta_ids=(1,),
        token_ids=(2,),
        logprobs=(-1.0,),
        finish_reason="stop",
        action=Action(tool, {"reason" if tool == "invalid" else "command": command}),
        observation=observation,
        finished=False,
    )


A, B, OTHER = turn("a", "1"), turn("b", "2"), turn("c", "3")
SAME_ERROR = [turn("a", f"Error: {number}") for number in range(3)]
TALK = [turn(NO_CALL, f"Error: {NO_CALL}", "invalid")] * 3
WRONG = [turn(f"there is no function '{number}'", f"Error: no {number}", "invalid") for number in range(5)]


@pytest.mark.parametrize(
    ("turns", "said"),
    [
        ([], None),
        ([A] * 3, None),
        ([OTHER, *[A] * 4], "same action had the same result"),
        ([*[A] * 4, OTHER], None),
        ([turn("a", str(number)) for number in range(8)], None),
        (SAME_ERROR[:2], None),
        ([OTHER, *SAME_ERROR], "same action failed 3 times"),
        ([OTHER, *TALK[:2]], None),
        ([OTHER, *TALK], "3 turns called nothing"),
        (WRONG, None),
        ([A, B] * 2, None),
        ([A, B] * 3, "two turns took turns"),
        ([A, B, A, B, A, OTHER], None),
    ],
)
def test_circles_are_seen_and_progress_is_not_mistaken_for_one(turns: list[TurnPayload], said: str | None) -> None:
    why = why_stuck(turns)
    assert why is None if said is None else said in (why or "")


def test_text_without_a_call_is_a_monologue() -> None:
    assert CodeActTools().parse("Hm.").arguments["reason"] == NO_CALL
    assert CodeActTools().parse("<tool_call>x").arguments["reason"] != NO_CALL
