"""The section of a recipe that says when versions are validated, and on what."""

from typing import Any, Literal, Self, cast

from pydantic import Field, model_validator

from stepwell.contracts.run import ValidationSchedule
from stepwell.recipe.sections import Section
from stepwell.rl.schedule import first_evaluation

INTERVAL_DEFAULTS: dict[str, Any] = {"every": 8, "first": 1, "initial": True}
"""Of the keys that only `schedule = "interval"` has."""


class ValidationSection(Section):
    """When versions are validated, and on what."""

    tasks: int = Field(ge=1)
    """Tasks of the set `main`."""
    confirm_tasks: int = Field(default=0, ge=0)
    """Tasks of a second set, looked at once, when the target is reached: stopping does not depend on it, so that it
    measures without bias; 0: none."""
    heldout_tasks: int = Field(default=0, ge=0)
    """Tasks of families that training never sees, reported with the first and the last version; 0: none."""
    samples: int = Field(default=4, ge=1)
    """Rollouts a task: the k of pass@k."""
    temperature: float = Field(default=0.1, gt=0)
    """Above 0."""
    top_p: float = Field(default=0.95, gt=0, le=1)
    """Share of the probability that is sampled from."""
    schedule: Literal["interval", "mlperf"] = "interval"
    """Which versions: those that `every`, `first` and `initial` name, or by the rule of MLPerf Training v6.1, that of
    GBS * ceil(2.5 + 3840 / GBS) samples and each after it, with GBS = `run.prompts_per_step` *
    `run.samples_per_prompt`. The last version is validated in any case."""
    every: int | None = Field(default=None, ge=1)
    """Versions between validations; 8 unless given. Refused with `schedule = "mlperf"`."""
    first: int | None = Field(default=None, ge=1)
    """Lowest version but 0 that is validated; 1 unless given. Refused with `schedule = "mlperf"`."""
    initial: bool | None = None
    """Validate version 0; true unless given. Refused with `schedule = "mlperf"`, which does not."""
    mode: Literal["inline", "offline"] = "inline"
    """`inline`: each in its turn, before its successor is served, and the run ends with the first above the target.
    `offline`: after the last training step, each on its own version loaded again; the run counts as stopped when the
    weights of the lowest version above the target were made."""
    target: float | None = Field(default=None, gt=0, lt=1)
    """The run ends when pass@k is above it; None: at `run.max_steps` only."""

    @model_validator(mode="before")
    @classmethod
    def _fill_dependent_defaults(cls, raw: Any) -> Any:
        if not isinstance(raw, dict) or raw.get("schedule", "interval") != "interval":
            return raw
        return INTERVAL_DEFAULTS | {key: value for key, value in cast(dict[str, Any], raw).items() if value is not None}

    @model_validator(mode="after")
    def _refuse_useless(self) -> Self:
        if self.confirm_tasks and self.target is None:
            raise ValueError("confirm_tasks would do nothing: without a target there is nothing to confirm")
        for key in INTERVAL_DEFAULTS:
            if self.schedule == "mlperf" and getattr(self, key) is not None:
                raise ValueError(
                    f'{key} would do nothing: schedule = "mlperf" fixes which versions are validated; leave it out'
                )
        return self

    def plan(self, samples_per_step: int) -> ValidationSchedule:
        """What workflows see of it.

        Args:
            samples_per_step: Rollouts a training step: the benchmark's global batch size.
        """
        is_mlperf = self.schedule == "mlperf"
        return ValidationSchedule(
            every=1 if is_mlperf else self.every or 1,
            first=first_evaluation(samples_per_step) if is_mlperf else self.first or 1,
            initial=bool(self.initial),
            target=self.target,
            confirm=self.confirm_tasks > 0,
            report=("heldout",) if self.heldout_tasks else (),
            mode=self.mode,
        )
