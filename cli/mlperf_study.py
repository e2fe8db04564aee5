"""`stepwell mlperf study RECIPE`: the same recipe with several seeds, one run after another, and what they show."""

import argparse
import asyncio
import json
import os
import platform
import signal
import sys
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from cli.arguments import Subparsers, positive
from stepwell.mlperf import BENCHMARK

if TYPE_CHECKING:
    from activities.stores import Stores
    from stepwell.mlperf.convergence import SeedResult
    from stepwell.recipe.recipe import Recipe
    from workers.runs import KnownRun
    from workers.services.addresses import Addresses


class NotEnded(RuntimeError):
    """A seed's run did not come to its end; the message says which."""


def add_parser(actions: Subparsers) -> None:
    """Adds the action."""
    parser = actions.add_parser(
        "study",
        help="run a recipe with several seeds, and show how they scatter",
        description="Runs the recipe with seed after seed, each as an ordinary run of its own name; then prints after "
        "how many samples each reached the target, and the coefficients of variation of pass@k, pass@1 and pass^k. The "
        "same command again goes on where the study was left. Exit 0 if every seed reached the target, 1 if one did "
        "not or the study was left, 2 for a recipe that cannot be studied.",
    )
    parser.add_argument("recipe", metavar="RECIPE", type=Path, help="TOML file with a validation.target")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="changes the recipe")
    parser.add_argument("--seeds", type=positive, default=5, metavar="N", help="seeds, from run.seed on (default: 5)")
    parser.add_argument("--name", metavar="STUDY", help="begins the runs' names (default: the recipe's and -study)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write reference convergence points there")
    parser.add_argument("--creator", default="Stepwell", metavar="WHO", help="who a point says made it")
    parser.add_argument("--platform", metavar="WHAT", help="what it was made on (default: this machine)")
    parser.add_argument("--json", action="store_true", help="print the seeds and their scatter as one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Runs what is missing of the study, and reads it."""
    from cli.mlperf_files import write_text
    from cli.mlperf_study_table import study_lines
    from db.migrate import bring_up
    from stepwell.mlperf.convergence import reference_points, spreads
    from stepwell.recipe.loading import RecipeError, load_recipe
    from workers.preflight import preflight, refuse_unexecutable
    from workers.services.lifecycle import held

    first = load_recipe(args.recipe, args.set)
    if first.validation.target is None:
        raise RecipeError("validation.target is missing: a study counts the samples that it takes to reach it")
    refuse_unexecutable(first)
    asyncio.run(preflight(first))
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    study = args.name or f"{first.name}-study"
    seeds = range(first.run.seed, first.run.seed + args.seeds)
    recipes = {seed: load_recipe(args.recipe, [*args.set, f"run.seed={seed}"]) for seed in seeds}
    with held() as addresses:
        bring_up(addresses.migrator, addresses.appender)
        results = [
            _result(addresses, f"{study}-seed{seed}", recipe, quiet=args.json) for seed, recipe in recipes.items()
        ]
    scatter = spreads(results)
    if args.json:
        told = {
            name: None if each is None else asdict(each) | {"variation": each.variation}
            for name, each in scatter.items()
        }
        seeds_told = [asdict(each) | {"samples_to_target": each.samples_to_target} for each in results]
        print(json.dumps({"study": study, "seeds": seeds_told, "scatter": told}))
    else:
        print("\n".join(study_lines(study, results, scatter)))
    if args.out is not None:
        try:
            points = reference_points(
                results,
                benchmark=BENCHMARK,
                creator=args.creator,
                platform=args.platform or f"1 node, {os.cpu_count()} {platform.machine()} processors",
                recipe=first.model_dump(mode="json"),
            )
        except ValueError as error:
            raise RecipeError(f"{args.out} is not written: {error}") from None
        write_text(args.out, json.dumps(points, indent=2) + "\n")
    return 0 if all(each.samples_to_target is not None for each in results) else 1


def _result(addresses: "Addresses", name: str, recipe: "Recipe", *, quiet: bool) -> "SeedResult":
    """One seed's, from the ledger; its run is brought to its end first.

    Raises:
        RecipeError: a run of that name exists with another recipe.
        NotEnded: its workflow ended without a last event.
    """
    from contextlib import redirect_stdout

    from cli.run import see_through

    done = asyncio.run(_read(addresses, name, recipe))
    if done is None:
        with redirect_stdout(sys.stderr if quiet else sys.stdout):
            asyncio.run(see_through(addresses, _finder(recipe, name), with_workers=True))
        done = asyncio.run(_read(addresses, name, recipe))
    if done is None:
        raise NotEnded(f"run {name} did not come to its end: the same command goes on with it")
    return done


def _finder(recipe: "Recipe", name: str) -> "Callable[[Stores], Awaitable[tuple[KnownRun, Recipe]]]":
    async def find(stores: "Stores") -> "tuple[KnownRun, Recipe]":
        from workers.runs import find_or_create

        return await find_or_create(stores, recipe, name), recipe

    return find


async def _read(addresses: "Addresses", name: str, recipe: "Recipe") -> "SeedResult | None":
    """What the ledger says of a run that is over; None of any other."""
    from cli.reading import open_reader
    from stepwell.events import RunCreated, RunFinished, ValidationClosed, ValidationRecorded
    from stepwell.events.streams import run_stream, validation_stream
    from stepwell.mlperf.convergence import Evaluation, SeedResult
    from stepwell.recipe.loading import RecipeError
    from stepwell.rl.passk import pass_rates
    from workers.runs import digest_today

    async with open_reader(addresses) as reader:
        events = [each.event for each in await reader.stream(run_stream(name))]
        if not events or not isinstance(finished := events[-1], RunFinished):
            return None
        if isinstance(created := events[0], RunCreated) and digest_today(created) != recipe.digest:
            raise RecipeError(f"run {name} was made with another recipe: give the study another --name")
        evaluations: list[Evaluation] = []
        for event in events:
            if not isinstance(event, ValidationRecorded) or event.dataset != "main":
                continue
            last = await reader.last_event(validation_stream(name, event.version, "main"))
            assert last is not None
            closed = last.event
            assert isinstance(closed, ValidationClosed), f"validation {event.version} is recorded and not closed"
            rates = pass_rates(closed.passed, closed.graded)
            whole = 0.0 if rates is None else rates.pass_all.value
            evaluations.append(Evaluation(event.version, event.k, event.pass_1, event.pass_k, whole))
    assert recipe.validation.target is not None
    return SeedResult(
        seed=recipe.run.seed,
        run=name,
        end=finished.end.value,
        batch=recipe.batch,
        target=recipe.validation.target,
        evaluations=tuple(sorted(evaluations, key=lambda each: each.version)),
    )
