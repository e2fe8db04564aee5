"""What is known of one training step, filled in as its events arrive."""

from dataclasses import dataclass, field

from stepwell.events import StepAdmitted, StepTrained


@dataclass
class StepPicture:
    """One training step; None where its event has not been seen yet."""

    step: int
    """From 0; it turns version `step` into `step + 1`."""
    generated_by: int | None = None
    """Version that generates it."""
    prompts: int | None = None
    """Prompts dispatched."""
    dispatched_s: float | None = None
    """When, in seconds since the epoch."""
    admitted_s: float | None = None
    """When its batch was fixed."""
    trained_s: float | None = None
    """When the trainer had finished it."""
    rollouts: int | None = None
    """Rollouts in its batch."""
    masked: int | None = None
    """Of them, without a vote."""
    masks: dict[str, int] = field(default_factory=lambda: dict[str, int]())
    """Rollouts under each cause of a mask, as the trainer counted them: those that it found itself among them."""
    reward_mean: float | None = None
    """Mean score of the graded rollouts."""
    loss: float | None = None
    """Token mean over the batch."""
    grad_norm: float | None = None
    """Before clipping."""
    mismatch_mean: float | None = None
    """Mean |log-probability by the trainer - by the engine|, in nats."""
    mismatch_max: float | None = None
    """The largest."""
    entropy: float | None = None
    """Mean -log-probability of the generated tokens, in nats."""
    clip_fraction: float | None = None
    """Share of the loss tokens for which the clip decided."""
    trained_tokens: int | None = None
    """Positions that went through the trainer, padding left out."""
    training_s: float | None = None
    """Wall clock of the training step."""
    previous_trained_s: float | None = None
    """When the step before was trained, in seconds since the epoch."""
    generated_tokens: int = 0
    """Tokens generated for it so far."""

    @property
    def done(self) -> bool:
        """Whether it is trained and all that is known of it has been seen."""
        return self.trained_s is not None and self.admitted_s is not None

    @property
    def staleness(self) -> int | None:
        """Versions between the one that generated it and the one that it was applied to."""
        return None if self.generated_by is None else self.step - self.generated_by

    @property
    def mask_rate(self) -> float | None:
        """Share of its rollouts that had no part in the loss, 0 to 1."""
        if not self.rollouts:
            return None
        return (sum(self.masks.values()) if self.masks else self.masked or 0) / self.rollouts

    @property
    def step_s(self) -> float | None:
        """Wall clock from the later of its dispatch and the previous step's end to its own end: what it adds to the
        run, validations left out."""
        began = [moment for moment in (self.dispatched_s, self.previous_trained_s) if moment is not None]
        return self.trained_s - max(began) if began and self.trained_s is not None else None

    def admitted(self, event: StepAdmitted, time_s: float) -> None:
        """Its batch was fixed."""
        self.admitted_s = time_s
        self.rollouts, self.masked, self.reward_mean = event.rollouts, event.masked, event.reward_mean

    def trained(self, event: StepTrained, time_s: float, previous_trained_s: float | None) -> None:
        """The trainer finished it."""
        metrics = event.metrics
        self.trained_s = time_s
        self.loss = metrics.get("loss")
        self.grad_norm = metrics.get("grad_norm")
        self.mismatch_mean = metrics.get("mismatch_mean")
        self.mismatch_max = metrics.get("mismatch_max")
        self.entropy = metrics.get("entropy")
        self.clip_fraction = metrics.get("clip_fraction")
        tokens = metrics.get("tokens")
        self.trained_tokens = None if tokens is None else int(tokens)
        self.masks = {
            name.removeprefix("masked_"): int(count)
            for name, count in sorted(metrics.items())
            if name.startswith("masked_") and count
        }
        self.training_s = event.duration_s
        self.previous_trained_s = previous_trained_s
