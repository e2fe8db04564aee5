"""Bytes under their digest, in a real Postgres and a real S3."""

import asyncio
import hashlib
import os
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import boto3
import pytest
from sqlalchemy import text

from db.blobs import SMALL_BYTES, BlobRef, BlobStore, object_key
from db.database import Database
from db.errors import BlobCorrupt, BlobMissing, BlobStoreUnavailable, BucketMissing, DiskFull, Fenced
from db.ledger import Ledger
from db.objects import ObjectStore, S3Address
from stepwell.events import AttemptOpened

SIZES = [0, 1, SMALL_BYTES - 1, SMALL_BYTES, 300_000]
AT = ["empty", "one byte", "largest small", "smallest large", "large"]


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


async def where(connections: Database, digest: str) -> str:
    (row,) = await connections.rows(text("SELECT place FROM blobs WHERE digest = :d"), {"d": digest})
    return row.place


async def retentions(connections: Database, digest: str) -> set[str]:
    rows = await connections.rows(text("SELECT retention FROM blob_retentions WHERE digest = :d"), {"d": digest})
    return {row.retention for row in rows}


@pytest.mark.parametrize("size_bytes", SIZES, ids=AT)
async def test_bytes_come_back_under_their_sha256(blobs: BlobStore, connections: Database, size_bytes: int) -> None:
    data = os.urandom(size_bytes)
    ref = await blobs.put(data)
    assert ref == BlobRef(sha256(data), size_bytes)
    assert await blobs.get(ref.digest) == data
    assert await blobs.exists(ref.digest)
    assert await where(connections, ref.digest) == ("postgres" if size_bytes < SMALL_BYTES else "s3")


@pytest.mark.parametrize("size_bytes", SIZES, ids=AT)
async def test_a_file_goes_in_and_out(blobs: BlobStore, tmp_path: Path, size_bytes: int) -> None:
    data = os.urandom(size_bytes)
    (tmp_path / "in").write_bytes(data)
    ref = await blobs.put_file(tmp_path / "in")
    (tmp_path / "out").write_bytes(b"what was there before")
    await blobs.get_to_file(ref.digest, tmp_path / "out")
    assert ref == BlobRef(sha256(data), size_bytes)
    assert (tmp_path / "out").read_bytes() == data
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out"]


async def test_a_file_that_is_put_in_parts_comes_back(
    connections: Database, bucket: S3Address, blobs: BlobStore, tmp_path: Path
) -> None:
    objects = ObjectStore(bucket, multipart_bytes=6 << 20)
    data = os.urandom(13 << 20)
    (tmp_path / "in").write_bytes(data)
    ref = await BlobStore(connections, objects).put_file(tmp_path / "in")
    assert ref == await blobs.put_file(tmp_path / "in")
    assert await blobs.get(ref.digest) == data
    await objects.close()


@pytest.mark.parametrize("size_bytes", [100, 100_000], ids=["small", "large"])
async def test_the_same_put_many_times_at_once_is_one_blob_of_every_class(
    blobs: BlobStore, connections: Database, size_bytes: int
) -> None:
    data = os.urandom(size_bytes)
    classes = ["run", "run", "checkpoint", "always"]
    refs = await asyncio.gather(*(blobs.put(data, retention=retention) for retention in classes))
    assert len(set(refs)) == 1
    assert await retentions(connections, refs[0].digest) == set(classes)


async def test_many_are_put_and_read_in_one_go(blobs: BlobStore) -> None:
    data = [os.urandom(size) for size in (10, 50_000, 20, 60_000)] + [b"twice", b"twice"]
    refs = await blobs.put_many(data)
    assert [ref.digest for ref in refs] == [sha256(each) for each in data]
    assert await blobs.get_many(ref.digest for ref in refs) == {sha256(each): each for each in data}
    assert await blobs.get_many([]) == {}


@pytest.mark.parametrize("size_bytes", [100, 100_000], ids=["small", "large"])
async def test_an_append_stores_the_blobs_that_its_events_name(
    ledger: Ledger, blobs: BlobStore, fresh, size_bytes: int
) -> None:
    data = os.urandom(size_bytes)
    event = AttemptOpened(attempt=sha256(data), worker="w", resumed_at=0)
    await ledger.append(f"rollout/{fresh()}/0/0/0", [event], expected_seq=0, actor="sandbox:s", blobs=[data, data])
    assert await blobs.get(sha256(data)) == data


async def test_an_append_that_is_fenced_stores_no_blob(ledger: Ledger, blobs: BlobStore, fresh) -> None:
    data = os.urandom(100)
    event = AttemptOpened(attempt="a", worker="w", resumed_at=0)
    with pytest.raises(Fenced):
        await ledger.append(f"rollout/{fresh()}/0/0/0", [event], expected_seq=3, actor="sandbox:s", blobs=[data])
    assert not await blobs.exists(sha256(data))


async def test_a_large_blob_needs_a_ledger_with_a_blob_store(connections: Database, fresh) -> None:
    event = AttemptOpened(attempt="a", worker="w", resumed_at=0)
    stream = f"rollout/{fresh()}/0/0/0"
    with pytest.raises(ValueError, match="needs a ledger with a blob store"):
        await Ledger(connections).append(stream, [event], expected_seq=0, actor="sandbox:s", blobs=[bytes(SMALL_BYTES)])


