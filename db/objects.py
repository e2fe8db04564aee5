"""Objects in an S3 bucket: put once, never changed. Blocking calls of boto3, each in a thread of our own pool."""

import asyncio
import base64
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import boto3
from boto3.exceptions import Boto3Error
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from db.errors import BlobMissing, BlobStoreUnavailable, BucketMissing, DiskFull
from db.outages import patiently

T = TypeVar("T")

SILENCE_S = 20.0
"""Longest wait for the next byte of an answer, and for the peer to take the next byte of a request."""
_CHUNK_BYTES = 1 << 20
_CONFLICT_TRIES = 5
"""A conditional put beside another of the same key may be answered 409: ask again."""
_FULL = frozenset({"InternalError", "507", "InsufficientStorage", "QuotaExceeded", "XMinioStorageFull"})
"""Answers to a put by stores without room. SeaweedFS says InternalError, also when it runs out of volumes."""
_NO_BUCKET = frozenset({"NoSuchBucket", "AccessDenied", "AllAccessDisabled"})
"""Answers for a bucket that does not exist, or is not ours: SeaweedFS and AWS deny where they will not tell."""


@dataclass(frozen=True)
class S3Address:
    """Where a bucket is."""

    bucket: str
    """Its name."""
    endpoint: str | None = None
    """`http://host:port`; None for AWS itself."""
    access_key: str | None = None
    """None for boto3's own search: environment, profile, instance."""
    secret_key: str | None = None
    """Goes with it."""
    region: str = "us-east-1"
    """What SigV4 signs with; stores other than AWS take any."""

    def __str__(self) -> str:
        return f"bucket {self.bucket!r} at {self.endpoint or 'AWS'}"


