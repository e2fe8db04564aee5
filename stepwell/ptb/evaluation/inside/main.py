"""The process in the sandbox: `python -m stepwell.ptb.evaluation.inside.main FOLDER`.

Reads a `Setup` and then batches from standard input, and answers on standard output; whatever libraries print goes to
standard error. Ends with standard input.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from stepwell.policy.protocol import EngineError
from stepwell.ptb.evaluation.inside.answerer import Answerer, Unanswerable
from stepwell.ptb.evaluation.wire import Answers, Ask, CannotAnswer, Ready, Said, Setup


def serve(folder: Path, lines: BinaryIO, say: Callable[[Said], None]) -> None:
    """Answers until there are no more lines; ends early with `CannotAnswer`."""
    setup = Setup.model_validate_json(lines.readline())
    try:
        answerer = _open(folder, setup, say)
        say(Ready(environment=answerer.environment))
        for line in lines:
            say(Answers(answers=tuple(answerer.answer(Ask.model_validate_json(line).questions))))
    except (EngineError, Unanswerable) as error:
        say(CannotAnswer(why=str(error)[:2000]))


def _open(folder: Path, setup: Setup, say: Callable[[Said], None]) -> Answerer:
    if setup.engine.kind == "vllm":
        from stepwell.ptb.evaluation.inside.vllm_answerer import VllmAnswerer

        return VllmAnswerer(folder, setup, say)
    from stepwell.ptb.evaluation.inside.batch_answerer import BatchAnswerer

    return BatchAnswerer(folder, setup, say)


def main() -> None:
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)

    def say(said: Said) -> None:
        out.write(said.model_dump_json().encode() + b"\n")
        out.flush()

    serve(Path(sys.argv[1]), sys.stdin.buffer, say)


if __name__ == "__main__":
    main()
