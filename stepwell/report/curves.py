"""Which charts a run has, from its picture."""

from collections.abc import Callable, Sequence

from stepwell.report.chart import Chart, Point, Rule, Series, Tone
from stepwell.report.picture import RunPicture
from stepwell.report.rollouts import BIN_S
from stepwell.report.steps import StepPicture
from stepwell.report.validations import ValidationPicture
from stepwell.rl.passk import Estimate

_SMOOTH = 5
"""Steps in the running mean of the reward."""
_MOMENTS = 120
"""Most points of a curve over time."""


def curves(picture: RunPicture) -> list[Chart]:
    """The learning curves, the most telling first."""
    steps = picture.done_steps
    bound, target = picture.mismatch_bound, picture.target
    bound_words = "" if picture.max_staleness is None else f", bound {picture.max_staleness}"
    return [
        _passes(picture, "pass-k", lambda shown: shown.pass_k, lambda shown: shown.pass_k_interval, target),
        Chart("reward", "Reward by step", "step", _reward(steps)),
        _passes(picture, "pass-1", lambda shown: shown.pass_1, lambda shown: shown.pass_1_interval, None),
        Chart(
            "mismatch",
            "Mean |log-prob trainer − engine| by step, nats",
            "step",
            [_by_step(steps, "mean", lambda step: step.mismatch_mean, ".2e")],
            rule=Rule(bound, f"bound {bound:g}") if bound else None,
            logarithmic=True,
        ),
        Chart("loss", "Loss by step", "step", [_by_step(steps, "loss", lambda step: step.loss, "+.5f")]),
        Chart(
            "grad-norm",
            "Gradient norm by step, before clipping",
            "step",
            [_by_step(steps, "norm", lambda step: step.grad_norm, ".4f")],
            from_zero=True,
        ),
        Chart(
            "entropy",
            "Mean −log-prob of generated tokens, nats",
            "step",
            [_by_step(steps, "entropy", lambda step: step.entropy, ".4f")],
            from_zero=True,
        ),
        _lengths(picture),
        Chart(
            "masks",
            "Share of rollouts without a part in the loss",
            "step",
            [Series("masked", _mask_points(steps))],
            from_zero=True,
        ),
        Chart(
            "staleness",
            f"Versions between generation and training{bound_words}",
            "step",
            [_by_step(steps, "staleness", lambda step: step.staleness, "g")],
            from_zero=True,
        ),
        Chart(
            "tokens",
            "Generated tokens a second",
            "minutes of reinforcement",
            [Series("tokens a second", _token_points(picture), dots=False)],
            from_zero=True,
            whole_x=False,
        ),
    ]


def _passes(
    picture: RunPicture,
    name: str,
    value: Callable[[ValidationPicture], float | None],
    interval: Callable[[ValidationPicture], Estimate | None],
    target: float | None,
) -> Chart:
    k = next((result.k for dataset in picture.datasets for result in picture.results(dataset) if result.k), 1)
    title = f"pass@{k if name == 'pass-k' else 1} by version, 95 % intervals"
    tones: dict[str, Tone] = {"main": "first", "heldout": "second"}
    series: list[Series] = []
    for dataset in picture.datasets:
        points: list[Point] = []
        for result in picture.results(dataset):
            at, within = value(result), interval(result)
            if at is not None:
                between = f" [{within.low:.3f}, {within.high:.3f}]" if within else ""
                tip = f"version {result.version}, {dataset}: {at:.3f}{between}, {result.tasks or '?'} tasks"
                low, high = (within.low, within.high) if within else (None, None)
                points.append(Point(result.version, at, tip, low, high))
        series.append(Series(dataset, points, tones.get(dataset, "quiet")))
    return Chart(name, title, "weight version", series, rule=Rule(target, f"target {target:g}") if target else None)


def _reward(steps: Sequence[StepPicture]) -> list[Series]:
    raw = _by_step(steps, "each step", lambda step: step.reward_mean, ".3f")
    smooth: list[Point] = []
    for index, point in enumerate(raw.points):
        window = raw.points[max(0, index - _SMOOTH + 1) : index + 1]
        mean = sum(each.y for each in window) / len(window)
        smooth.append(Point(point.x, mean, f"step {point.x:g}: {point.y:.3f}, mean of {len(window)} steps {mean:.3f}"))
    return [
        Series("each step", raw.points, "quiet", line=False),
        Series(f"mean of {_SMOOTH} steps", smooth, "first", dots=False),
    ]


def _lengths(picture: RunPicture) -> Chart:
    """Mean length of a step's rollouts, between the tenth and the ninetieth percentile."""
    points: list[Point] = []
    for step, lengths in picture.lengths_by_step.items():
        tenth, median, ninetieth, longest = lengths.quantiles
        tip = f"step {step}: mean {lengths.mean:,.1f} tokens, 10 % {tenth:,}, median {median:,}, 90 % {ninetieth:,}, "
        points.append(Point(step, lengths.mean, f"{tip}longest {longest:,}", tenth, ninetieth))
    series = [Series("mean", points)]
    return Chart("lengths", "Tokens generated a rollout, 10th to 90th percentile", "step", series, from_zero=True)


def _mask_points(steps: Sequence[StepPicture]) -> list[Point]:
    points: list[Point] = []
    for step in steps:
        rate = step.mask_rate
        if rate is not None:
            why = ", ".join(f"{count} {cause}" for cause, count in step.masks.items())
            points.append(Point(step.step, rate, f"step {step.step}: {rate:.1%}{f' ({why})' if why else ''}"))
    return points


def _by_step(
    steps: Sequence[StepPicture], name: str, value: Callable[[StepPicture], float | None], form: str
) -> Series:
    points = [
        Point(step.step, at, f"step {step.step}: {at:{form}}") for step in steps if (at := value(step)) is not None
    ]
    return Series(name, points)


def _token_points(picture: RunPicture) -> list[Point]:
    """Rates over equal stretches from the first generated token to the last, quiet ones too."""
    bins, began_s = picture.rollouts.tokens.bins, picture.reinforcement_began_s
    if not bins or began_s is None:
        return []
    first, last = min(bins), max(bins)
    width = -(-(last - first + 1) // _MOMENTS)
    points: list[Point] = []
    for start in range(first, last + 1, width):
        rate = sum(bins.get(number, 0) for number in range(start, start + width)) / (width * BIN_S)
        minutes = max(0.0, ((start + width / 2) * BIN_S - began_s) / 60)
        points.append(Point(minutes, rate, f"{minutes:.1f} min: {rate:,.0f} tokens a second"))
    return points
