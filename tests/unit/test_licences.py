"""Licences under which the source of a package may be passed on in tasks."""

import pytest

from stepwell.tasks.packages import PACKAGES, is_permissive


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("MIT", True),
        ("mit", True),
        ("MIT License", True),
        ("Apache License 2.0", True),
        ("MIT OR GPL-3.0-only", True),
        ("MIT AND BSD-3-Clause", True),
        ("MIT AND GPL-3.0-only", False),
        ("GPL-2.0-only OR MIT AND MPL-2.0", False),
        ("(MIT OR Apache-2.0) AND BSD-3-Clause", True),
        ("(MIT OR GPL-3.0-only) AND BSD-3-Clause", False),
        ("GPL-3.0-or-later", False),
        ("Apache-2.0 WITH something", False),
        ("unknown", False),
        ("", False),
    ],
)
def test_a_licence_is_permissive_only_if_it_is_known_to_be(expression: str, said: bool) -> None:
    assert is_permissive(expression) is said


def test_the_pinned_packages_are_permissive() -> None:
    assert [source.name for source in PACKAGES.values() if not is_permissive(source.licence)] == []
