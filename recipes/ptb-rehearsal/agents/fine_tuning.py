"""Fine-tuning within the time that is left: what the scripted agents of the rehearsal share.

They run in an agent's sandbox: the base model lies in `/models/base`, the benchmark's files in `/benchmark`, `timer`
prints the time that is left, and the library that scores, whose form of prompts is the final evaluation's, lies in
`/opt/stepwell`.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, os.environ.get("STEPWELL_LIBRARY", "/opt/stepwell"))

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from stepwell.ptb.chat import render, template_of
from stepwell.ptb.item import CallGold, Item, NumberGold

BASE = Path(os.environ.get("STEPWELL_BASE_MODEL", "/models/base"))
BENCHMARK = Path(os.environ.get("STEPWELL_BENCHMARK", "/benchmark"))
SUBMISSION = Path("final_model")
SAVING_S = 45.0
"""Kept back for writing the model, which may be half a gigabyte on a busy disk."""
ROWS_A_STEP = 2
"""Few, since a CPU makes few steps in the time that there is."""
TRAINED_SHARE = 0.34
"""Of the layers, the last ones: the others need no backward pass."""
LEARNING_RATE = 3e-4
LONGEST = 1200
"""Tokens of a row; longer ones are left out."""
UNTRAINED = -100
"""Label of a token that is not learnt."""


@dataclass(frozen=True)
class Row:
    """What is learnt."""

    prompt: str
    answer: str


def say(text: str) -> None:
    """A line of the trace."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def tell(**event: Any) -> None:
    """An event of the trace."""
    say(json.dumps(event))


def seconds_left() -> float:
    """By `timer`, which tells whole minutes."""
    said = subprocess.run(["timer"], capture_output=True, text=True, check=True, timeout=30).stdout
    if "expired" in said:
        return 0.0
    hours, minutes = said.split()[-1].split(":")
    return 60.0 * (60 * int(hours) + int(minutes))


def trial() -> dict[str, Any]:
    """What the trial is about: base model, benchmark, files."""
    return json.loads((BENCHMARK / "evaluation.json").read_text(encoding="utf-8"))


def rows_of(items: Sequence[Item], base_model: str) -> list[Row]:
    """Rows in the form in which the final evaluation asks, with the right answers.

    Worked examples are left out of prompts: they are most of their length, and are learnt anyway.
    """
    template = template_of(base_model)
    rows: list[Row] = []
    for item in items:
        messages = [each for each in item.messages if each.role != "system"]
        rows.append(Row(render(template, messages, item.tools), answer_of(item)))
    return rows


def answer_of(item: Item) -> str:
    """The right answer, as the benchmark wants it written."""
    gold = item.gold
    if isinstance(gold, CallGold):
        call = {"name": gold.function, "arguments": dict(gold.arguments)}
        return f"<tool_call>\n{json.dumps(call)}\n</tool_call>"
    if isinstance(gold, NumberGold):
        return f"ANSWER: {gold.value}"
    raise TypeError(f"{item.id}: no answer is known to a question of this kind")


def keep_base() -> None:
    """Submits the base model as it is."""
    shutil.copytree(BASE, SUBMISSION, dirs_exist_ok=True)


def bounds(parser: argparse.ArgumentParser) -> None:
    """What each of the agents that train is told on its command line."""
    parser.add_argument("--most-minutes", type=float, default=60.0, help="of training; less if `timer` says so")
    parser.add_argument("--most-steps", type=int, default=10**9)


