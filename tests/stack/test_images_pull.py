"""Images are fetched from a registry, as what was put there or not at all."""

import io
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from stepwell.sandbox.apptainer import ApptainerFactory
from stepwell.sandbox.images import ImageError, build_from_root, digest_of, pull
from stepwell.sandbox.protocol import SandboxLimits
from tests.small_image import NO_COMPRESSION, add_programs
from tests.stack.image_registry import Registry, digest, running_registry


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    with running_registry(tmp_path_factory.mktemp("registry")) as running:
        yield running


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An unpacked root with a shell."""
    made = tmp_path_factory.mktemp("image") / "root"
    add_programs(made, ["bash"])
    (made / "etc").mkdir()
    (made / "etc" / "mark").write_text("of the image\n")
    return made


@pytest.fixture(autouse=True)
def without_tls_or_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, apptainer_program: Path) -> None:
    """As one sets it who has a registry of one's own: nothing fetched before takes the place of what is there now."""
    monkeypatch.setenv("APPTAINER_NOHTTPS", "1")
    monkeypatch.setenv("APPTAINER_CACHEDIR", str(tmp_path / "cache"))


def layer_of(root: Path) -> bytes:
    """A tar archive of it."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        archive.add(root, arcname=".")
    return packed.getvalue()


def push_file(registry: Registry, root: Path, folder: Path, apptainer: Path) -> str:
    """Puts a SIF into the registry as it is, as `sif`; gives its SHA-256."""
    image = folder / "pushed.sif"
    build_from_root(root, image, NO_COMPRESSION)
    subprocess.run([apptainer, "--silent", "push", image, f"oras://{registry.address}/sif:1"], check=True)
    return digest_of(image)


def test_a_file_of_a_registry_is_the_one_that_was_put_there(
    registry: Registry, root: Path, tmp_path: Path, apptainer_program: Path
) -> None:
    wanted = push_file(registry, root, tmp_path, apptainer_program)
    image = tmp_path / "pulled.sif"
    pull(f"oras://{registry.address}/sif:1", image, wanted)
    assert digest_of(image) == wanted


def test_a_file_that_is_not_the_one_wanted_does_not_take_the_place_of_what_was_there(
    registry: Registry, root: Path, tmp_path: Path, apptainer_program: Path
) -> None:
    wanted = push_file(registry, root, tmp_path, apptainer_program)
    (tmp_path / "folder").mkdir()
    image = tmp_path / "folder" / "kept.sif"
    image.write_text("old")
    with pytest.raises(ImageError, match=f"has the SHA-256 {wanted}, and {'0' * 64} is wanted"):
        pull(f"oras://{registry.address}/sif:1", image, "0" * 64)
    assert image.read_text() == "old"
    assert list(image.parent.iterdir()) == [image]


async def test_layers_of_a_registry_become_an_image_that_sandboxes_start_in(
    registry: Registry, root: Path, tmp_path: Path
) -> None:
    manifest = registry.push("layers", layer_of(root), {"Env": ["PATH=/usr/bin", "MARK=set by the image"]})
    image = tmp_path / "pulled.sif"
    pull(f"docker://{registry.address}/layers@{manifest}", image)
    factory = ApptainerFactory(tmp_path / "sandboxes", str(image))
    sandbox = await factory.create({"a": b"x"}, SandboxLimits())
    said = await sandbox.exec(["bash", "-c", "echo $MARK; echo $(</etc/mark); echo ${PATH%%:*}"], timeout_s=30)
    await factory.close()
    assert said.output == b"set by the image\nof the image\n/usr/bin\n"


def test_layers_that_differ_from_their_digest_are_refused(registry: Registry, root: Path, tmp_path: Path) -> None:
    layer = layer_of(root)
    manifest = registry.push("changed", layer, {})
    registry.file_of(digest(layer)).write_bytes(layer.replace(b"of the image", b"of an enemy!"))
    try:
        with pytest.raises(ImageError, match="could not be fetched"):
            pull(f"docker://{registry.address}/changed@{manifest}", tmp_path / "pulled.sif")
    finally:
        registry.file_of(digest(layer)).write_bytes(layer)
    assert not (tmp_path / "pulled.sif").exists()


@pytest.mark.parametrize("source", ["docker", "oras"])
def test_what_the_registry_has_not_is_told(registry: Registry, tmp_path: Path, source: str) -> None:
    with pytest.raises(ImageError, match=f"{source}://.*/nothing:1 could not be fetched"):
        pull(f"{source}://{registry.address}/nothing:1", tmp_path / "pulled.sif")
    assert not (tmp_path / "pulled.sif").exists()
