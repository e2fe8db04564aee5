"""A submission is evaluated by vLLM inside the sandbox; its server takes a minute to start."""

from pathlib import Path

import pytest
from transformers import LlamaConfig

from stepwell.ptb.evaluation import EngineSettings
from stepwell.ptb.evaluation.evaluation import evaluate_submission
from tests.ptb_submissions import gsm8k_files, order_for, submit

SHAPE = LlamaConfig(
    vocab_size=272,
    hidden_size=64,
    num_hidden_layers=2,
    num_attention_heads=2,
    num_key_value_heads=1,
    head_dim=32,
    intermediate_size=48,
    max_position_embeddings=1024,
)


@pytest.mark.long
async def test_vllm_answers_in_the_sandbox(tmp_path: Path) -> None:
    engine = EngineSettings(kind="vllm", at_once=2)
    order = order_for(submit(tmp_path / "model", config=SHAPE), gsm8k_files(tmp_path / "rows"), engine=engine)
    found = await evaluate_submission(order, tmp_path / "work")
    assert found.failure is None, found.died
    assert [len(one.items) for one in found.passes] == [5, 5]
    assert {item.answer.end for one in found.passes for item in one.items} <= {"length", "stop"}
    assert found.environment["vllm"]