class ObjectStore:
    """One bucket.

    Args:
        address: Where it is.
        threads: Requests at once.
        multipart_bytes: Files from this size on are put in parts (S3 takes at most 5 GiB in one).
        wait_s: How long calls wait for a store that is away or full.
    """

    def __init__(
        self, address: S3Address, *, threads: int = 16, multipart_bytes: int = 256 << 20, wait_s: float = 0.0
    ) -> None:
        self.address = address
        self.wait_s = wait_s
        self._multipart_bytes = multipart_bytes
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="s3")
        self._bucket_seen = False
        self._client: Any = boto3.Session().client(
            "s3",
            endpoint_url=address.endpoint,
            aws_access_key_id=address.access_key,
            aws_secret_access_key=address.secret_key,
            region_name=address.region,
            config=Config(
                connect_timeout=5,
                read_timeout=SILENCE_S,
                tcp_keepalive=True,
                retries={"mode": "standard", "total_max_attempts": 3},
                max_pool_connections=threads,
                s3={"addressing_style": "path" if address.endpoint else "auto"},
            ),
        )

    async def put(self, key: str, data: bytes, *, sha256: str) -> None:
        """Store bytes under a key unless it is taken; the store checks their SHA-256.

        Raises:
            DiskFull: the store has no room.
            BucketMissing: the bucket does not exist, or the credentials do not reach it.
            BlobStoreUnavailable: no answer.
        """
        await self._run(lambda: self._put(key, data, len(data), sha256))

    async def put_file(self, key: str, path: Path, *, size_bytes: int, sha256: str) -> None:
        """Store a file under a key unless it is taken. Raises as `put`."""
        await self._run(lambda: self._put_file(key, path, size_bytes, sha256))

    async def get(self, key: str) -> bytes:
        """The bytes under a key, unchecked.

        Raises:
            BlobMissing: nothing is there.
            BucketMissing: the bucket does not exist, or the credentials do not reach it.
            BlobStoreUnavailable: no answer.
        """

        def read() -> bytes:
            with self._clear_errors(key):
                return self._client.get_object(Bucket=self.address.bucket, Key=key)["Body"].read()

        return await self._run(read)

    async def get_chunks(self, key: str, sink: Callable[[bytes], object]) -> None:
        """Hand the bytes under a key, unchecked, to `sink` piece by piece, in a thread; one try. Raises as `get`."""

        def read() -> None:
            with self._clear_errors(key):
                body = self._client.get_object(Bucket=self.address.bucket, Key=key)["Body"]
                for chunk in body.iter_chunks(_CHUNK_BYTES):
                    sink(chunk)

        await self._in_thread(read)

    async def size_bytes(self, key: str) -> int | None:
        """Size of the object under a key, None if there is none. Raises as `get`."""
        return await self._run(lambda: self._size_bytes(key))

    async def delete(self, key: str) -> None:
        """Delete the object under a key, if there is one. Raises as `put`."""

        def forget() -> None:
            with self._clear_errors(key):
                self._client.delete_object(Bucket=self.address.bucket, Key=key)

        await self._run(forget)

    async def close(self) -> None:
        """Wait for the requests that run, and close the connections."""
        await asyncio.to_thread(self._pool.shutdown)
        self._client.close()

    async def _run(self, work: Callable[[], T]) -> T:
        return await patiently(str(self.address), self.wait_s, lambda: self._in_thread(work))

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    def _put(self, key: str, body: Any, size_bytes: int, sha256: str) -> None:
        checksum = base64.b64encode(bytes.fromhex(sha256)).decode()
        put = {"Bucket": self.address.bucket, "Key": key, "Body": body, "ChecksumSHA256": checksum}
        with self._clear_errors(key, writing=True):
            self._see_bucket()
            for attempt in range(_CONFLICT_TRIES):
                try:
                    self._client.put_object(**put, IfNoneMatch="*")
                    return
                except ClientError as error:
                    code = _code(error)
                    if code == "ConditionalRequestConflict" and attempt + 1 < _CONFLICT_TRIES:
                        time.sleep(0.05 * 2**attempt)
                    elif code == "PreconditionFailed":
                        break
                    else:
                        raise
            if self._size_bytes(key) != size_bytes:
                if hasattr(body, "seek"):
                    body.seek(0)
                self._client.put_object(**put)

    def _put_file(self, key: str, path: Path, size_bytes: int, sha256: str) -> None:
        if size_bytes < self._multipart_bytes:
            with path.open("rb") as file:
                self._put(key, file, size_bytes, sha256)
            return
        if self._size_bytes(key) == size_bytes:
            return
        part = max(self._multipart_bytes // 4, size_bytes // 9_000 + 1, 5 << 20)
        with self._clear_errors(key, writing=True):
            self._see_bucket()
            self._client.upload_file(
                str(path),
                self.address.bucket,
                key,
                Config=TransferConfig(multipart_threshold=1, multipart_chunksize=part, max_concurrency=4),
            )
        stored = self._size_bytes(key)
        if stored != size_bytes:
            raise BlobStoreUnavailable(
                f"{self.address} holds {stored} bytes of {key}, {size_bytes} were put: was {path} changed meanwhile?"
            )

    def _see_bucket(self) -> None:
        """Look once that the bucket is there: SeaweedFS makes a bucket of a mistyped name by the first put to it."""
        if not self._bucket_seen:
            try:
                self._client.head_bucket(Bucket=self.address.bucket)
            except ClientError as error:
                if _code(error) not in ("404", "403", "NoSuchBucket"):
                    raise
                raise self._no_bucket(_code(error)) from error
            self._bucket_seen = True

    def _no_bucket(self, code: str) -> BucketMissing:
        return BucketMissing(
            f"{self.address} does not exist, or these credentials may not use it ({code}): "
            "create it, or set STEPWELL_S3_ENDPOINT and STEPWELL_S3_BUCKET"
        )

    def _size_bytes(self, key: str) -> int | None:
        with self._clear_errors(key):
            try:
                return self._client.head_object(Bucket=self.address.bucket, Key=key)["ContentLength"]
            except ClientError as error:
                if _code(error) in ("404", "NoSuchKey", "NotFound"):
                    return None
                raise

    @contextmanager
    def _clear_errors(self, key: str, *, writing: bool = False) -> Generator[None]:
        try:
            yield
        except ClientError as error:
            code = _code(error)
            if code in ("NoSuchKey", "404"):
                raise BlobMissing(f"nothing under {key} in {self.address}") from error
            if code in _NO_BUCKET:
                raise self._no_bucket(code) from error
            if writing and code in _FULL:
                raise DiskFull(
                    f"{self.address} refused {key} ({code}), as stores do that have no room: free space, unless it has "
                    "only just started"
                ) from error
            if code == "RequestTimeTooSkewed":
                raise BlobStoreUnavailable(
                    f"{self.address} refused {key}: this machine's clock is off by more than the store allows; set it"
                ) from error
            raise BlobStoreUnavailable(f"{self.address} refused {key}: {error}") from error
        except (BotoCoreError, Boto3Error) as error:  # the second: a part of a large file could not be put
            raise BlobStoreUnavailable(
                f"no answer from {self.address}: {error}. Check that it runs and that STEPWELL_S3_ENDPOINT names it"
            ) from error


def _code(error: ClientError) -> str:
    """The store's own word for what is wrong; for an answer without a body, the HTTP status."""
    return str(error.response.get("Error", {}).get("Code", ""))
