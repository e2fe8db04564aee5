"""Demonstrations made from gold patches, in real sandboxes: what they hold, and what comes of playing them again."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from stepwell.agent.chat import CHATML, QWEN3_XML, ChatFormat, ChatRenderer
from stepwell.agent.codeact import CodeActTools
from stepwell.agent.episode import EpisodeLimits
from stepwell.policy.gold_demonstrations import Demonstration, Demonstrator
from stepwell.sandbox.bubblewrap import BubblewrapFactory
from stepwell.sandbox.protocol import SandboxLimits
from stepwell.tasks.grading.grade import grade
from stepwell.tasks.grading.verdict import Score
from stepwell.tasks.place import with_place
from stepwell.tasks.task import Task
from tests.byte_tokenizer import TOKENIZER
from tests.stack.small_package import MODULE

DEFECTS = {
    "sign": ('if plus and amount > 0 else ""', 'if plus or amount > 0 else ""'),
    "many lines": (
        "        if item == last:\n            count += 1\n",
        "        if item != last:\n            pass\n",
    ),
    "twice in the file": (
        "    if count > 0:\n        yield last, count\n",
        "    if count < 0:\n        yield last, count\n",
    ),
}
"""The right text and the wrong one."""
HIDDEN = {
    "tests/test_wallet.py": (
        "from wallet import runs, spell\n\n\n"
        'def test_spell():\n    assert spell(3) == "3 ct"\n    assert spell(3, plus=True) == "+3 ct"\n\n\n'
        'def test_runs():\n    assert list(runs("aabb")) == [("a", 2), ("b", 2)]\n'
    )
}
ROOMY = EpisodeLimits(max_turns=3, max_context_tokens=8192, max_turn_tokens=1024, wall_clock_s=600.0)


def task_of(name: str) -> Task:
    right, wrong = DEFECTS[name]
    at = MODULE.rindex(right)
    broken = MODULE[:at] + wrong + MODULE[at + len(right) :]
    task = Task(
        id=f"wallet/{name}",
        family="wallet",
        split="train",
        difficulty=1,
        issue="`wallet` misbehaves.",
        files={"wallet.py": broken},
        hidden=HIDDEN,
        gold={"wallet.py": MODULE},
        grader="calls",
        expected=("tests/test_wallet.py::test_spell", "tests/test_wallet.py::test_runs"),
        timeout_s=300.0,
    )
    return with_place(task, 4)


TASKS = [task_of(name) for name in DEFECTS]


@pytest.fixture(scope="module")
async def factory(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[BubblewrapFactory]:
    made = BubblewrapFactory(tmp_path_factory.mktemp("sandboxes"))
    yield made
    await made.close()


def demonstrator(factory: BubblewrapFactory, chat: ChatFormat = CHATML, limits: EpisodeLimits = ROOMY) -> Demonstrator:
    def tools(task: Task) -> CodeActTools:
        return CodeActTools(chat.calls, functions=("str_replace_editor", "finish"), prompt="examples")

    return Demonstrator(tools, ChatRenderer(TOKENIZER, chat), limits, factory, SandboxLimits())


def turns_of(demonstration: Demonstration) -> list[tuple[int, ...]]:
    """Each run of tokens that is to be learned."""
    turns: list[list[int]] = [[]]
    for token, said in zip(demonstration.row.token_ids, demonstration.row.generated, strict=True):
        if said:
            turns[-1].append(token)
        elif turns[-1]:
            turns.append([])
    return [tuple(turn) for turn in turns if turn]


@pytest.mark.parametrize("chat", [CHATML, QWEN3_XML], ids=["json", "xml"])
async def test_played_again_a_demonstration_is_what_a_rollout_would_be_and_the_grader_gives_1(
    factory: BubblewrapFactory, chat: ChatFormat
) -> None:
    renderer, tools = ChatRenderer(TOKENIZER, chat), demonstrator(factory, chat).tools(TASKS[0])
    demonstrations = await demonstrator(factory, chat).demonstrate(TASKS)
    assert [one.task for one in demonstrations] == [task.id for task in TASKS]
    for task, demonstration in zip(TASKS, demonstrations, strict=True):
        context = list(renderer.prompt_ids(tools.system_prompt(), task.issue))
        sandbox = await factory.create({path: text.encode() for path, text in task.files.items()}, SandboxLimits())
        turns = turns_of(demonstration)
        assert len(turns) == 3
        for place, turn in enumerate(turns):
            assert turn[-1] in renderer.stop_token_ids
            context += turn
            observation = await tools.run(tools.parse(renderer.action_text(turn)), sandbox, task)
            assert observation.finished == (place == 2)
            if not observation.finished:
                assert not observation.text.startswith("Error")
                context += renderer.observation_ids(observation.text)
        assert tuple(context) == demonstration.row.token_ids
        verdict = await grade(task, await sandbox.changed_files(), factory)
        await sandbox.destroy()
        assert isinstance(verdict, Score)
        assert verdict.value == 1.0, verdict.report
        undone = await grade(task, {}, factory)
        assert isinstance(undone, Score)
        assert undone.value == 0.0


async def test_nothing_but_what_the_expert_says_is_to_be_learned(factory: BubblewrapFactory) -> None:
    (demonstration,) = await demonstrator(factory).demonstrate(TASKS[:1])
    said = "".join(TOKENIZER.decode(list(turn), skip_special_tokens=False) for turn in turns_of(demonstration))
    rest = [
        token for token, flag in zip(demonstration.row.token_ids, demonstration.row.generated, strict=True) if not flag
    ]
    told = TOKENIZER.decode(rest, skip_special_tokens=False)
    assert said.count("<tool_call>") == said.count("<|im_end|>") == 3
    assert "plus and amount" in said
    assert "<|im_start|>" not in said
    assert "Here is /work/wallet.py" in told
    assert "Repaired." not in told.partition("`wallet` misbehaves.")[2]
    demonstration.row.check()


async def test_only_training_tasks_are_demonstrated(factory: BubblewrapFactory) -> None:
    for split in ("validation", "confirm", "heldout_family"):
        with pytest.raises(ValueError, match="no training task"):
            await demonstrator(factory).demonstrate([TASKS[0], TASKS[1].model_copy(update={"split": split})])


@pytest.mark.parametrize(
    "bounds",
    [{"max_context_tokens": 64}, {"max_context_tokens": 1200}, {"max_turn_tokens": 40}, {"max_turns": 2}],
    ids=["no prompt", "no third turn", "no call", "no finish"],
)
async def test_what_does_not_fit_the_agents_bounds_is_left_out(
    factory: BubblewrapFactory, bounds: dict[str, int]
) -> None:
    assert await demonstrator(factory, limits=replace(ROOMY, **bounds)).demonstrate(TASKS[:1]) == []


async def test_a_task_whose_issue_names_no_lines_is_left_out(factory: BubblewrapFactory) -> None:
    silent = TASKS[0].model_copy(update={"issue": "`wallet` misbehaves."})
    made = await demonstrator(factory).demonstrate([silent, TASKS[1]])
    assert [one.task for one in made] == [TASKS[1].id]
