"""How answers are drawn, and where they end: what of a submission's own settings is followed.

`generation_config.json` is part of what is submitted, as in the published system, whose engine follows it too. Followed
are `temperature`, `top_p`, and `do_sample: false` (the most probable token each time); the published engine passes over
the last. Without the file: temperature 1 and all tokens. Limits of length are the regime's, never the submission's.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from stepwell.ptb.evaluation.result import UsedSampling
from stepwell.ptb.evaluation.small_files import Refused

GREEDY_TOP_P = 1e-6
"""Keeps the most probable token alone, in both engines."""
LOWEST_TEMPERATURE = 0.01
"""vLLM takes no less; below it a model is greedy."""
MOST_STOPS = 64
_SAYS_NOTHING = (
    *("do_sample", "temperature", "top_p", "transformers_version", "_from_model_config", "bos_token_id"),
    *("eos_token_id", "pad_token_id", "use_cache", "output_attentions", "output_hidden_states"),
)
"""Fields that are followed, or decide nothing."""


@dataclass(frozen=True)
class Stops:
    """Tokens that end an answer, as a submission names them."""

    ids: tuple[int, ...]
    texts: tuple[str, ...]
    """Tokens by what they are written as."""


def sampling_of(settings: Mapping[str, object]) -> UsedSampling:
    """What is followed of the content of `generation_config.json`.

    Raises:
        Refused: a setting that is followed is no number, or out of its range.
    """
    temperature = _number(settings, "temperature", 1.0, most=100.0)
    top_p = _number(settings, "top_p", 1.0, most=1.0)
    greedy = settings.get("do_sample") is False or temperature < LOWEST_TEMPERATURE or top_p <= GREEDY_TOP_P
    unused = sorted(key for key, value in settings.items() if key not in _SAYS_NOTHING and value is not None)
    return UsedSampling(
        temperature=1.0 if greedy else temperature,
        top_p=GREEDY_TOP_P if greedy else top_p,
        greedy=greedy,
        unused=tuple(key[:80] for key in unused[:MOST_STOPS]),
    )


def stops_of(config: Mapping[str, object], settings: Mapping[str, object], tokenizer: Mapping[str, object]) -> Stops:
    """Ends of answers by `config.json`, `generation_config.json` and `tokenizer_config.json`.

    Raises:
        Refused: an end is named by something else than a token.
    """
    ids: set[int] = set()
    for name, table in (("config.json", config), ("generation_config.json", settings)):
        value = table.get("eos_token_id")
        several = value if isinstance(value, list) else [] if value is None else [value]
        for one in several:
            if isinstance(one, bool) or not isinstance(one, int) or one < 0:
                raise Refused(f"{name} names {one!r:.80} as eos_token_id: wanted the number of a token, or several")
            ids.add(one)
    end = tokenizer.get("eos_token")
    text = end.get("content") if isinstance(end, dict) else end
    if len(ids) > MOST_STOPS:
        raise Refused(f"{len(ids)} tokens are named as eos_token_id, at most {MOST_STOPS} are taken")
    return Stops(tuple(sorted(ids)), (text,) if isinstance(text, str) and text else ())


def _number(settings: Mapping[str, object], key: str, default: float, *, most: float) -> float:
    value = settings.get(key)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise Refused(f"generation_config.json has {key} = {value!r:.80}: wanted a number")
    if not 0 <= value <= most:
        raise Refused(f"generation_config.json has {key} = {value!r:.80}: wanted 0 to {most:g}")
    return float(value)
