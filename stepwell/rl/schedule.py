"""Schedules: which prompts, which version, which learning rate, for a step counted from 0."""

from stepwell.rl.config import OptimiserConfig


def prompts_of_step(step: int, prompts_per_step: int) -> range:
    """Positions in the curriculum that step `step` trains; the step turns version `step` into `step + 1`."""
    if step < 0 or prompts_per_step < 1:
        raise ValueError(f"step {step} and prompts_per_step {prompts_per_step}: from 0, and at least 1")
    return range(step * prompts_per_step, (step + 1) * prompts_per_step)


def generation_version(step: int, max_staleness: int) -> int:
    """The one version that generates all rollouts of a step in `drain` mode."""
    if step < 0 or max_staleness < 0:
        raise ValueError(f"step {step} and max_staleness {max_staleness} must not be negative")
    return max(0, step - max_staleness)


def first_evaluation(samples_per_step: int) -> int:
    """First version that MLPerf Training v6.1 evaluates in LLM post-training, that of GBS * ceil(2.5 + 3840 / GBS)
    samples; each later one follows (mlcommons/training, `llm_post_training`; mlperf-logging 4.1.68 checks it).

    Args:
        samples_per_step: GBS, rollouts a training step.
    """
    if samples_per_step < 1:
        raise ValueError(f"{samples_per_step} samples a step, wanted at least 1")
    return -(-(5 * samples_per_step + 2 * 3840) // (2 * samples_per_step))


def learning_rate(config: OptimiserConfig, step: int) -> float:
    """Learning rate of a step."""
    if step < config.warmup_steps:
        return config.learning_rate * (step + 1) / config.warmup_steps
    if config.decay == "constant":
        return config.learning_rate
    assert config.decay_steps is not None  # OptimiserConfig sees to it, and to the next
    assert config.final_fraction is not None
    progress = min(1.0, (step - config.warmup_steps) / config.decay_steps)
    return config.learning_rate * (1.0 - progress * (1.0 - config.final_fraction))
