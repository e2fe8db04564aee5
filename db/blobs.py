"""Bytes under their SHA-256: the small beside their events in Postgres, the large in S3.

Nothing here is ever changed, so a blob that was put twice is one, a put that was interrupted is put again, and a name
can be checked with `sha256sum`. A row in Postgres stands for every blob, written after the bytes: what has no row is
not stored. Put blobs before the event that names them.
"""

import asyncio
import hashlib
import os
import re
import tempfile
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Row, text

from db.checked_blobs import Checked
from db.database import Database
from db.errors import BlobCorrupt, BlobMissing
from db.objects import ObjectStore
from db.outages import patiently

SMALL_BYTES = 32 << 10
"""Blobs under this size lie in Postgres: 0.2 ms there against 3.6 ms for an S3 put, measured."""

_DIGEST = re.compile(r"[0-9a-f]{64}")
_RETENTION = re.compile(r"[a-z][a-z0-9-]{0,30}")

_PUT_SMALL = text("SELECT put_blobs(CAST(:digests AS text[]), CAST(:blobs AS bytea[]), CAST(:retention AS text))")
_PUT_LARGE = text(
    "WITH retention AS (INSERT INTO blob_retentions VALUES (:digest, :retention) ON CONFLICT DO NOTHING) "
    "INSERT INTO blobs (digest, size_bytes, place) VALUES (:digest, :size, 's3') ON CONFLICT DO NOTHING"
)
_RETAIN = text(
    "WITH found AS (SELECT digest FROM blobs WHERE digest = :digest), kept AS ("
    "INSERT INTO blob_retentions SELECT digest, :retention FROM found ON CONFLICT DO NOTHING) SELECT digest FROM found"
)
_FIND_SIZES = text("SELECT digest, size_bytes FROM blobs WHERE digest = ANY(:digests)")
_FIND = text("SELECT digest, size_bytes, data FROM blobs WHERE digest = ANY(:digests)")


class BlobRef(NamedTuple):
    """Name and size of a blob."""

    digest: str
    """SHA-256 of its bytes, in hex."""
    size_bytes: int
    """How many they are."""


def blob_digest(data: bytes) -> str:
    """Name of a blob: its plain SHA-256."""
    return hashlib.sha256(data).hexdigest()


def check_retention(retention: str) -> None:
    """Refuse a retention class that is no short lower-case word.

    Raises:
        ValueError: it is not.
    """
    if not _RETENTION.fullmatch(retention):
        raise ValueError(f"retention class {retention!r} is not a short lower-case word, as `run`")


