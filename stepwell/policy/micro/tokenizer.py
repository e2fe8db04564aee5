"""Byte-level BPE of the micro policy, trained on forged training tasks and nothing else."""

from collections.abc import Iterable, Iterator, Sequence

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from stepwell.agent.compact import lexemes
from stepwell.tasks.task import Task

PAD = "<|pad|>"
SPECIAL_TOKENS = (PAD, "<|user|>", "<|assistant|>", "<|tool|>", "<|end|>")
CHAT_TEMPLATE = (
    "{% for message in messages %}{% set role = message['role'] %}"
    "{% if role == 'system' %}<|user|> {{ message['content'] }}\n"
    "{% elif role == 'user' %}<|user|> {{ message['content'] }}"
    "{% elif role == 'tool' %}<|tool|>{{ message['content'] }}"
    "{% else %}<|assistant|>{{ message['content'] }}<|end|>{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
"""The format `MICRO` of `stepwell.agent.chat`, as `tokenizer_config.json` has it."""

# What one token may span at most: a line number, a word with its space or underscore, a digit, an operator, a run of
# spaces before a word. So the `<` of a line of code is the `<` of the action that replaces it.
_SPANS = (
    r" ?L\d+(?![A-Za-z\d])"
    r"| ?_?[A-Za-z]+"
    r"| ?\d"
    r"| +(?= )"
    r'| ?(?:"""|==|!=|<=|>=|\*\*|//|\+=|-=|\*=|=>)'
    r"| ?[^\sA-Za-z\d]"
    r"|\s"
)
_LINE_NUMBERS = 40
_MESSAGES = (
    *("view", "test", "done", "passed", "failed: AssertionError: f(2) is not 3", "error: no such action"),
    *("error: no line L9", "error: no a", "error: no - in L9", "error: 2 times - in L9", "failed: TypeError: "),
)


def train_tokenizer(tasks: Sequence[Task], vocabulary: int) -> Tokenizer:
    """A byte-level BPE of at most `vocabulary` entries.

    Raises:
        ValueError: a task is not of the training split.
    """
    foreign = next((task.id for task in tasks if task.split != "train"), None)
    if foreign is not None:
        raise ValueError(f"{foreign} is no training task; the tokenizer must not see the other splits")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_SPANS), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_texts(tasks), trainer)
    return tokenizer


def _texts(tasks: Iterable[Task]) -> Iterator[str]:
    for task in tasks:
        yield f" {task.issue}"
        for path in sorted(task.files):
            if path.endswith(".py"):
                yield task.files[path]
        yield from task.gold.values()
        yield from _MESSAGES
        yield " ".join(f"sub L{number}" for number in range(1, _LINE_NUMBERS))
        # Tokens as an action has them: after a space.
        yield " ".join(("sub", *lexemes(task.issue)))
        yield from (" ".join(("sub", *lexemes(source))) for source in task.gold.values())
