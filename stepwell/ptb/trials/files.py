"""What a run set's recipe names of this machine: models and benchmarks, their digests, and the basis of its scores."""

import hashlib
from pathlib import Path

from stepwell.events.canonical import digest_of_json
from stepwell.ptb.benchmarks import benchmark
from stepwell.ptb.benchmarks.files import BrokenBenchmarkFiles, FilesOfBenchmark, load_benchmark_files
from stepwell.ptb.evaluation.cells import evaluation_basis
from stepwell.ptb.evaluation.versions import data_of
from stepwell.ptb.judging import BrokenRecord, RecordedJudge
from stepwell.ptb.judging.openai_judge import JudgeSettings
from stepwell.ptb.leaderboard.records import Basis
from stepwell.ptb.trials.loading import regime_of
from stepwell.ptb.trials.manifest import entries_of, manifest_digest, manifest_of
from stepwell.ptb.trials.recipe import AgentSection, JudgesSection, RunSetRecipe
from stepwell.recipe.loading import RecipeError


def files_of_benchmarks(recipe: RunSetRecipe) -> dict[str, FilesOfBenchmark]:
    """The files of all benchmarks that the recipe's list names.

    Raises:
        RecipeError: the list cannot be read, a file is not there or another one, or the regime's are not all named.
    """
    try:
        found = load_benchmark_files(Path(recipe.files))
    except BrokenBenchmarkFiles as error:
        raise RecipeError(f"files: {error}") from error
    rules = regime_of(recipe)
    lacking = [name for name in rules.benchmarks if name not in found]
    if lacking:
        raise RecipeError(f"files: {recipe.files} names no files for {', '.join(lacking)} of the regime {rules.name}")
    return found


def benchmark_files(recipe: RunSetRecipe, name: str) -> FilesOfBenchmark:
    """The files of one benchmark. Raises as `files_of_benchmarks`."""
    return files_of_benchmarks(recipe)[name]


def folders_of(recipe: RunSetRecipe, base_model: str) -> tuple[Path, Path | None]:
    """Folder of a base model, and of its instruct model if there is one."""
    section = recipe.models[base_model]
    return Path(section.base), None if section.instruct is None else Path(section.instruct)


def check_files(recipe: RunSetRecipe) -> None:
    """Looks at everything that the recipe names here, before anything of the run set begins.

    Raises:
        RecipeError: something is not there.
    """
    missing: list[str] = []
    for model in recipe.all_models:
        folders = [folder for folder in folders_of(recipe, model) if folder is not None]
        without = [folder for folder in folders if not (folder / "config.json").is_file()]
        missing += [f"models.{model}: {folder} holds no model (no config.json)" for folder in without]
    mounts = [*recipe.mounts, *(mount for agent in recipe.agents for mount in agent.mounts)]
    missing += [f"mounts: {mount.source} is not there" for mount in mounts if not Path(mount.source).exists()]
    recorded = None if recipe.judges is None else recipe.judges.recorded
    if recorded is not None and not Path(recorded).is_file():
        missing.append(f"judges.recorded: {recorded} is not there")
    if missing:
        raise RecipeError("\n".join(["the recipe names what is not here:", *(f"  {line}" for line in missing)]))
    files_of_benchmarks(recipe)


def basis_of_run_set(recipe: RunSetRecipe) -> Basis:
    """What all scores of a run set are made on.

    Raises:
        RecipeError: a benchmark of the regime lacks its files, or needs a judge that the recipe does not name; or a
            base model has no template.
    """
    rules = regime_of(recipe)
    judge = None if recipe.judges is None else judge_version(recipe.judges)
    charges = () if recipe.judges is None else tuple(f"{charge} by {judge}" for charge in recipe.judges.charges)
    is_judged = any(benchmark(name).needs == "judge" for name in rules.benchmarks)
    try:
        basis = evaluation_basis(
            rules,
            files_of_benchmarks(recipe),
            recipe.evaluation.engine,
            gpus=recipe.gpus,
            judge=judge if is_judged else None,
            checks=(*recipe.checks.versions, *charges),
        )
    except ValueError as error:
        raise RecipeError(str(error)) from error
    return basis.model_copy(update={"hours": recipe.hours})


def judge_version(section: JudgesSection) -> str:
    """Version of the judge that a recipe names: judgements of different ones are not comparable.

    Raises:
        RecipeError: the file of recorded judgements holds none of one judge.
    """
    if section.address is not None and section.model is not None:
        return JudgeSettings(section.address, section.model, section.effort).version
    try:
        return RecordedJudge(Path(str(section.recorded))).version
    except BrokenRecord as error:
        raise RecipeError(f"judges.recorded: {error}") from error


def digests_of(recipe: RunSetRecipe) -> dict[str, str]:
    """Digests of models, benchmarks, mounts and the regime, by what they are. Reads all of them."""
    found: dict[str, str] = {}
    for model in recipe.all_models:
        base, instruct = folders_of(recipe, model)
        found[f"base/{model}"] = folder_digest(base)
        if instruct is not None:
            found[f"instruct/{model}"] = folder_digest(instruct)
    for agent in recipe.agents:
        found |= mount_digests(recipe, agent)
    files = files_of_benchmarks(recipe)
    found["regime"] = digest_of_json(regime_of(recipe).model_dump(mode="json"))
    return found | {f"benchmark/{name}": data_of(files[name].paths, files[name].rows) for name in recipe.all_benchmarks}


def mount_digests(recipe: RunSetRecipe, agent: AgentSection) -> dict[str, str]:
    """Digests of what an agent sees of this machine by the recipe, by `mount/<at>`, or `mount/<agent>/<at>` for what it
    alone sees. What Python compiled of it does not count."""
    found = {f"mount{mount.at}": _tree_digest(Path(mount.source)) for mount in recipe.mounts}
    return found | {f"mount/{agent.name}{mount.at}": _tree_digest(Path(mount.source)) for mount in agent.mounts}


def program_version(recipe: RunSetRecipe, agent: AgentSection) -> str:
    """Version of an agent that is a program of one's own: what is called, and what lies in the folders it sees."""
    return f"program {digest_of_json([list(agent.command), mount_digests(recipe, agent)])[:12]}"


def _tree_digest(path: Path) -> str:
    entries = manifest_of(path) if path.is_dir() else entries_of({path.name: path})
    return manifest_digest(tuple(entry for entry in entries if "__pycache__" not in entry.path.split("/")))


def folder_digest(folder: Path) -> str:
    """Of a model's folder: names and contents of its files; what is in folders inside does not count."""
    digests: list[list[str]] = []
    for path in sorted(folder.iterdir()):
        if path.is_file():
            with path.open("rb") as file:
                digests.append([path.name, hashlib.file_digest(file, "sha256").hexdigest()])
    return digest_of_json(digests)
