"""What of an image's environment and users reaches commands."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell.sandbox.apptainer_image import ImageInside, image_environment, parse_probe, with_user

FIXED = {"HOME": "/tmp/home", "TZ": "UTC", "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", "LANG": "C.UTF-8"}
ADDED = {
    "APPTAINER_NAME": "a.sif",
    "SINGULARITY_BIND": "",
    "PS1": "Apptainer> ",
    "PROMPT_COMMAND": "PS1=x",
    "HOME": "/root",
    "PWD": "/",
    "TERM": "xterm",
    "LANG": "C",
    "LD_LIBRARY_PATH": "/.singularity.d/libs",
}
NAMES = st.sampled_from(["PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "A"])


@given(st.dictionaries(NAMES, st.text(max_size=8)))
def test_commands_get_what_the_image_sets_and_nothing_that_apptainer_adds(own: dict[str, str]) -> None:
    assert image_environment(ADDED | own) == FIXED | own


def test_library_folders_of_the_image_stay() -> None:
    found = image_environment({"LD_LIBRARY_PATH": "/opt/lib:/.singularity.d/libs:"})
    assert found["LD_LIBRARY_PATH"] == "/opt/lib"


def test_the_language_of_the_image_stays() -> None:
    assert image_environment({"LANG": "de_DE.UTF-8"})["LANG"] == "de_DE.UTF-8"


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ("", "agent:x:1000:\n"),
        ("root:x:0:\n", "root:x:0:\nagent:x:1000:\n"),
        ("root:x:0:", "root:x:0:\nagent:x:1000:\n"),
        ("me:x:1000:\n", "me:x:1000:\n"),
        ("broken\n", "broken\nagent:x:1000:\n"),
    ],
)
def test_the_user_of_commands_has_a_name(table: str, expected: str) -> None:
    assert with_user(table, "agent:x:1000:") == expected


def test_a_probe_is_read() -> None:
    output = b"full\0root:x:0:0::/:\n\0\0PATH=/bin\0X=a=b\xff"
    assert parse_probe(output) == ImageInside(
        work="full",
        environment=FIXED | {"PATH": "/bin", "X": "a=b\udcff"},
        passwd="root:x:0:0::/:\nagent:x:1000:1000:agent:/tmp/home:/bin/sh\n",
        group="agent:x:1000:\n",
    )


@pytest.mark.parametrize("output", [b"", b"full\0", b"other\0\0\0A=b"])
def test_what_is_no_probe_is_refused(output: bytes) -> None:
    with pytest.raises(ValueError, match="probe of an image"):
        parse_probe(output)


def test_of_what_is_to_be_hidden_counts_what_there_is_each_once() -> None:
    found = [
        ("folder", "/root/tests"),
        ("folder", "/root/tests"),
        ("file", "/root/tests/a"),
        ("", "/no"),
        ("file", "/f"),
    ]
    fields = ["full", "", "", *(field for pair in found for field in pair), "A=b"]
    inside = parse_probe("\0".join(fields).encode(), hidden=len(found))
    assert inside.hidden == {"/root/tests": "folder", "/f": "file"}
    assert inside.environment["A"] == "b"


def test_a_probe_that_was_given_more_paths_than_it_tells_of_is_refused() -> None:
    with pytest.raises(ValueError, match="probe of an image"):
        parse_probe(b"full\0\0\0file", hidden=1)
