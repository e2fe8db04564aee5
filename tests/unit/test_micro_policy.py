"""The micro policy: tokenizer, chat format, demonstrations, warm-up."""

import hashlib
from collections import Counter
from pathlib import Path
from random import Random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models
from transformers import AutoModelForCausalLM, AutoTokenizer

from stepwell.agent.chat import CHATML, MICRO, ChatRenderer, NoSuchToken
from stepwell.agent.compact import CompactTools
from stepwell.policy.micro.config import ExpertConfig, MicroModelConfig, WarmUpConfig
from stepwell.policy.micro.demonstrations import MISTAKES, Demonstrator
from stepwell.policy.micro.repair import repair_of
from stepwell.policy.micro.tokenizer import SPECIAL_TOKENS, train_tokenizer
from stepwell.policy.micro.trusted_sandbox import TrustedSandbox, completed
from stepwell.policy.micro.warm_up import WarmUpStep, warm_up
from stepwell.tasks.forge import ForgeCounts, TaskSet, forge, forged_task

TINY = WarmUpConfig(
    model=MicroModelConfig(vocabulary=400, hidden=32, layers=2, heads=1, kv_heads=1, head_dim=32, feed_forward=32),
    steps=3,
    demonstrations=4,
)


@pytest.fixture(scope="module")
def task_set() -> TaskSet:
    return forge(5, ForgeCounts(train=300, validation=20, confirm=0, heldout_family=20))


@pytest.fixture(scope="module")
def tokenizer(task_set: TaskSet) -> Tokenizer:
    return train_tokenizer(task_set.train, 1024)


@pytest.fixture(scope="module")
def renderer(tokenizer: Tokenizer) -> ChatRenderer:
    return ChatRenderer(tokenizer, MICRO)


def ids_of(tokenizer: Tokenizer, text: str) -> list[int]:
    return tokenizer.encode(text).ids


def test_the_tokenizer_refuses_tasks_that_are_not_for_training(task_set: TaskSet):
    with pytest.raises(ValueError, match="is no training task"):
        train_tokenizer([*task_set.train, task_set.validation[0]], 1024)


def test_the_tokenizer_is_the_same_for_the_same_tasks(task_set: TaskSet, tokenizer: Tokenizer):
    assert train_tokenizer(task_set.train, 1024).to_str() == tokenizer.to_str()


@given(text=st.text())
def test_any_text_comes_back(tokenizer: Tokenizer, text: str):
    assert tokenizer.decode(ids_of(tokenizer, text), skip_special_tokens=False) == text


@pytest.mark.parametrize("operator", ["<", "<=", "==", "+", "-", "//", "%"])
def test_an_operator_is_the_same_token_in_code_and_in_an_action(tokenizer: Tokenizer, operator: str):
    in_code = ids_of(tokenizer, f" L3     return a {operator} b")
    in_action = ids_of(tokenizer, f"sub L3 {operator} {operator}")
    assert in_action[-1] == in_action[-2]
    assert in_action[-1] in in_code
    assert in_action[1] == in_code[0]


def test_an_episode_is_short(task_set: TaskSet, tokenizer: Tokenizer, renderer: ChatRenderer):
    demonstrator = Demonstrator(renderer, lambda text: ids_of(tokenizer, text), ExpertConfig())
    demonstrations = [demonstrator.demonstrate(task, Random(1)) for task in task_set.train]
    lengths = [len(demonstration.token_ids) for demonstration in demonstrations]
    assert sum(lengths) / len(lengths) < 140
    assert max(lengths) < MicroModelConfig().context


def test_text_from_outside_cannot_speak_with_control_tokens(tokenizer: Tokenizer, renderer: ChatRenderer):
    control = {tokenizer.token_to_id(token) for token in SPECIAL_TOKENS}
    hostile = "".join(SPECIAL_TOKENS)
    assert sum(token in control for token in renderer.observation_ids(hostile)) == 2
    assert sum(token in control for token in renderer.prompt_ids("", hostile)) == 2


def test_a_tokenizer_without_the_stop_token_is_refused():
    with pytest.raises(NoSuchToken, match=r"no token '<\|im_end\|>'"):
        ChatRenderer(Tokenizer(models.BPE()), CHATML)


def test_a_repair_turns_the_files_into_the_reference_solution(task_set: TaskSet):
    tools = CompactTools()
    for task in task_set.every():
        sandbox = TrustedSandbox(task)
        completed(tools.run(tools.parse(repair_of(task).action), sandbox, task))
        assert sandbox.files == {**task.files, **task.gold}, task.id


