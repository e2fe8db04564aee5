"""Generation speed: rollouts of several turns on the transformers engine, in process and over HTTP, and on vLLM.

Compared with `model.generate` of transformers on the same prompts in one padded batch, turn by turn, which computes
every context anew. The model is a random one of the micro policy's size. Prints tokens a second and ratios; other
work on the machine moves the former more than the latter.

    python bench/engines.py [--threads 1] [--rollouts 128] [--turns 4] [--vllm]
"""

import argparse
import asyncio
import random
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

from stepwell.policy.engine_http.client import EngineClient
from stepwell.policy.engine_http.server import listen, make_app
from stepwell.policy.engine_http.service import EngineService
from stepwell.policy.engines import EngineConfig, make_engine
from stepwell.policy.protocol import Engine, GenerateRequest, Generation

VOCAB, PROMPT, OBSERVATION, GENERATED, GROUP = 768, 110, 12, 12, 16
Generate = Callable[[GenerateRequest], Awaitable[Generation]]


def tokens(count: int, *key: int) -> tuple[int, ...]:
    source = random.Random(str(key))
    return tuple(source.randrange(3, VOCAB) for _ in range(count))


async def rollouts(generate: Generate, count: int, turns: int, run: int) -> float:
    """Runs all rollouts at once and returns generated tokens a second; the prompt is shared within a group."""

    async def rollout(index: int) -> None:
        context = tokens(PROMPT, run, index // GROUP)
        for turn in range(turns):
            generation = await generate(GenerateRequest(context, GENERATED, 1.0, 1.0, index * 1000 + turn, (), 1))
            context += generation.token_ids + tokens(OBSERVATION, run, index, turn)

    began = time.perf_counter()
    await asyncio.gather(*(rollout(index) for index in range(count)))
    return count * turns * GENERATED / (time.perf_counter() - began)


def plain(folder: Path, count: int, turns: int, threads: int) -> float:
    """The same work by `model.generate`."""
    torch.set_num_threads(threads)
    model = Qwen3ForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    contexts = torch.tensor([tokens(PROMPT, 0, index // GROUP) for index in range(count)])
    began = time.perf_counter()
    with torch.inference_mode():
        for turn in range(turns):
            contexts = model.generate(
                contexts, attention_mask=torch.ones_like(contexts), max_new_tokens=GENERATED, do_sample=True, top_k=0
            )
            observations = torch.tensor([tokens(OBSERVATION, 0, index, turn) for index in range(count)])
            contexts = torch.cat([contexts, observations], dim=1)
    return count * turns * GENERATED / (time.perf_counter() - began)


async def best(generate: Generate, count: int, turns: int) -> float:
    return max([await rollouts(generate, count, turns, run) for run in range(3)])


async def over_http(engine: Engine, folder: Path, count: int, turns: int) -> float:
    service = EngineService(engine)
    await service.load(1, folder)
    listening = await listen(make_app(service, "token"))
    async with EngineClient(listening.url, "token") as client:
        speed = await best(client.generate, count, turns)
    await listening.close()
    return speed


async def measure(kind: str, folder: Path, args: argparse.Namespace, reference: float) -> None:
    config = EngineConfig.model_validate({"kind": kind, "threads": args.threads, "max_context": 320})
    engine = await make_engine(config, folder)
    await engine.load(1, folder)
    report(
        f"{kind}, in process" if kind == "transformers" else kind, await best(engine.generate, *size(args)), reference
    )
    if kind == "transformers":
        report("transformers, server and client in one loop", await over_http(engine, folder, *size(args)), reference)
    await engine.close()


def size(args: argparse.Namespace) -> tuple[int, int]:
    return args.rollouts, args.turns


def report(name: str, speed: float, reference: float) -> None:
    print(f"{name:45} {speed:8.0f} tokens/s   {speed / reference:5.2f} x", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rollouts", type=int, default=128)
    parser.add_argument("--turns", type=int, default=4)
    parser.add_argument("--vllm", action="store_true", help="also vLLM, which takes a minute to start")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root)
        torch.manual_seed(0)
        config = Qwen3Config(
            vocab_size=VOCAB,
            hidden_size=128,
            intermediate_size=384,
            num_hidden_layers=4,
            num_attention_heads=2,
            num_key_value_heads=1,
            head_dim=64,
            max_position_embeddings=512,
            tie_word_embeddings=True,
            eos_token_id=None,
            bos_token_id=None,
            pad_token_id=0,
        )
        Qwen3ForCausalLM(config).save_pretrained(folder)
        reference = plain(folder, *size(args), args.threads)
        report("model.generate, one batch a turn", reference, reference)
        for kind in ("transformers", "vllm") if args.vllm else ("transformers",):
            asyncio.run(measure(kind, folder, args, reference))


if __name__ == "__main__":
    main()