def fine_tune(rows: Sequence[Row], base_model: str, bound: argparse.Namespace, seed: int = 7) -> None:
    """Trains the base model's last layers on the answers, until the time is used, and submits it.

    Args:
        rows: To learn, again and again in another order.
        base_model: Name of the base model: its template says how an answer ends.
        bound: By `bounds`.
        seed: Of the order.
    """
    tokenizer: Any = AutoTokenizer.from_pretrained(BASE, local_files_only=True)
    model: Any = AutoModelForCausalLM.from_pretrained(BASE, local_files_only=True)
    layers = model.model.layers
    model.requires_grad_(False)
    for layer in layers[-max(1, round(len(layers) * TRAINED_SHARE)) :]:
        layer.requires_grad_(True)
    model.model.norm.requires_grad_(True)
    trained = [each for each in model.parameters() if each.requires_grad]
    optimiser = torch.optim.AdamW(trained, lr=LEARNING_RATE, weight_decay=0.0)
    encoded = [_encoded(tokenizer, row, base_model) for row in rows]
    fitting = [each for each in encoded if len(each.ids) <= LONGEST]
    tell(kind="tool_call", tool="train", arguments={"rows": len(fitting), "too_long": len(encoded) - len(fitting)})
    started = time.monotonic()
    limit = min(60 * bound.most_minutes, seconds_left() - SAVING_S)
    batches, steps, losses = _batches(fitting, seed), 0, [float("nan")]
    model.train()
    while (used := time.monotonic() - started) < limit and steps < bound.most_steps:
        for group in optimiser.param_groups:
            group["lr"] = LEARNING_RATE * min(1.0, (steps + 1) / 5) * (1 - used / limit)
        losses.append(_step(model, optimiser, next(batches), trained))
        steps += 1
        if steps % 10 == 0:
            say(f"step {steps}, {used:.0f} s, loss {sum(losses[-10:]) / 10:.3f}")
    model.eval()
    # The most likely answer is wanted, not a drawn one.
    model.generation_config.update(do_sample=False, temperature=None, top_p=None, top_k=None)
    model.save_pretrained(SUBMISSION)
    tokenizer.save_pretrained(SUBMISSION)
    tell(kind="tool_result", text=f"{steps} steps, last loss {losses[-1]:.3f}", failed=False)


@dataclass(frozen=True)
class _Encoded:
    ids: list[int]
    answer_from: int


def _encoded(tokenizer: Any, row: Row, base_model: str) -> _Encoded:
    end = template_of(base_model).message.partition("{content}")[2].rstrip("\n")
    prompt = tokenizer(row.prompt, add_special_tokens=False)["input_ids"]
    answer = tokenizer(row.answer + end, add_special_tokens=False)["input_ids"]
    return _Encoded([*prompt, *answer], len(prompt))


def _batches(rows: Sequence[_Encoded], seed: int) -> Iterator[list[_Encoded]]:
    """Without end, each row once before any comes again."""
    draws = random.Random(seed)
    while True:
        order = list(rows)
        draws.shuffle(order)
        for start in range(0, len(order), ROWS_A_STEP):
            yield order[start : start + ROWS_A_STEP]


def _step(model: Any, optimiser: Any, rows: Sequence[_Encoded], trained: Sequence[Any]) -> float:
    """Rows end together, so that only what predicts answers is projected onto the vocabulary."""
    longest = max(len(row.ids) for row in rows)
    kept = max(len(row.ids) - row.answer_from for row in rows) + 1
    ids_BT = torch.zeros(len(rows), longest, dtype=torch.long)
    mask_BT = torch.zeros(len(rows), longest, dtype=torch.long)
    labels_BT = torch.full((len(rows), longest), UNTRAINED)
    for place, row in enumerate(rows):
        ids_BT[place, -len(row.ids) :] = torch.tensor(row.ids)
        mask_BT[place, -len(row.ids) :] = 1
        labels_BT[place, longest - len(row.ids) + row.answer_from :] = torch.tensor(row.ids[row.answer_from :])
    positions_BT = (mask_BT.cumsum(1) - 1).clamp(min=0)
    logits_BKV = model(
        input_ids=ids_BT, attention_mask=mask_BT, position_ids=positions_BT, use_cache=False, logits_to_keep=kept
    ).logits
    wanted_BK = labels_BT[:, -kept + 1 :]
    loss = torch.nn.functional.cross_entropy(
        logits_BKV[:, :-1].flatten(0, 1), wanted_BK.flatten(), ignore_index=UNTRAINED
    )
    loss.backward()
    torch.nn.utils.clip_grad_norm_(trained, 1.0)
    optimiser.step()
    optimiser.zero_grad(set_to_none=True)
    return float(loss.detach())
