"""What in a source distribution is package, tests and licence; which packages are pinned; how they are split."""

import pytest

from stepwell.tasks.packages import PACKAGES, SetPlan, Share
from stepwell.tasks.packages.candidates import HELD_OUT_SHARE, is_held_out
from stepwell.tasks.packages.layout import NoTests, layout_of, licence_of


@pytest.mark.parametrize(
    ("paths", "modules", "tests"),
    [
        (["a/__init__.py", "a/b.py", "tests/test_b.py"], ("a/__init__.py", "a/b.py"), ("tests",)),
        (["src/a/__init__.py", "src/a/c/d.py", "test/t.py"], ("src/a/__init__.py", "src/a/c/d.py"), ("test",)),
        (["a/__init__.py", "a/tests/__init__.py", "a/tests/x/test_b.py"], ("a/__init__.py",), ("a/tests",)),
        (["a.py", "test_a.py", "setup.py", "conftest.py"], ("a.py",), ("test_a.py",)),
        (["a.py", "tests/test_a.py", "docs/conf.py", "docs/tests/x.py"], ("a.py",), ("tests",)),
    ],
)
def test_a_layout_is_found(paths: list[str], modules: tuple[str, ...], tests: tuple[str, ...]) -> None:
    layout = layout_of(paths)
    assert layout.modules == modules
    assert layout.tests == tests


def test_the_work_tree_has_the_licence_and_what_the_tests_read_but_no_build_files() -> None:
    layout = layout_of(["LICENSE.txt", "README.md", "setup.py", "a/__init__.py", "a/data.json", "tests/t.py", "a/b.so"])
    assert layout.kept == ("LICENSE.txt", "README.md", "a/__init__.py", "a/data.json", "tests/t.py")


@pytest.mark.parametrize(("paths", "lacking"), [(["a.py"], "tests"), (["tests/test_a.py"], "package")])
def test_without_a_package_or_tests_it_says_which_is_lacking(paths: list[str], lacking: str) -> None:
    with pytest.raises(NoTests, match=f"has no {lacking}"):
        layout_of(paths)


@pytest.mark.parametrize(
    ("metadata", "licence"),
    [
        ("Name: a\nLicense-Expression: MIT\n", "MIT"),
        ("License: BSD\nClassifier: License :: OSI Approved :: BSD License\n", "BSD-3-Clause"),
        ("License: Something else\n", "Something else"),
        ("Name: a\n", "unknown"),
    ],
)
def test_the_licence_is_that_of_the_metadata(metadata: str, licence: str) -> None:
    assert licence_of(metadata) == licence


def test_at_least_eight_packages_are_pinned_by_their_digests() -> None:
    assert len(PACKAGES) >= 8
    for source in PACKAGES.values():
        assert len(bytes.fromhex(source.sha256)) == 32


def test_by_default_packages_held_out_are_none_that_training_sees_and_all_are_used() -> None:
    plan = SetPlan()
    assert not set(plan.packages) & set(plan.held_out)
    assert {*plan.packages, *plan.held_out} == PACKAGES.keys()
    assert plan.shares()[plan.held_out[0]] == Share(heldout=plan.heldout)
    counts = [share.train + share.validation + share.heldout for share in plan.shares().values()]
    assert sum(counts) >= 400


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        (SetPlan(packages=("nix",)), "no package 'nix'.*toolz"),
        (SetPlan(packages=("toolz",), held_out=("toolz",)), "toolz is named twice"),
    ],
)
def test_a_plan_that_cannot_be_says_why(plan: SetPlan, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        plan.shares()


def test_a_function_belongs_to_one_side_whatever_the_seed_and_about_a_quarter_is_held_out() -> None:
    held = [is_held_out("p", "a.py", f"f{number}") for number in range(1000)]
    assert held == [is_held_out("p", "a.py", f"f{number}") for number in range(1000)]
    assert 0.2 < sum(held) / len(held) < 0.3
    assert HELD_OUT_SHARE == 4


def test_an_inner_function_goes_with_the_one_around_it() -> None:
    for number in range(50):
        assert is_held_out("p", "a.py", f"f{number}.<locals>.g") == is_held_out("p", "a.py", f"f{number}")
