"""Images of tasks: found by either rule; missing and changed ones named at once."""

import os
from pathlib import Path

import pytest

from stepwell.tasks.r2e.images import ImagesUnfit, check_images, find_images, image_names
from stepwell.tasks.r2e.importing import ImportRequest, import_r2e
from stepwell.tasks.r2e.task_set import R2ETaskSet, load_r2e
from tests.r2e_rows import instance_id, write_folder


@pytest.fixture
def made(tmp_path: Path) -> R2ETaskSet:
    write_folder(tmp_path)
    import_r2e(ImportRequest((tmp_path / "train.jsonl",), tmp_path / "images", "train", tmp_path / "set"))
    return load_r2e(tmp_path / "set", "train")


def test_missing_and_changed_images_are_named_together(made: R2ETaskSet) -> None:
    made.check_images()
    places = [Path(made.manifest.images_folder) / image.file for image in made.manifest.images.values()]
    places[0].unlink()
    places[1].write_bytes(b"SIF longer")
    places[2].write_bytes(b"SIF of X")
    with pytest.raises(ImagesUnfit) as caught:
        made.check_images()
    said = str(caught.value)
    assert "1 missing: " + made.manifest.images[made.tasks[0].id].file in said
    assert "2 changed: " in said
    assert all(made.manifest.images[task.id].file in said for task in made.tasks[1:3])
    assert all(made.manifest.images[task.id].file not in said for task in made.tasks[3:])


def test_an_image_changed_behind_its_recorded_time_is_found_when_all_are_hashed(made: R2ETaskSet) -> None:
    images = list(made.manifest.images.values())
    place = Path(made.manifest.images_folder) / images[0].file
    place.write_bytes(b"SIF of X")
    os.utime(place, ns=(images[0].mtime_ns, images[0].mtime_ns))
    check_images(Path(made.manifest.images_folder), images)
    with pytest.raises(ImagesUnfit, match="1 changed"):
        check_images(Path(made.manifest.images_folder), images, hash_all=True)


def test_the_first_naming_rule_and_the_benchmarks_subfolder_come_first(tmp_path: Path) -> None:
    task = instance_id(0)
    final, plain = image_names(task)
    assert (final, plain) == (f"pillow_final_{task[-40:]}.sif", f"{task}.sif")
    (tmp_path / "r2egym").mkdir()
    found: list[Path | None] = [find_images(tmp_path, [task])[task]]
    for place in (tmp_path / plain, tmp_path / "r2egym" / plain, tmp_path / final, tmp_path / "r2egym" / final):
        place.write_bytes(b"")
        found.append(find_images(tmp_path, [task])[task])
    assert [path and str(path.relative_to(tmp_path)) for path in found] == [
        None,
        plain,
        f"r2egym/{plain}",
        final,
        f"r2egym/{final}",
    ]
