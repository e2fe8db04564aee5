"""SIF images are built, looked into, found and told apart."""

from collections.abc import Callable
from pathlib import Path

import pytest

from stepwell.sandbox.images import (
    ImageError,
    build_from_root,
    digest_of,
    find_apptainer,
    find_image,
    inspect,
    pull,
    verify_digest,
)
from tests.small_image import NO_COMPRESSION


def without_apptainer(root: Path) -> None:
    find_apptainer()


@pytest.mark.parametrize("call", [without_apptainer, inspect, lambda path: pull("docker://x", path)])
def test_a_machine_without_apptainer_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Callable[[Path], object]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ImageError, match="scripts/install-apptainer"):
        call(tmp_path)


def test_an_image_says_its_labels_and_environment(small_sif: Path) -> None:
    facts = inspect(small_sif)
    assert facts.labels["maker"] == "stepwell-tests"
    assert "export PATH=/opt/bin" in facts.environment
    assert "%labels" in facts.definition


def test_an_image_is_built_of_a_root_and_replaced_whole(tmp_path: Path, apptainer_program: Path) -> None:
    root = tmp_path / "root"
    (root / "bin").mkdir(parents=True)
    image = tmp_path / "made.sif"
    image.write_text("old")
    build_from_root(root, image, NO_COMPRESSION)
    assert f"from: {root}" in inspect(image).definition
    assert sorted(path.name for path in tmp_path.iterdir()) == ["made.sif", "root"]


def test_what_makes_no_image_is_told_and_leaves_what_was_there(tmp_path: Path, apptainer_program: Path) -> None:
    image = tmp_path / "kept.sif"
    image.write_text("old")
    with pytest.raises(ImageError, match="no folder"):
        build_from_root(tmp_path / "missing", image)
    with pytest.raises(ImageError, match="names no registry"):
        pull("ftp://host/image", image)
    with pytest.raises(ImageError, match="no image that Apptainer can read"):
        inspect(image)
    assert image.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["kept.sif"]


def test_an_image_is_found_by_the_first_name_that_any_folder_has(tmp_path: Path) -> None:
    for path in ("one/b.sif", "two/a.sif", "two/c"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).touch()
    folders = [tmp_path / "one", tmp_path / "two"]
    assert find_image(folders, ["a", "b"]) == tmp_path / "two" / "a.sif"
    assert find_image(folders, ["c"]) == tmp_path / "two" / "c"
    with pytest.raises(ImageError, match=r"no image d\.sif or e\.sif in .*one, .*two"):
        find_image(folders, ["d", "e"])


def test_another_digest_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.sif").write_bytes(b"")
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    verify_digest(tmp_path / "a.sif", f"sha256:{empty}")
    with pytest.raises(ImageError, match=f"has the SHA-256 {empty}"):
        verify_digest(tmp_path / "a.sif", "0" * 64)
    with pytest.raises(ImageError, match="no image file"):
        digest_of(tmp_path / "b.sif")
