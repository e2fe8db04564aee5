"""Demonstrations of the compact tools by an imperfect expert, made by really using the tools."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random

from stepwell.agent.compact import CompactTools
from stepwell.agent.protocol import Renderer
from stepwell.policy.micro.config import ExpertConfig
from stepwell.policy.micro.repair import Substitution, defect_name, repair_of
from stepwell.policy.micro.trusted_sandbox import TrustedSandbox, completed
from stepwell.tasks.task import Task

MISTAKES = dict(
    pair.split()
    for pair in (
        *("+ -", "- +", "* +", "// %", "% //", "** *", "+= -=", "-= +=", "*= +="),
        *("== !=", "!= ==", "> >=", ">= >", "< <=", "<= <", "and or", "or and"),
        *("max min", "min max", "sum max", "all any", "any all", "True False", "False True"),
    )
)
"""The operators and words that the expert is unsure of: the right one, and the one it usually takes instead."""


@dataclass(frozen=True)
class Demonstration:
    """One episode as tokens."""

    token_ids: tuple[int, ...]
    acted: tuple[bool, ...]
    """True where the token is the expert's and worth learning; false for the issue, observations and slips."""


class Demonstrator:
    """Writes demonstrations for one renderer."""

    def __init__(self, renderer: Renderer, encode: Callable[[str], Sequence[int]], config: ExpertConfig) -> None:
        """Args:
        renderer: how issue and observations become tokens, as in a real rollout.
        encode: tokens of an action's text; the stop token is added here.
        config: how good the expert is.
        """
        self._renderer = renderer
        self._encode = encode
        self._config = config
        self._tools = CompactTools()

    def demonstrate(self, task: Task, random: Random) -> Demonstration:
        """One episode on a forged task."""
        sandbox = TrustedSandbox(task)
        ids = list(self._renderer.prompt_ids(self._tools.system_prompt(), task.issue))
        acted = [False] * len(ids)

        def act(text: str, *, learn: bool = True) -> str:
            turn = (*self._encode(text), self._renderer.stop_token_ids[0])
            ids.extend(turn)
            acted.extend([learn] * len(turn))
            observation = completed(self._tools.run(self._tools.parse(text), sandbox, task))
            if not observation.finished:
                answer = self._renderer.observation_ids(observation.text)
                ids.extend(answer)
                acted.extend([False] * len(answer))
            return observation.text

        right = repair_of(task)
        tried = self._attempt(right, random)
        act(f"view {defect_name(task)}")
        if random.random() < self._config.slips:
            act(replace(right, line=right.line + random.choice((-1, 1))).action, learn=False)
        act(tried.action)
        if random.random() < self._config.tests and act("test") != "passed" and tried.new != right.old:
            act(replace(right, old=tried.new).action)
        act("done")
        return Demonstration(tuple(ids), tuple(acted))

    def _attempt(self, right: Substitution, random: Random) -> Substitution:
        """The repair that the expert tries: the right one, or the same place with another text."""
        if right.new in MISTAKES:
            wrong = right.new if random.random() < self._config.unsure else MISTAKES[right.new]
            return replace(right, new=wrong)
        if random.random() < self._config.sure:
            return right
        return replace(right, new=right.old)
