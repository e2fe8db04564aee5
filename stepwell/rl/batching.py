"""The batch manifest: all that a training step is, but for the tokens themselves, as a pure function of recorded facts.

The trainer trains exactly what the manifest says. It names the content of each rollout by digest, so that manifest,
rollouts and parent weights together determine the next weights.

A rollout is one member with one vote and one advantage, and mostly one row of tokens. Where a harness's prompts do not
go on from each other it is several rows, each of which goes through the model by itself: a token is generated in one of
them, and in the others it is context.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random

from pydantic import BaseModel, ConfigDict, Field

from stepwell.events.canonical import canonical_json, digest_of_json
from stepwell.events.rows_recorded import RecordedRow
from stepwell.rl.advantages import group_advantages
from stepwell.rl.config import GrpoConfig, PackingConfig
from stepwell.rl.masks import MaskReason
from stepwell.rl.overlong import shaped_reward
from stepwell.rl.samples import rollout_content
from stepwell.rl.seeds import derive_seed


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class RolloutFacts(_Frozen):
    """What a manifest is built from: one rollout of a trained group."""

    stream: str
    """Name of the rollout's stream."""
    prompt: int
    """Index of the prompt in its step."""
    sample: int
    """Index of the rollout in its group."""
    turns: int
    tokens: int
    """Length of its row, of several together; 0 for a rollout without one."""
    generated_tokens: int
    content: str
    """`rollout_content` of its rows; empty for a rollout without one."""
    reward: float | None
    """None if there is no score."""
    mask: MaskReason | None
    """Why it is masked; required if there is no score."""
    rows: tuple[RecordedRow, ...] = Field(default=(), exclude_if=lambda rows: not rows)
    """Where it is several rows: which. Empty, and not in the manifest, for one row."""


class ManifestSample(RolloutFacts):
    """A rollout's part in the batch."""

    advantage: float
    """0.0 for a masked rollout."""


@dataclass(frozen=True, slots=True)
class BatchRow:
    """A row of tokens, with what its rollout has in the batch."""

    stream: str
    """Of the rollout."""
    tokens: int
    """Its own length; 0 in the place of a rollout without a row."""
    generated_tokens: int
    """In it."""
    content: str
    """`TrainSample.content_digest()`; empty for a rollout without a row."""
    mask: MaskReason | None
    advantage: float
    rollout_generated_tokens: int
    """In all rows of its rollout."""


class MicroBatch(_Frozen):
    """Rows that go through the model together."""

    samples: tuple[int, ...]
    """Indices into `BatchManifest.rows()`, which are those of the rollouts where each is one row."""
    length: int
    """Columns: every row is padded on the right to this many tokens."""
    train: bool
    """False: only scored, for the comparison of trainer and engine, since no row has a part in the gradient (advantage
    exactly 0, or masked). Unmasked ones still count in the denominator of the loss."""


class BatchManifest(_Frozen):
    """One training step."""

    step: int
    parent_version: int
    """Version that the step starts from."""
    version: int
    """Version that it makes."""
    temperature: float
    """At which the rollouts were sampled; the trainer scales its logits alike."""
    samples: tuple[ManifestSample, ...]
    """All rollouts of the trained groups, by prompt, then sample; failed ones too."""
    micro_batches: tuple[MicroBatch, ...]
    """In the order in which they go through the model; a rollout without a row is in none."""

    def rows(self) -> tuple[BatchRow, ...]:
        """The rows of every rollout in turn; of one without a row an empty one."""
        return rows_of(self.samples)

    def canonical_bytes(self) -> bytes:
        """Canonical JSON: what an auditor compares byte for byte."""
        return canonical_json(self.model_dump(mode="json"))

    def digest(self) -> str:
        """Tagged digest of the canonical form."""
        return digest_of_json(self.model_dump(mode="json"))

    def mask_counts(self) -> dict[MaskReason, int]:
        """Number of rollouts under each cause that the manifest knows; causes without any are left out."""
        counts: dict[MaskReason, int] = defaultdict(int)
        for sample in self.samples:
            if sample.mask is not None:
                counts[sample.mask] += 1
        return dict(sorted(counts.items()))