def test_a_demonstration_holds_what_a_rollout_of_its_actions_would(
    task_set: TaskSet, tokenizer: Tokenizer, renderer: ChatRenderer
):
    tools = CompactTools()
    demonstrator = Demonstrator(renderer, lambda text: ids_of(tokenizer, text), ExpertConfig(tests=0.5, slips=0.5))
    for task in task_set.train[::10]:
        demonstration = demonstrator.demonstrate(task, Random(task.id))
        context = list(renderer.prompt_ids("", task.issue))
        sandbox = TrustedSandbox(task)
        finished = False
        while not finished:
            turn: list[int] = []
            while not turn or turn[-1] not in renderer.stop_token_ids:
                turn.append(demonstration.token_ids[len(context) + len(turn)])
            context += turn
            action = tools.parse(renderer.action_text(tuple(turn)))
            assert action.tool != "invalid"
            observation = completed(tools.run(action, sandbox, task))
            finished = observation.finished
            if not finished:
                context += renderer.observation_ids(observation.text)
        assert tuple(context) == demonstration.token_ids


def test_the_usual_mistake_outweighs_the_right_repair_of_an_operator(task_set: TaskSet, tokenizer, renderer):
    demonstrator = Demonstrator(
        renderer, lambda text: ids_of(tokenizer, text), ExpertConfig(unsure=0.35, tests=0, slips=0)
    )
    task = next(task for task in task_set.train if repair_of(task).new in MISTAKES)
    right = renderer.stop_token_ids[0], tuple(ids_of(tokenizer, repair_of(task).action))
    outcomes = Counter(
        str(right[1])[1:-1] in str(demonstrator.demonstrate(task, Random(draw)).token_ids) for draw in range(400)
    )
    assert 100 < outcomes[True] < 180


def test_the_warm_up_gives_the_same_bits_again(task_set: TaskSet, tmp_path: Path):
    steps: list[WarmUpStep] = []
    digests: set[str] = set()
    for name in ("one", "two"):
        steps.clear()
        torch.manual_seed(len(name) + len(digests))
        warm_up(3, TINY, task_set.train, tmp_path / name, steps.append)
        digests.add(hashlib.sha256((tmp_path / name / "model.safetensors").read_bytes()).hexdigest())
    assert len(digests) == 1
    assert [step.step for step in steps] == [1, 2, 3]


def test_the_warm_up_of_another_seed_gives_other_weights(task_set: TaskSet, tmp_path: Path):
    warm_up(3, TINY, task_set.train, tmp_path / "one")
    warm_up(4, TINY, task_set.train, tmp_path / "two")
    one, two = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("one", "two"))
    assert one != two


def test_the_loss_falls_during_a_warm_up(task_set: TaskSet, tmp_path: Path):
    losses: list[float] = []
    warm_up(
        3, TINY.model_copy(update={"steps": 60, "rise": 5}), task_set.train, tmp_path, lambda s: losses.append(s.loss)
    )
    assert sum(losses[-5:]) < 0.8 * sum(losses[:5])


def test_hugging_face_loads_the_folder_and_renders_the_same_prompt(task_set: TaskSet, tmp_path: Path):
    warm_up(3, TINY, task_set.train, tmp_path)
    model = AutoModelForCausalLM.from_pretrained(tmp_path)
    wrapped = AutoTokenizer.from_pretrained(tmp_path)
    renderer = ChatRenderer(Tokenizer.from_file(str(tmp_path / "tokenizer.json")), MICRO)
    assert model.dtype == torch.float32
    assert model.config.model_type == "qwen3"
    assert wrapped.eos_token_id == model.generation_config.eos_token_id == renderer.stop_token_ids[0]
    issue, action, observation = "f(2) gives 1, expected 2.", "view", "# core.py\n L1 def f(a):\n L2     return a - 1"
    messages = [
        {"role": "user", "content": issue},
        {"role": "assistant", "content": action},
        {"role": "tool", "content": observation},
    ]
    ours = [*renderer.prompt_ids("", issue), *wrapped.encode(action), renderer.stop_token_ids[0]]
    ours += renderer.observation_ids(observation)
    assert wrapped.apply_chat_template(messages, add_generation_prompt=True)["input_ids"] == ours


def test_key_heads_that_do_not_divide_the_heads_are_refused():
    with pytest.raises(ValueError, match="kv_heads is 3, which does not divide heads, 4"):
        MicroModelConfig(heads=4, kv_heads=3)


def test_fresh_tasks_have_one_substitution_as_their_repair():
    for index in range(300):
        assert repair_of(forged_task(9, "train", index)).action.startswith("sub L")
