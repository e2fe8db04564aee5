"""Imports point one way, and a workflow's interpreter stays light."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

ALLOWED = {
    "cli": {"cli", "workers", "activities", "workflows", "db", "stepwell"},
    "workers": {"workers", "activities", "workflows", "db", "stepwell"},
    "activities": {"activities", "db", "stepwell"},
    "workflows": {"workflows", "stepwell"},
    "db": {"db", "stepwell"},
    "stepwell": {"stepwell"},
}
"""For each of our packages, those of ours that it may import."""

PURE = (
    "stepwell.contracts",
    "stepwell.events",
    "stepwell.health.usage",
    "stepwell.operators",
    "stepwell.recipe.live",
    "stepwell.rl.schedule",
)
"""What workflows may import of `stepwell`: data, and functions of data."""

HEAVY = ("torch", "transformers", "sqlalchemy", "boto3", "vllm", "numpy", "aiohttp", "psycopg")
"""What no workflow may load: it would run in the sandbox that makes workflows deterministic, or do I/O."""

STEPWELL_FOREIGN = ("temporalio", "sqlalchemy", "psycopg", "boto3", "alembic")
"""`stepwell` knows neither Temporal nor Postgres nor S3."""


def modules_of(package: str) -> list[Path]:
    """Source files of one of our packages."""
    return sorted((ROOT / package).rglob("*.py"))


def imported_names(path: Path) -> list[tuple[int, str]]:
    """Line and absolute module name of each import in a file, those inside functions too."""
    found: list[tuple[int, str]] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, (
                f"{path.relative_to(ROOT)}:{node.lineno}: a relative import; name the module in full"
            )
            found.append((node.lineno, node.module or ""))
    return found


def is_within(module: str, packages: tuple[str, ...]) -> bool:
    """Whether a module is one of the packages, or inside one."""
    return any(module == package or module.startswith(f"{package}.") for package in packages)


@pytest.mark.parametrize("package", ALLOWED)
def test_imports_point_one_way(package: str) -> None:
    files = modules_of(package)
    assert files, f"{package}/ has no module"
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {package} imports {module}"
        for path in files
        for line, module in imported_names(path)
        if module.split(".")[0] in ALLOWED and module.split(".")[0] not in ALLOWED[package]
    ]
    assert not wrong, "\n".join(wrong)


def test_workflows_import_only_pure_modules_of_stepwell() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: imports {module}, allowed are {PURE}"
        for path in modules_of("workflows")
        for line, module in imported_names(path)
        if is_within(module, ("stepwell",)) and not is_within(module, PURE)
    ]
    assert not wrong, "\n".join(wrong)


def test_stepwell_knows_neither_temporal_nor_postgres_nor_s3() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: imports {module}"
        for path in modules_of("stepwell")
        for line, module in imported_names(path)
        if is_within(module, STEPWELL_FOREIGN)
    ]
    assert not wrong, "\n".join(wrong)


def test_the_rules_see_an_import_inside_a_function(tmp_path: Path) -> None:
    source = tmp_path / "late.py"
    source.write_text("import os\n\ndef f():\n    from db.ledger import Ledger\n    return Ledger, os\n")
    assert imported_names(source) == [(1, "os"), (4, "db.ledger")]


@pytest.mark.parametrize("path", modules_of("workflows"), ids=lambda path: path.stem)
def test_a_workflow_module_loads_nothing_heavy(path: Path) -> None:
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    program = f"import sys, {module}; print(*sorted(set(sys.modules) & {set(HEAVY)!r}))"
    loaded = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    assert loaded.stdout.split() == []
