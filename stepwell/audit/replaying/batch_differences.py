"""Where a recorded batch manifest is not the computed one: the field, the group, the rollout."""

from collections.abc import Iterator, Sequence

from pydantic import ValidationError

from stepwell.audit.replaying.difference import Difference
from stepwell.rl.batching import BatchManifest, ManifestSample, MicroBatch

WHERE = "batch"

_HEADER = ("step", "parent_version", "version", "temperature")


def batch_differences(recorded: bytes, computed: BatchManifest) -> Iterator[Difference]:
    """Every difference, in the order of the manifest; at least one where the bytes differ.

    Args:
        recorded: The manifest as it is stored.
        computed: What it must be.
    """
    step = computed.step
    if recorded == computed.canonical_bytes():
        return
    try:
        found = BatchManifest.model_validate_json(recorded)
    except ValidationError as error:
        yield Difference(step, WHERE, "form", f"no batch manifest: {error.errors()[0]['msg']}", "a batch manifest")
        return
    for name in _HEADER:
        yield from _field(step, name, getattr(found, name), getattr(computed, name))
    yield from _members(step, found.samples, computed.samples)
    yield from _packing(step, found, computed)
    if found == computed:
        yield Difference(step, WHERE, "form", "its values in other bytes", "their canonical JSON")


def _field(
    step: int, name: str, recorded: object, computed: object, sample: ManifestSample | None = None
) -> Iterator[Difference]:
    if recorded != computed:
        prompt, rollout = (None, None) if sample is None else (sample.prompt, sample.stream)
        yield Difference(step, WHERE, name, _words(recorded), _words(computed), prompt, rollout)


def _members(step: int, recorded: Sequence[ManifestSample], computed: Sequence[ManifestSample]) -> Iterator[Difference]:
    """Who is in the batch, then in which order, then as what."""
    ours, theirs = ({sample.stream: sample for sample in samples} for samples in (computed, recorded))
    for name in sorted(ours.keys() - theirs.keys()):
        yield Difference(step, WHERE, "samples", "absent", "part of the batch", ours[name].prompt, name)
    for name in sorted(theirs.keys() - ours.keys()):
        yield Difference(step, WHERE, "samples", "part of the batch", "absent", theirs[name].prompt, name)
    if ours.keys() == theirs.keys():
        yield from _order(step, recorded, computed)
    for sample in computed:
        if (found := theirs.get(sample.stream)) is not None:
            for name in ManifestSample.model_fields:
                yield from _field(step, name, getattr(found, name), getattr(sample, name), sample)


def _order(step: int, recorded: Sequence[ManifestSample], computed: Sequence[ManifestSample]) -> Iterator[Difference]:
    """The first place that another rollout has."""
    if len(recorded) != len(computed):
        yield Difference(step, WHERE, "samples", f"{len(recorded)} rollouts, some twice", f"{len(computed)}")
        return
    for place, (found, wanted) in enumerate(zip(recorded, computed, strict=True)):
        if found.stream != wanted.stream:
            yield Difference(
                step, WHERE, f"samples[{place}]", found.stream, wanted.stream, wanted.prompt, wanted.stream
            )
            return


def _packing(step: int, recorded: BatchManifest, computed: BatchManifest) -> Iterator[Difference]:
    """The first micro-batch that is another, and its first row that is."""
    ours, theirs = computed.micro_batches, recorded.micro_batches
    if len(ours) != len(theirs):
        yield Difference(step, WHERE, "micro_batches", f"{len(theirs)} of them", f"{len(ours)}")
    for place, (found, wanted) in enumerate(zip(theirs, ours, strict=False)):
        if found == wanted:
            continue
        at = f"micro_batches[{place}]"
        for name in ("length", "train"):
            yield from _field(step, f"{at}.{name}", getattr(found, name), getattr(wanted, name))
        yield from _rows(step, at, found, wanted, computed.samples)
        return


def _rows(
    step: int, at: str, recorded: MicroBatch, computed: MicroBatch, samples: Sequence[ManifestSample]
) -> Iterator[Difference]:
    if len(recorded.samples) != len(computed.samples):
        yield Difference(step, WHERE, f"{at}.samples", f"{len(recorded.samples)} rows", f"{len(computed.samples)}")
    for row, (found, wanted) in enumerate(zip(recorded.samples, computed.samples, strict=False)):
        if found != wanted:
            yield from _field(step, f"{at}.samples[{row}]", found, wanted, samples[wanted])
            return


def _words(value: object) -> str:
    return "none" if value is None or value == "" else str(value)