@pytest.mark.parametrize("read", ["get", "get_many", "get_to_file"])
async def test_what_was_never_put_is_missing(blobs: BlobStore, tmp_path: Path, read: str) -> None:
    digest = sha256(os.urandom(8))
    arguments = {"get": [digest], "get_many": [[digest]], "get_to_file": [digest, tmp_path / "out"]}[read]
    with pytest.raises(BlobMissing, match=digest):
        await getattr(blobs, read)(*arguments)
    assert not await blobs.exists(digest)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("digest", ["", "ab", "A" * 64, "../" * 21 + "x"])
async def test_a_name_that_is_no_digest_is_refused(blobs: BlobStore, digest: str) -> None:
    with pytest.raises(ValueError, match="64 lower-case hexadecimal"):
        await blobs.get(digest)


@pytest.mark.parametrize("retention", ["", "Run", "a b", "x" * 40])
async def test_a_retention_class_is_a_short_word(blobs: BlobStore, retention: str) -> None:
    with pytest.raises(ValueError, match="retention class"):
        await blobs.put(b"x", retention=retention)


@pytest.mark.parametrize("stored", [b"y" * 100_000, b"x" * 99_999, b""], ids=["changed", "cut short", "emptied"])
@pytest.mark.parametrize("read", ["get", "get_many", "get_to_file"])
async def test_bytes_that_changed_in_the_bucket_are_never_returned(
    blobs: BlobStore, bucket: S3Address, tmp_path: Path, stored: bytes, read: str
) -> None:
    data = b"x" * 100_000 + os.urandom(8)
    ref = await blobs.put(data)
    _client(bucket).put_object(Bucket=bucket.bucket, Key=object_key(ref.digest), Body=stored)
    arguments = {"get": [ref.digest], "get_many": [[ref.digest]], "get_to_file": [ref.digest, tmp_path / "out"]}[read]
    with pytest.raises(BlobCorrupt, match=ref.digest):
        await getattr(blobs, read)(*arguments)
    assert list(tmp_path.iterdir()) == []


async def test_an_upload_that_was_cut_short_before_it_was_recorded_is_made_good(
    blobs: BlobStore, bucket: S3Address
) -> None:
    data = os.urandom(100_000)
    key = object_key(sha256(data))
    _client(bucket).put_object(Bucket=bucket.bucket, Key=key, Body=data[:500])
    ref = await blobs.put(data)
    assert await blobs.get(ref.digest) == data


async def test_an_object_that_was_removed_from_the_bucket_is_missing(blobs: BlobStore, bucket: S3Address) -> None:
    ref = await blobs.put(os.urandom(100_000))
    _client(bucket).delete_object(Bucket=bucket.bucket, Key=object_key(ref.digest))
    with pytest.raises(BlobMissing):
        await blobs.get(ref.digest)


@pytest.mark.parametrize("stored", [None, b"", b"x"], ids=["lost", "emptied", "cut short"])
async def test_putting_a_blob_again_makes_good_what_the_bucket_lost(
    blobs: BlobStore, bucket: S3Address, tmp_path: Path, stored: bytes | None
) -> None:
    data = os.urandom(100_000)
    ref = await blobs.put(data)
    _client(bucket).delete_object(Bucket=bucket.bucket, Key=object_key(ref.digest))
    if stored is not None:
        _client(bucket).put_object(Bucket=bucket.bucket, Key=object_key(ref.digest), Body=stored)
    (tmp_path / "in").write_bytes(data)
    assert await blobs.put_file(tmp_path / "in") == ref
    assert await blobs.get(ref.digest) == data


async def test_a_missing_bucket_is_one_clear_error(connections: Database, bucket: S3Address) -> None:
    objects = ObjectStore(replace(bucket, bucket="no-such-bucket"))
    with pytest.raises(BucketMissing, match=r"no-such-bucket.*STEPWELL_S3_BUCKET"):
        await BlobStore(connections, objects).put(os.urandom(SMALL_BYTES))
    await objects.close()


async def test_a_store_that_does_not_answer_is_one_clear_error(
    connections: Database, bucket: S3Address, unused_tcp_port: int
) -> None:
    objects = ObjectStore(replace(bucket, endpoint=f"http://127.0.0.1:{unused_tcp_port}"))
    data = os.urandom(SMALL_BYTES)
    store = BlobStore(connections, objects)
    with pytest.raises(BlobStoreUnavailable, match="STEPWELL_S3_ENDPOINT"):
        await store.put(data)
    assert not await store.exists(sha256(data))
    await objects.close()


def _client(bucket: S3Address):
    """Somebody with all rights in the bucket."""
    return boto3.client(
        "s3",
        endpoint_url=bucket.endpoint,
        aws_access_key_id=bucket.access_key,
        aws_secret_access_key=bucket.secret_key,
        region_name=bucket.region,
    )


class _FullStore(BaseHTTPRequestHandler):
    """Answers every put as a store without room does."""

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.end_headers()

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        body = b"<Error><Code>InternalError</Code><Message>no space left on device</Message></Error>"
        self.send_response(500)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing: the test reads the error."""


async def test_a_store_without_room_is_one_clear_error(connections: Database, bucket: S3Address) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _FullStore)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    objects = ObjectStore(replace(bucket, endpoint=f"http://127.0.0.1:{server.server_port}"))
    store = BlobStore(connections, objects)
    data = os.urandom(SMALL_BYTES)
    with pytest.raises(DiskFull, match=r"InternalError.*free space"):
        await store.put(data)
    assert not await store.exists(sha256(data))
    await objects.close()
    server.shutdown()
    server.server_close()
