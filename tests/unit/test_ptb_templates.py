"""Chat templates by trusted metadata, and seeds of samples."""

import hashlib
from pathlib import Path

import pytest

from stepwell.ptb.chat import NoTemplate, render, template_of
from stepwell.ptb.item import Message
from stepwell.ptb.seeds import sample_seed

QWEN, GEMMA = "Qwen/Qwen3-4B-Base", "google/gemma-3-4b-pt"


def test_a_conversation_is_rendered_in_chatml() -> None:
    messages = (Message("system", "S"), Message("user", "U"), Message("assistant", "A"), Message("user", "V"))
    assert render(template_of(QWEN), messages) == (
        "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU<|im_end|>\n<|im_start|>assistant\nA<|im_end|>\n"
        "<|im_start|>user\nV<|im_end|>\n<|im_start|>assistant\n"
    )


def test_gemma_has_its_system_message_before_the_first_request() -> None:
    messages = (Message("system", "S"), Message("user", "U"), Message("assistant", "A"), Message("user", "V"))
    assert render(template_of(GEMMA), messages) == (
        "<bos><start_of_turn>user\nS\n\nU<end_of_turn>\n<start_of_turn>model\nA<end_of_turn>\n"
        "<start_of_turn>user\nV<end_of_turn>\n<start_of_turn>model\n"
    )


@pytest.mark.parametrize("model", [QWEN, GEMMA])
def test_functions_on_offer_stand_in_the_prompt_and_braces_in_a_text_stay(model: str) -> None:
    tool = '{"name": "f", "parameters": {}}'
    prompt = render(template_of(model), (Message("user", "Call {it}."),), (tool,))
    assert tool in prompt
    assert "Call {it}." in prompt
    assert '{"name": "<name>", "arguments": {"<argument>": <value>}}' in prompt


@pytest.mark.parametrize(
    "name",
    [
        # The published rule saw "qwen" in such a path.
        "runs/qwen3max_claude/gsm8k_google_gemma-3-4b-pt_17/final_model",
        "/models/Qwen/Qwen3-4B-Base",
        "qwen",
        "Qwen2ForCausalLM",
        "QWEN/QWEN3-4B-BASE",
        "",
    ],
)
def test_no_path_and_nothing_like_a_name_chooses_a_template(name: str) -> None:
    with pytest.raises(NoTemplate, match="no template for the base model"):
        template_of(name)


def test_the_template_of_a_model_does_not_depend_on_where_it_lies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = template_of(GEMMA)
    (tmp_path / "qwen").mkdir()
    monkeypatch.chdir(tmp_path / "qwen")
    assert template_of(GEMMA) == before != template_of(QWEN)
    assert before.digest != template_of(QWEN).digest


def test_a_conversation_without_a_request_is_refused() -> None:
    with pytest.raises(ValueError, match="does not end with a request"):
        render(template_of(QWEN), (Message("user", "U"), Message("assistant", "A")))


def test_each_sample_has_a_seed_of_its_own_by_the_published_formula() -> None:
    digest = hashlib.sha256(b"72332:gsm8k/5:0:0").digest()
    assert sample_seed(72332, "gsm8k/5") == int.from_bytes(digest[:4], "big") & 0x7FFFFFFF
    seeds = {sample_seed(run, f"gsm8k/{n}") for run in (72332, 87681) for n in range(1319)}
    assert len(seeds) > 2 * 1319 - 5
    assert len({sample_seed(1, "a"), sample_seed(1, "a", epoch=1), sample_seed(1, "a", call=1)}) == 3