def build_manifest(
    *,
    step: int,
    parent_version: int,
    temperature: float,
    rollouts: Sequence[RolloutFacts],
    grpo: GrpoConfig,
    packing: PackingConfig,
    run_seed: int = 0,
) -> BatchManifest:
    """The manifest of a step, the same for any order of `rollouts`. The seed matters for `grpo.shuffle_rewards` alone.

    Raises:
        ValueError: a rollout twice, one without a score and without a cause, one to be trained without a row, or one
            whose rows are not its own.
    """
    ordered = sorted(rollouts, key=lambda rollout: (rollout.prompt, rollout.sample))
    _check_rollouts(ordered)
    advantages: list[float] = []
    for prompt in sorted({rollout.prompt for rollout in ordered}):
        group = [rollout for rollout in ordered if rollout.prompt == prompt]
        votes = [_vote(rollout, grpo) for rollout in group]
        if grpo.shuffle_rewards:
            votes = dealt_anew(votes, derive_seed(run_seed, "control", scope=str(step), prompt=prompt))
        advantages += [advantage or 0.0 for advantage in group_advantages(votes, grpo)]
    samples = tuple(
        ManifestSample(**dict(rollout), advantage=advantage)
        for rollout, advantage in zip(ordered, advantages, strict=True)
    )
    return BatchManifest(
        step=step,
        parent_version=parent_version,
        version=parent_version + 1,
        temperature=temperature,
        samples=samples,
        micro_batches=pack(rows_of(samples), packing),
    )


def _vote(rollout: RolloutFacts, grpo: GrpoConfig) -> float | None:
    if rollout.reward is None or rollout.mask is not None:
        return None
    return shaped_reward(rollout.reward, rollout.generated_tokens, grpo)


def dealt_anew(votes: Sequence[float | None], seed: int) -> list[float | None]:
    """The votes of a group in a random order; who has none keeps none."""
    voting = [place for place, vote in enumerate(votes) if vote is not None]
    dealt = list(votes)
    for place, source in zip(voting, Random(seed).sample(voting, len(voting)), strict=True):
        dealt[place] = votes[source]
    return dealt


def pack(rows: Sequence[BatchRow], packing: PackingConfig) -> tuple[MicroBatch, ...]:
    """Cuts a batch into micro-batches: rows with a part in the gradient first, then those only scored; each sorted by
    length, so that little is padded."""
    filled = [index for index, row in enumerate(rows) if row.tokens > 0 and row.generated_tokens > 0]
    trained = [index for index in filled if rows[index].mask is None and rows[index].advantage != 0.0]
    scored = [index for index in filled if rows[index].mask is not None or rows[index].advantage == 0.0]
    return tuple(_cut(trained, rows, packing, train=True) + _cut(scored, rows, packing, train=False))


def _cut(indices: Sequence[int], rows: Sequence[BatchRow], packing: PackingConfig, *, train: bool) -> list[MicroBatch]:
    """Greedy: longest first, a new micro-batch where one more row would pass the budget."""
    batches: list[MicroBatch] = []
    together: list[int] = []
    length = 0
    for index in sorted(indices, key=lambda index: (-rows[index].tokens, index)):
        if together and (len(together) + 1) * length > packing.micro_batch_tokens:
            batches.append(MicroBatch(samples=tuple(together), length=length, train=train))
            together = []
        if not together:
            length = -(-rows[index].tokens // packing.pad_multiple) * packing.pad_multiple
        together.append(index)
    if together:
        batches.append(MicroBatch(samples=tuple(together), length=length, train=train))
    return batches


def rows_of(samples: Sequence[ManifestSample]) -> tuple[BatchRow, ...]:
    """The rows of every rollout in turn; of one without a row an empty one."""
    return tuple(
        BatchRow(
            sample.stream,
            row.tokens,
            row.generated_tokens,
            row.content,
            sample.mask,
            sample.advantage,
            sample.generated_tokens,
        )
        for sample in samples
        for row in (sample.rows or (sample,))
    )


def _check_rollouts(ordered: Sequence[RolloutFacts]) -> None:
    for before, after in pairwise(ordered):
        if (before.prompt, before.sample) == (after.prompt, after.sample):
            raise ValueError(f"prompt {after.prompt} sample {after.sample} is in the batch twice: {after.stream}")
    for rollout in ordered:
        if rollout.reward is None and rollout.mask is None:
            raise ValueError(f"{rollout.stream} has neither a score nor a cause for having none")
        if rollout.mask is None and (rollout.tokens < 2 or rollout.generated_tokens < 1 or not rollout.content):
            raise ValueError(f"{rollout.stream} is to be trained, but has no row of tokens")
        if rollout.rows:
            _check_rows(rollout)


def _check_rows(rollout: RolloutFacts) -> None:
    """Every generated token is in one row: that each turn is, the audit sees in the rollout's own record."""
    tokens, generated = (sum(getattr(row, name) for row in rollout.rows) for name in ("tokens", "generated_tokens"))
    found = (tokens, generated, rollout_content([row.content for row in rollout.rows]))
    wanted = (rollout.tokens, rollout.generated_tokens, rollout.content)
    if found != wanted:
        raise ValueError(f"{rollout.stream} ended with (tokens, generated, content) {wanted}, its rows make {found}")
