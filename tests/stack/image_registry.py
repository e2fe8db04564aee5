"""A registry of images on this machine: Debian's `docker-registry`, on loopback, with what a test puts into it."""

import hashlib
import json
import re
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from workers.services.plan import launcher_argv

PROGRAM = "docker-registry"
START_S = 60.0
_CONFIGURATION = """\
version: 0.1
log: {{level: info}}
storage: {{filesystem: {{rootdirectory: {folder}}}}}
http: {{addr: "127.0.0.1:0"}}
"""
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar"


def digest(content: bytes) -> str:
    """Of a blob, as a registry writes it."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


@dataclass(frozen=True)
class Registry:
    """A registry that runs."""

    address: str
    """Host and port; it speaks HTTP, without TLS."""
    folder: Path
    """Where it keeps what it has."""

    def push(self, name: str, layer: bytes, config: Mapping[str, object]) -> str:
        """Puts an image of one layer, a tar archive, there, and gives the digest of its manifest.

        Args:
            name: Of the image, without a tag.
            layer: Its files.
            config: What containers of it are to have, such as `Env`.
        """
        described: dict[str, object] = {"architecture": "amd64", "os": "linux", "config": config}
        described["rootfs"] = {"type": "layers", "diff_ids": [digest(layer)]}
        blobs = {_CONFIG: json.dumps(described).encode(), _LAYER: layer}
        entries = {kind: {"mediaType": kind, "digest": digest(blob), "size": len(blob)} for kind, blob in blobs.items()}
        for blob in blobs.values():
            self._put_blob(name, blob)
        said = {"schemaVersion": 2, "mediaType": _MANIFEST, "config": entries[_CONFIG], "layers": [entries[_LAYER]]}
        manifest = json.dumps(said).encode()
        self._send("PUT", f"http://{self.address}/v2/{name}/manifests/latest", manifest, _MANIFEST)
        return digest(manifest)

    def file_of(self, blob: str) -> Path:
        """Where a blob is kept, by its digest."""
        kind, _, number = blob.partition(":")
        return self.folder / "docker/registry/v2/blobs" / kind / number[:2] / number / "data"

    def _put_blob(self, name: str, content: bytes) -> None:
        place = self._send("POST", f"http://{self.address}/v2/{name}/blobs/uploads/", b"", "text/plain")
        joined = "&" if "?" in place else "?"
        self._send("PUT", f"{place}{joined}digest={digest(content)}", content, "application/octet-stream")

    def _send(self, method: str, url: str, body: bytes, kind: str) -> str:
        """Where the server says to go on."""
        request = urllib.request.Request(url, body, {"Content-Type": kind}, method=method)
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with direct.open(request, timeout=60) as answer:
            return str(answer.headers.get("Location", ""))


@contextmanager
def running_registry(folder: Path) -> Iterator[Registry]:
    """A registry that keeps what it has in `folder`, and dies with this process."""
    program = shutil.which(PROGRAM)
    assert program is not None, f"no program {PROGRAM}: run scripts/install-debian-packages"
    configuration, log = folder / "registry.yml", folder / "log"
    configuration.write_text(_CONFIGURATION.format(folder=folder / "kept"))
    command = launcher_argv([program, "serve", str(configuration)], death_signal=9, identity=None)
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        deadline = time.monotonic() + START_S
        while (found := re.search(r"listening on (127\.0\.0\.1:\d+)", log.read_text())) is None:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        yield Registry(found[1], folder / "kept")
    finally:
        process.kill()
        process.wait()
