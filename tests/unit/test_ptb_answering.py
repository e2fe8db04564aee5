"""The process inside, without its sandbox: what it answers, and what it says of models that cannot."""

import io
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, models, normalizers

from stepwell.ptb.evaluation import EngineSettings
from stepwell.ptb.evaluation.inside.batch_answerer import BatchAnswerer
from stepwell.ptb.evaluation.inside.main import serve
from stepwell.ptb.evaluation.wire import Answers, Ask, CannotAnswer, Question, Ready, Said, Setup
from tests.byte_tokenizer import byte_tokenizer
from tests.ptb_submissions import LLAMA, edit_json, submit


def setup(**fields: object) -> Setup:
    return Setup.model_validate(
        {
            "engine": EngineSettings(),
            "temperature": 1.0,
            "top_p": 1.0,
            "stop_ids": (),
            "stop_texts": (),
            "end_of_turn": "<|im_end|>",
            **fields,
        }
    )


def question(prompt: str, seed: int = 1, max_tokens: int = 12) -> Question:
    return Question(prompt=prompt, seed=seed, max_tokens=max_tokens)


def said_by(model: Path, *batches: Ask, how: Setup | None = None) -> list[Said]:
    """All that the process says, of one that is asked these batches."""
    lines = [(how or setup()).model_dump_json(), *(batch.model_dump_json() for batch in batches)]
    found: list[Said] = []
    serve(model, io.BytesIO("\n".join(lines).encode()), found.append)
    return found


def why_not(model: Path, how: Setup | None = None) -> str:
    """Why a model gives no answer."""
    *_, last = said_by(model, Ask(questions=(question("What?"),)), how=how)
    assert isinstance(last, CannotAnswer), last
    return last.why


def test_a_batch_gives_the_same_bits_whatever_was_answered_before(tmp_path: Path) -> None:
    model = submit(tmp_path / "model", config=LLAMA)
    first = Ask(questions=(question("One question", 1), question("One question of more words", 2)))
    second = Ask(questions=(question("One question", 3), question("Something else", 4)))
    ready, *both = said_by(model, first, second)
    assert isinstance(ready, Ready)
    assert ready.environment["threads"] == "1"
    (_, alone) = said_by(model, second)
    assert both[1] == alone
    assert isinstance(alone, Answers)
    assert both[0] != alone


def test_another_seed_gives_another_answer_and_the_most_probable_tokens_do_not(tmp_path: Path) -> None:
    model = submit(tmp_path / "model")
    two = (question("Question", 1), question("Question", 2))
    sampled = BatchAnswerer(model, setup(), print).answer(two)
    assert sampled[0].text != sampled[1].text
    greedy = BatchAnswerer(model, setup(top_p=1e-6), print).answer(two)
    assert greedy[0] == greedy[1]


def test_a_question_that_fills_the_context_has_no_answer_and_one_near_it_a_short_one(tmp_path: Path) -> None:
    model = submit(tmp_path / "model")
    edit_json(model / "config.json", max_position_embeddings=64)
    long, near, short = BatchAnswerer(model, setup(), print).answer(
        [question("x" * 64), question("x" * 60), question("x" * 8)]
    )
    assert (long.end, long.text, long.tokens) == ("no_room", "", 0)
    assert (near.end, near.tokens) == ("length", 4)
    assert (short.end, short.tokens) == ("length", 12)


def test_positions_that_no_machine_could_hold_take_no_memory(tmp_path: Path) -> None:
    model = submit(tmp_path / "model")
    edit_json(model / "config.json", max_position_embeddings=10**12)
    (answer,) = BatchAnswerer(model, setup(), print).answer([question("Question")])
    assert answer.tokens == 12


def test_an_answer_ends_at_the_tokens_that_are_named_and_at_the_end_of_the_turn(tmp_path: Path) -> None:
    model = submit(tmp_path / "model")
    (free,) = BatchAnswerer(model, setup(), print).answer([question("Question", max_tokens=8)])
    end = byte_tokenizer().encode(free.text).ids[0]
    (stopped,) = BatchAnswerer(model, setup(stop_ids=(end,)), print).answer([question("Question", max_tokens=8)])
    assert (stopped.text, stopped.end, stopped.tokens) == ("", "stop", 1)
    # A tokenizer without a token for the end of a turn writes it in letters.
    (cut,) = BatchAnswerer(model, setup(end_of_turn=free.text[2]), print).answer([question("Question", max_tokens=8)])
    assert (cut.text, cut.end) == (free.text.split(free.text[2])[0], "stop")


def test_a_tokenizer_that_makes_one_token_of_everything_is_answered_and_says_nothing(tmp_path: Path) -> None:
    one = Tokenizer(models.WordLevel({"everything": 0}, unk_token="everything"))
    model = submit(tmp_path / "model", tokenizer=one)
    (answer,) = BatchAnswerer(model, setup(), print).answer([question("What is 6 times 7?")])
    assert answer.prompt_tokens == 1
    assert set(answer.text.split()) <= {"everything"}


def test_weights_that_are_no_numbers_are_said_to_be_so(tmp_path: Path) -> None:
    model = submit(tmp_path / "model")
    tensors = load_file(model / "model.safetensors")
    save_file({name: tensor * torch.nan for name, tensor in tensors.items()}, model / "model.safetensors")
    assert "cannot be sampled from: logits are not finite" in why_not(model)


def test_a_tensor_that_is_missing_is_not_made_up(tmp_path: Path) -> None:
    model = submit(tmp_path / "model")
    tensors = load_file(model / "model.safetensors")
    del tensors["model.layers.1.mlp.up_proj.weight"]
    save_file(tensors, model / "model.safetensors")
    assert "1 tensors missing ['model.layers.1.mlp.up_proj.weight']" in why_not(model)


def test_an_architecture_that_a_submission_brings_itself_is_not_run(tmp_path: Path) -> None:
    model = submit(tmp_path / "model")
    ran = tmp_path / "ran"
    (model / "modeling_evil.py").write_text(f"open({str(ran)!r}, 'w')")
    auto_map = {"AutoConfig": "modeling_evil.Config", "AutoModelForCausalLM": "modeling_evil.Evil"}
    edit_json(model / "config.json", model_type="evil", auto_map=auto_map)
    assert "is not a model that transformers can open" in why_not(model)
    assert not ran.exists()


@pytest.mark.parametrize(
    ("tokenizer", "reason"),
    [
        ("{}", "tokenizer.json is no tokenizer"),
        ("deletes", "tokenizer.json makes no token of a question"),
        ("beyond", "makes token 999 of a question, and the model has 272"),
    ],
)
def test_a_tokenizer_that_does_not_fit_is_said_to_be_so(tmp_path: Path, tokenizer: str, reason: str) -> None:
    model = submit(tmp_path / "model")
    if tokenizer == "deletes":
        deleting = byte_tokenizer()
        deleting.normalizer = normalizers.Replace("What?", "")
        deleting.save(str(model / "tokenizer.json"))
    elif tokenizer == "beyond":
        Tokenizer(models.WordLevel({"it": 999}, unk_token="it")).save(str(model / "tokenizer.json"))
    else:
        (model / "tokenizer.json").write_text(tokenizer)
    assert reason in why_not(model)
