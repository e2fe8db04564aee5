"""Rows of tokens: rollouts as the trainer needs them."""

import math
from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from stepwell.events.canonical import digest_of_json

ROUNDING_NATS = 1e-4
"""An engine's log-softmax may round a certain token to slightly above 0."""


class MissingLogprob(ValueError):
    """A generated token without a usable log-probability. It is refused, never filled in."""


class TrainSample(BaseModel):
    """A row of tokens: prompt, generated, observation, generated, … Most rollouts are one."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    token_ids: tuple[int, ...]
    """The whole row."""
    generated: tuple[bool, ...]
    """One a token: True where the policy generated it, and the loss applies."""
    logprobs: tuple[float, ...]
    """One a generated token, in order: the engine's, in nats, under temperature-scaled logits."""

    def content_digest(self) -> str:
        """Digest over ids, mask and log-probabilities.

        Raises:
            MissingLogprob: a log-probability is not finite.
        """
        self.check()
        spans = [[index, bool(flag)] for index, flag in enumerate(self.generated) if self._starts_span(index)]
        return digest_of_json([list(self.token_ids), spans, list(self.logprobs)])

    def check(self) -> None:
        """Refuses a row that cannot be trained.

        Raises:
            MissingLogprob: a generated token has no log-probability, or one that is not finite or above 0.
            ValueError: mask and ids differ in length, or the first token is said to be generated.
        """
        if len(self.generated) != len(self.token_ids):
            raise ValueError(f"{len(self.generated)} mask entries for {len(self.token_ids)} tokens")
        if self.generated and self.generated[0]:
            raise ValueError("the first token of a row cannot be generated: nothing is before it to predict it")
        wanted = sum(self.generated)
        if len(self.logprobs) != wanted:
            raise MissingLogprob(f"{len(self.logprobs)} log-probabilities for {wanted} generated tokens")
        for index, value in enumerate(self.logprobs):
            if not math.isfinite(value) or value > ROUNDING_NATS:
                raise MissingLogprob(
                    f"log-probability {value} of generated token {index} is none: finite and at most 0"
                )

    def _starts_span(self, index: int) -> bool:
        return index == 0 or self.generated[index] != self.generated[index - 1]


def rollout_content(rows: Sequence[str]) -> str:
    """Digest of what a rollout is trained on, from the digests of its rows: that of its only row, else one over all in
    their order; empty without any."""
    return rows[0] if len(rows) == 1 else digest_of_json(list(rows)) if rows else ""