class BlobStore:
    """All blobs of one database and one bucket. Safe for use by many tasks of one event loop.

    Args:
        database: Connections; shared with the ledger.
        objects: The bucket.
    """

    def __init__(self, database: Database, objects: ObjectStore) -> None:
        self._database = database
        self._objects = objects

    async def put(self, data: bytes, *, retention: str = "run") -> BlobRef:
        """Store bytes; what is stored already is not written again.

        Args:
            data: The bytes.
            retention: How long they are kept: a blob put under several classes is kept for the longest.

        Raises:
            DiskFull: the store has no room.
            BucketMissing: the bucket does not exist, or the credentials do not reach it.
            BlobStoreUnavailable, DatabaseUnavailable: no answer.
        """
        check_retention(retention)
        ref = BlobRef(blob_digest(data), len(data))
        if ref.size_bytes < SMALL_BYTES:
            await self._database.rows(_PUT_SMALL, {"digests": [ref.digest], "blobs": [data], "retention": retention})
        elif not await self._stands(ref, retention):
            await self._objects.put(object_key(ref.digest), data, sha256=ref.digest)
            await self._record_large(ref, retention)
        return ref

    async def put_many(self, blobs: Iterable[bytes], *, retention: str = "run") -> list[BlobRef]:
        """Store several blobs: the small in one statement, the large side by side. Raises as `put`."""
        check_retention(retention)
        every = list(blobs)
        small = {blob_digest(data): data for data in every if len(data) < SMALL_BYTES}
        if small:
            values = {"digests": list(small), "blobs": list(small.values()), "retention": retention}
            await self._database.rows(_PUT_SMALL, values)
        large = [data for data in every if len(data) >= SMALL_BYTES]
        await asyncio.gather(*(self.put(data, retention=retention) for data in large))
        return [BlobRef(blob_digest(data), len(data)) for data in every]

    async def put_file(self, path: Path, *, retention: str = "run") -> BlobRef:
        """Store a file, however large, without holding it in memory. It must not change meanwhile. Raises as `put`."""
        check_retention(retention)
        size_bytes = (await asyncio.to_thread(path.stat)).st_size
        if size_bytes < SMALL_BYTES:
            return await self.put(await asyncio.to_thread(path.read_bytes), retention=retention)
        ref = BlobRef(await asyncio.to_thread(_file_digest, path), size_bytes)
        if not await self._stands(ref, retention):
            await self._objects.put_file(object_key(ref.digest), path, size_bytes=size_bytes, sha256=ref.digest)
            await self._record_large(ref, retention)
        return ref

    async def get(self, digest: str) -> bytes:
        """The bytes of a blob, checked against its name.

        Raises:
            BlobMissing: it is not stored.
            BlobCorrupt: the bytes stored are not the ones it names.
            BlobStoreUnavailable, DatabaseUnavailable: no answer.
        """
        row = await self._find(digest)
        data = await self._objects.get(object_key(digest)) if row.data is None else bytes(row.data)
        found = await asyncio.to_thread(blob_digest, data) if row.data is None else blob_digest(data)
        if found != digest:
            raise _corrupt(digest, found, len(data), row.size_bytes)
        return data

    async def get_many(self, digests: Iterable[str]) -> dict[str, bytes]:
        """Several blobs by name: the small in one statement, the large side by side. Raises as `get`."""
        wanted = set(map(_checked, digests))
        rows = await self._database.rows(_FIND, {"digests": list(wanted)})
        missing = wanted - {row.digest for row in rows}
        if missing:
            raise _missing(min(missing), len(missing) - 1)
        blobs: dict[str, bytes] = {}
        for row in rows:
            if row.data is not None:
                blobs[row.digest] = bytes(row.data)
                found = blob_digest(blobs[row.digest])
                if found != row.digest:
                    raise _corrupt(row.digest, found, len(row.data), row.size_bytes)
        large = [row.digest for row in rows if row.data is None]
        blobs.update(zip(large, await asyncio.gather(*map(self.get, large)), strict=True))
        return blobs

    async def get_to_file(self, digest: str, path: Path) -> None:
        """Write a blob to a file, checked against its name, without holding a large one in memory.

        The file appears whole or not at all; one that is there is replaced. Raises as `get`.
        """
        row = await self._find(digest)
        await patiently(str(self._objects.address), self._objects.wait_s, lambda: self._write_file(row, path))

    async def _write_file(self, row: Row[Any], path: Path) -> None:
        descriptor, name = await asyncio.to_thread(tempfile.mkstemp, prefix=f".{path.name}.", dir=path.parent)
        partial = Path(name)
        try:
            hasher = hashlib.sha256()
            size_bytes = 0
            with os.fdopen(descriptor, "wb") as file:

                def write(chunk: bytes) -> None:
                    nonlocal size_bytes
                    hasher.update(chunk)
                    size_bytes += len(chunk)
                    file.write(chunk)

                if row.data is None:
                    await self._objects.get_chunks(object_key(row.digest), write)
                else:
                    write(bytes(row.data))
            if hasher.hexdigest() != row.digest:
                raise _corrupt(row.digest, hasher.hexdigest(), size_bytes, row.size_bytes)
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)

    async def check(self, digests: Iterable[str], *, keep: Collection[str] = ()) -> Checked:
        """Hash blobs of any size: the small out of one statement, the large side by side and none of them in memory.

        Args:
            digests: Which; some hundreds at once.
            keep: Of them, those whose bytes are wanted.

        Raises:
            BlobStoreUnavailable, DatabaseUnavailable: no answer.
        """
        wanted = set(digests)
        checked = Checked({digest: _no_name(digest) for digest in wanted if not _DIGEST.fullmatch(digest)}, set(), {})
        wanted -= checked.faults.keys()
        rows = await self._database.rows(_FIND, {"digests": list(wanted)})
        for digest in wanted - {row.digest for row in rows}:
            checked.note(digest, _missing(digest, 0))
        for row in rows:
            if row.data is not None:
                data = bytes(row.data)
                found = blob_digest(data)
                if found != row.digest:
                    checked.note(row.digest, _corrupt(row.digest, found, len(data), row.size_bytes))
                elif row.digest in keep:
                    checked.kept[row.digest] = data
        await asyncio.gather(*(self._check_large(row, keep, checked) for row in rows if row.data is None))
        return checked

    async def _check_large(self, row: Row[Any], keep: Collection[str], checked: Checked) -> None:
        try:
            if row.digest in keep:
                checked.kept[row.digest] = await self.get(row.digest)
            else:
                await patiently(str(self._objects.address), self._objects.wait_s, lambda: self._hash_large(row))
        except (BlobMissing, BlobCorrupt) as error:
            checked.note(row.digest, error)

    async def _hash_large(self, row: Row[Any]) -> None:
        hasher, sizes = hashlib.sha256(), list[int]()

        def see(chunk: bytes) -> None:
            hasher.update(chunk)
            sizes.append(len(chunk))

        await self._objects.get_chunks(object_key(row.digest), see)
        if hasher.hexdigest() != row.digest:
            raise _corrupt(row.digest, hasher.hexdigest(), sum(sizes), row.size_bytes)

    async def sizes(self, digests: Iterable[str]) -> dict[str, int]:
        """Sizes in bytes of those that are stored."""
        rows = await self._database.rows(_FIND_SIZES, {"digests": list(digests)})
        return {row.digest: row.size_bytes for row in rows}

    async def exists(self, digest: str) -> bool:
        """Whether a blob is stored."""
        return bool(await self.sizes([_checked(digest)]))

    async def _find(self, digest: str) -> Row[Any]:
        rows = await self._database.rows(_FIND, {"digests": [_checked(digest)]})
        if not rows:
            raise _missing(digest, 0)
        return rows[0]

    async def _stands(self, ref: BlobRef, retention: str) -> bool:
        """Whether a large blob is stored already; if so, its class is noted. One that was lost or cut short in the
        bucket is not: putting it again makes it good."""
        if not await self._database.rows(_RETAIN, {"digest": ref.digest, "retention": retention}):
            return False
        return await self._objects.size_bytes(object_key(ref.digest)) == ref.size_bytes

    async def _record_large(self, ref: BlobRef, retention: str) -> None:
        values = {"digest": ref.digest, "size": ref.size_bytes, "retention": retention}
        await self._database.rows(_PUT_LARGE, values)


def object_key(digest: str) -> str:
    """Where a blob lies in its bucket."""
    return f"blobs/{digest[:2]}/{digest}"


def _checked(digest: str) -> str:
    if not _DIGEST.fullmatch(digest):
        raise ValueError(_no_name(digest))
    return digest


def _no_name(digest: str) -> str:
    return f"{digest!r} names no blob: a name is 64 lower-case hexadecimal digits"


def _file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _missing(digest: str, others: int) -> BlobMissing:
    more = f", nor are {others} others" if others else ""
    return BlobMissing(f"blob {digest} is not stored{more}")


def _corrupt(digest: str, found: str, size_bytes: int, wanted_bytes: int) -> BlobCorrupt:
    return BlobCorrupt(
        f"blob {digest} is corrupt: {size_bytes} bytes that hash to {found} are stored, {wanted_bytes} bytes were put. "
        "Remove what is stored, then put it again or restore it from a copy"
    )
