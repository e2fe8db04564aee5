"""`stepwell audit counterfactual`: advantages and masks of a run's whole history under other settings."""

import argparse
import asyncio
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cli.arguments import Subparsers, add_run

if TYPE_CHECKING:
    from stepwell.audit.advantage_changes import StepChange
    from workers.services.addresses import Addresses

SHOWN = 8
"""Changes that are named; `--json` gives all."""


@dataclass(frozen=True)
class Counterfactual:
    """What was computed."""

    run: str
    """Name of the run."""
    settings: dict[str, tuple[object, object]]
    """Keys that differ, with the run's value and the other."""
    steps: "list[StepChange]"
    """Every step whose batch is fixed, in order."""
    refused: dict[int, str]
    """Steps of which no batch can be made, with the reason."""

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "run": self.run,
            "settings": {key: {"recorded": ours, "other": theirs} for key, (ours, theirs) in self.settings.items()},
            "steps": [step.as_json() for step in self.steps],
            "refused": self.refused,
        }


def add_parser(actions: Subparsers) -> None:
    """Adds the action."""
    parser = actions.add_parser(
        "counterfactual",
        help="say what would have been trained under another estimator, baseline or mask",
        description="Computes the advantages and masks of every step again from the ledger, under other settings of "
        "`rl`, without a model: what changes sign, what vanishes, what is masked, and where. Exit 0 if it is computed, "
        "1 if the ledger cannot be read, or some step cannot be computed, 2 for a run or a setting that cannot be.",
    )
    add_run(parser)
    parser.add_argument(
        "--set",
        action="append",
        required=True,
        metavar="KEY=VALUE",
        help="rl.estimator=grpo|rloo|dr_grpo|mlperf, rl.baseline, rl.normalise, rl.std_epsilon, rl.overlong_filtering, "
        "rl.shuffle_rewards, rl.overlong_buffer_length with rl.max_response_length; may be given more than once",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object, with every change")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Computes; 0 if every step can be."""
    from cli.services_to_read import services_to_read  # imported here: they take a second, which `--help` should not

    with services_to_read() as addresses:
        found = asyncio.run(_compute(addresses, args.name, args.set))
    print(json.dumps(found.as_json()) if args.json else "\n".join(lines(found)))
    return 1 if found.refused else 0


def lines(found: Counterfactual) -> list[str]:
    """What is printed: the settings, a line a step, the sums, the changes to look at first."""
    said = [f"{key}: {ours} in the run, here {theirs}" for key, (ours, theirs) in found.settings.items()]
    said += ["", *change_table(found.steps)]
    said += [f"step {step}: {why}" for step, why in found.refused.items()]
    return said + change_summary(found.steps)


def change_table(steps: "list[StepChange]") -> list[str]:
    """A line a step."""
    columns = ("rollouts", "changed", "sign", "to 0", "from 0", "masked", "unmasked", "mean |Δ|")
    said = ["  step  " + "  ".join(f"{name:>8}" for name in columns)]
    for step in steps:
        counts = "  ".join(f"{count:>8,}" for count in (step.rollouts, *step.counts().values()))
        said.append(f"{step.step:>6}  {counts}  {step.mean_difference:>8.4f}")
    return said


def change_summary(steps: "list[StepChange]") -> list[str]:
    """The sums, and the changes to look at first."""
    from stepwell.audit.advantage_changes import largest

    rollouts = sum(step.rollouts for step in steps)
    flipped = [step.step for step in steps if step.flipped]
    changed = sum(len(step.changes) for step in steps)
    said = ["", f"{changed:,} of {rollouts:,} rollouts would be trained otherwise"]
    if flipped:
        named = ", ".join(map(str, flipped[:SHOWN])) + (", …" if len(flipped) > SHOWN else "")
        said[-1] += (
            f"; {sum(step.flipped for step in steps):,} advantages change sign, in {len(flipped)} steps: {named}"
        )
    else:
        said[-1] += "; no advantage changes sign"
    top = largest(steps, SHOWN)
    said += [f"        {change.words()}" for change in top]
    if changed > len(top):
        said.append(f"        and {changed - len(top):,} more; --json names all")
    return said


async def _compute(addresses: "Addresses", name: str, settings: list[str]) -> Counterfactual:
    """Reads and computes every step.

    Raises:
        NoSuchRun: there is none of this name.
        NotComputable: a setting that changes nothing here.
    """
    from cli.run_steps import open_steps
    from stepwell.audit.advantage_changes import compare_batches
    from stepwell.audit.counterfactual import counterfactual_recipe, differences
    from stepwell.audit.replaying.batch import batch_of
    from stepwell.rl.admission import Inadmissible, NotReady

    async with open_steps(addresses, name) as steps:
        other = counterfactual_recipe(steps.recipe, settings)
        found = Counterfactual(name, differences(steps.recipe, other), [], {})
        for number in steps.admitted:
            step = await steps.read(number)
            try:
                found.steps.append(compare_batches(batch_of(step, steps.recipe), batch_of(step, other)))
            except (NotReady, Inadmissible, ValueError) as error:
                found.refused[number] = f"no batch can be computed of what is recorded: {error}"
    return found
