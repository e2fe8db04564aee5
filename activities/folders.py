"""Folders in the blob store: a manifest names each file by its digest, so equal files are stored once."""

import json
import shutil
import uuid
from pathlib import Path

from pydantic import TypeAdapter

from activities.stores import dump_json
from db.blobs import BlobStore

_MANIFEST: TypeAdapter[dict[str, str]] = TypeAdapter(dict[str, str])


async def put_folder(blobs: BlobStore, folder: Path, *, retention: str = "run") -> str:
    """Stores the files of a flat folder; returns the digest of its manifest, which is stored last."""
    files = {path.name: (await blobs.put_file(path, retention=retention)).digest for path in sorted(folder.iterdir())}
    return (await blobs.put(dump_json(files), retention=retention)).digest


async def get_folder(blobs: BlobStore, manifest: str, cache: Path) -> Path:
    """The folder of a manifest under `cache`, fetched if it is not there; it appears complete or not at all."""
    folder = cache / manifest
    if folder.is_dir():
        return folder
    files = _MANIFEST.validate_json(await blobs.get(manifest))
    partial = cache / f".{manifest}-{uuid.uuid4().hex}"
    partial.mkdir(parents=True)
    try:
        for name, digest in files.items():
            await blobs.get_to_file(digest, partial / Path(name).name)
        try:
            partial.rename(folder)
        except OSError:
            if not folder.is_dir():  # not merely fetched by another task meanwhile
                raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return folder


async def get_file(blobs: BlobStore, manifest: str, name: str) -> bytes:
    """One file of a stored folder.

    Raises:
        FileNotFoundError: the folder has no such file.
    """
    files: dict[str, str] = json.loads(await blobs.get(manifest))
    if name not in files:
        raise FileNotFoundError(f"stored folder {manifest} has no {name}: it holds {', '.join(sorted(files))}")
    return await blobs.get(files[name])
