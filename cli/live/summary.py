"""What is printed when a run has ended, or is left."""

from collections import Counter
from pathlib import Path

from cli.live.waits import waits
from cli.live.words import duration, with_interval
from stepwell.events import RunForked
from stepwell.health.usage import usage_words
from stepwell.report.cover import TimeSplit
from stepwell.report.digests import short_digests
from stepwell.report.picture import RunPicture
from stepwell.report.standing import act_words
from stepwell.report.validations import ValidationPicture


def summary(picture: RunPicture, page: Path | None = None) -> str:
    """The run in a dozen lines.

    Args:
        picture: Of the run.
        page: The page that shows it, if one was written.
    """
    rows = [("Run", f"{picture.run}, {_end(picture)}")]
    if picture.fork is not None:
        rows.append(("Fork", fork_words(picture.fork)))
    rows += [(f"pass@{_k(picture, dataset)} {dataset}", _passes(picture, dataset)) for dataset in picture.datasets]
    rows += _stricter(picture)
    rows.append(("Steps", _steps(picture)))
    if picture.warm_up is not None:
        rows.append(("Warm-up", f"{duration(picture.warm_up.duration_s)} ({short_digests(picture.warm_up.origin)})"))
    split = picture.time_split()
    if split is not None:
        rows.append(("Reinforcement", duration(split.wall_s)))
        rows.append(("", time_line(split)))
        rows.append(("Overhead", overhead_line(split)))
    rows += [("Tokens", _tokens(picture)), ("Rollouts", _rollouts(picture))]
    rows += [("Prompts", picture.training_fates.words())]
    rows += [("Lengths" if number == 0 else "", compared.words()) for number, compared in enumerate(picture.lengths)]
    rows.append(("Recoveries", _recoveries(picture)))
    rows += _standing(picture)
    if page is not None:
        rows.append(("Page", str(page)))
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in rows)


def fork_words(fork: RunForked) -> str:
    """What a fork goes on from."""
    reused = f", {len(fork.reused)} prompts' rollouts taken over" if fork.reused else ""
    return f"of run {fork.parent} at version {fork.step}{reused}"


def _standing(picture: RunPicture) -> list[tuple[str, str]]:
    """Stalls, what operators did, what was used, what is waited for; each only if there is something to say."""
    standing, rows = picture.standing, list[tuple[str, str]]()
    if standing.health.stalls:
        whats = Counter(stall.what for stall in standing.health.stalls)
        rows.append(("Stalls", ", ".join(f"{count} × {what}" for what, count in whats.items())))
    if standing.acts:
        rows.append(("Operators", f"{len(standing.acts)} acts, last {act_words(standing.acts[-1][1])}"))
    if standing.usage is not None:
        rows.append(("Used", usage_words(standing.usage, picture.limits)))
    return rows + [("Waits", wait.line) for wait in waits(picture, None, "")]


def time_line(split: TimeSplit) -> str:
    """Seconds of each activity, which overlap."""
    return ", ".join(f"{activity} {duration(seconds)}" for activity, seconds in split.by_activity_s.items())


def overhead_line(split: TimeSplit) -> str:
    """Time in which nothing was under way."""
    line = f"{split.overhead:.1%}: {duration(split.overhead_s)} without generation, tools, tests, training or loading"
    return line + (f", {duration(split.longest_idle_s)} of it at a stretch" if split.longest_idle_s > 60 else "")


def _end(picture: RunPicture) -> str:
    if picture.finished is None:
        return f"not finished, at weight version {picture.version}"
    words = {
        "target": "reached its target",
        "max_steps": "did its last step",
        "stopped": "stopped by an operator",
        "failed": "failed",
    }[picture.finished.end]
    cause = f": {picture.finished.cause}" if picture.finished.cause else ""
    return f"{words} at weight version {picture.finished.version}{cause}"


def _k(picture: RunPicture, dataset: str) -> int:
    return picture.results(dataset)[-1].k or 1


def _passes(picture: RunPicture, dataset: str) -> str:
    results = picture.results(dataset)
    line = " → ".join(_score(result) for result in dict.fromkeys((0, len(results) - 1)) for result in [results[result]])
    if dataset == "main" and picture.target is not None:
        line += f", target {picture.target:g}"
    return line


def _stricter(picture: RunPicture) -> list[tuple[str, str]]:
    """The other two measures of the newest version on the set that decides."""
    last = picture.results("main")[-1:]
    return [
        (name, f"{with_interval(value, interval)} (version {each.version})")
        for each in last
        for name, value, interval in (
            ("pass@1 main", each.pass_1, each.pass_1_interval),
            (f"pass^{each.k} main", each.pass_all, each.pass_all_interval),
        )
        if value is not None
    ]


def _score(result: ValidationPicture) -> str:
    return f"{with_interval(result.pass_k, result.pass_k_interval)} (version {result.version})"


def _steps(picture: RunPicture) -> str:
    done = picture.done_steps
    line = f"{len(done)}" + (f" of {picture.max_steps}" if picture.max_steps else "")
    rewards = [step.reward_mean for step in done if step.reward_mean is not None]
    mismatches = [step.mismatch_mean for step in done if step.mismatch_mean is not None]
    if rewards:
        line += f", reward {rewards[0]:.3f} → {rewards[-1]:.3f}"
    if mismatches:
        line += f", largest mean |Δlogp| {max(mismatches):.1e}"
        line += f" (bound {picture.mismatch_bound:.0e})" if picture.mismatch_bound else ""
    return line


def _tokens(picture: RunPicture) -> str:
    total, split = picture.rollouts.tokens.total, picture.time_split()
    line = f"{total:,} generated"
    return line + (f", {total / split.wall_s:,.0f} a second of reinforcement" if split and split.wall_s > 0 else "")


def _rollouts(picture: RunPicture) -> str:
    rollouts = picture.rollouts
    line = f"{rollouts.graded:,} graded, {rollouts.passed:,} of them passed, {rollouts.failed:,} failed"
    return line + (f", {rollouts.reused_verdicts:,} verdicts reused" if rollouts.reused_verdicts else "")


def _recoveries(picture: RunPicture) -> str:
    counts: dict[str, int] = {}
    for recovery in picture.recoveries:
        counts[recovery.kind] = counts.get(recovery.kind, 0) + 1
    work = picture.recovery_work
    line = ", ".join(f"{count} × {kind}" for kind, count in counts.items()) or "none"
    if work.recoveries:
        line += f"; {duration(work.lost_s)} of work lost, the longest {duration(work.longest_s)}"
    return line + (f"; {work.turns_repeated:,} turns repeated" if work.turns_repeated else "")
