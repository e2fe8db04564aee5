"""A study as a table for people."""

from collections.abc import Mapping, Sequence

from stepwell.mlperf.convergence import SeedResult, Spread


def study_lines(study: str, results: Sequence[SeedResult], scatter: Mapping[str, Spread | None]) -> list[str]:
    """The seeds, and how their scores scatter."""
    k = next((each.samples for result in results for each in result.evaluations), 0)
    names = {"pass_k": f"pass@{k}", "pass_1": "pass@1", "pass_all": f"pass^{k}"}
    scores = "".join(f"  {name:>6}" for name in names.values())
    return [
        f"study {study}: {len(results)} seeds, target {results[0].target:g}",
        "",
        f"{'seed':>6}  {'samples to target':>17}  {'version':>7}{scores}  run",
        *(_seed(result, list(names)) for result in results),
        "",
        *(_scatter(names[name], each) for name, each in scatter.items()),
    ]


def _seed(result: SeedResult, names: Sequence[str]) -> str:
    judged, samples = result.judged, result.samples_to_target
    reached = "not reached" if samples is None else f"{samples:,}"
    if judged is None:
        return f"{result.seed:>6}  {reached:>17}  no version was validated; {result.run}, {result.end}"
    scores = "".join(f"  {getattr(judged, name):>6.3f}" for name in names)
    return f"{result.seed:>6}  {reached:>17}  {judged.version:>7}{scores}  {result.run}, {result.end}"


def _scatter(name: str, each: Spread | None) -> str:
    if each is None:
        return f"{name}: no scatter of fewer than two seeds"
    variation = "none, the mean is 0" if each.variation is None else f"{each.variation:.3f}"
    return (
        f"{name}: mean {each.mean:.3f}, standard deviation {each.deviation:.3f}, coefficient of variation {variation}"
    )
