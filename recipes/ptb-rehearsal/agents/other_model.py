"""A cheat: submits another model under the base model's configuration.

    python other_model.py [--model FOLDER]

Without a folder the other model is one of the same shape that was begun anew, so that no configuration tells them
apart.
"""

import argparse
import shutil
from pathlib import Path
from typing import Any

import torch
from fine_tuning import BASE, SUBMISSION, say, tell
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", type=Path)
    args = parser.parse_args()
    tell(kind="start", model="other_model.py")
    if args.model is not None:
        shutil.copytree(args.model, SUBMISSION, dirs_exist_ok=True)
        say(f"submitted {args.model}")
    else:
        torch.manual_seed(7)
        model: Any = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(BASE, local_files_only=True))
        model.save_pretrained(SUBMISSION)
        AutoTokenizer.from_pretrained(BASE, local_files_only=True).save_pretrained(SUBMISSION)
        say("submitted a model of the same shape that is not the base model")
    tell(kind="end", failed=False)


if __name__ == "__main__":
    main()
