"""The network of an agent: through the proxy or not at all."""

import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from stepwell.ptb.network.policy import HostRule, NetworkPolicy
from tests.supervised_agents import ended, lines, started

ASKS = """
import os, sys, urllib.request, urllib.error
for url in sys.argv[1:]:
    try:
        print(urllib.request.urlopen(url, timeout=120).read().decode())
    except urllib.error.HTTPError as error:
        print(error.code, error.read().decode().strip())
    except OSError as error:
        print("no way:", error)
"""
GOES_ROUND = """
import os, socket, urllib.request
def tries(what, way):
    try:
        way()
    except OSError as error:
        print(what, "refused")
    else:
        print(what, "REACHED")
port = int(os.environ["HOST_PORT"])
tries("host", lambda: socket.create_connection(("127.0.0.1", port), 5))
tries("internet", lambda: socket.create_connection(("93.184.216.34", 443), 5))
tries("names", lambda: socket.getaddrinfo("example.org", 443))
tries("datagrams", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(("1.1.1.1", 53)))
tries("abstract", lambda: socket.socket(socket.AF_UNIX).connect("\\0" + os.environ["ABSTRACT"]))
tries("raw", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))
print("interfaces", [name for _, name in socket.if_nameindex()])
"""


class Judge(BaseHTTPRequestHandler):
    """A local judge."""

    def do_GET(self) -> None:
        body = f"judged {self.path}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


@contextmanager
def served(server: socketserver.BaseServer) -> Iterator[None]:
    """Serves while the block runs."""
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="module")
def judge_port() -> Iterator[int]:
    """Port of a local judge."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Judge)
    with served(server):
        yield server.server_address[1]


def test_an_agent_reaches_what_is_allowed_and_nothing_else_and_all_is_logged(tmp_path: Path, judge_port: int) -> None:
    judge = HostRule(host="localhost", ports=(judge_port,), reason="local judge", private=True)
    policy = NetworkPolicy(mode="allow", allow=(judge,))
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "ask.py").write_text(ASKS)
    # In one's own network `localhost` is one's own machine: the proxy is asked by a client that is told to.
    urls = f"http://localhost:{judge_port}/a http://127.0.0.1:{judge_port}/b http://example.org/c https://example.org/d"
    agent = started(tmp_path, f"NO_PROXY= no_proxy= python ask.py {urls}", network=policy)
    end = ended(agent)
    said = lines(agent)
    assert said[0] == "judged /a"
    assert [line.split()[0] for line in said[1:3]] == ["403", "403"]
    assert said[3].startswith("no way: ")
    assert "403" in said[3]
    logged = [json.loads(line) for line in Path(end.network_log).read_text().splitlines()]
    assert [(line["host"], line["port"], line["method"], line["verdict"]) for line in logged] == [
        ("localhost", judge_port, "GET", "allowed"),
        ("127.0.0.1", judge_port, "GET", "refused"),
        ("example.org", 80, "GET", "refused"),
        ("example.org", 443, "CONNECT", "refused"),
    ]
    assert logged[0]["received_bytes"] > len("judged /a")
    assert logged[0]["reason"] == "local judge"


def test_names_under_a_denied_one_and_private_addresses_are_refused_where_the_rest_is_open(
    tmp_path: Path, judge_port: int
) -> None:
    policy = NetworkPolicy(
        mode="deny",
        deny=(HostRule(host="*.leaks.example", reason="has the answers"),),
        allow=(HostRule(host="localhost", ports=(judge_port,), reason="its port alone"),),
    )
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "ask.py").write_text(ASKS)
    urls = f"http://www.leaks.example/ http://localhost:{judge_port}/ http://127.0.0.1:{judge_port}/"
    agent = started(tmp_path, f"NO_PROXY= no_proxy= python ask.py {urls}", network=policy)
    ended(agent)
    answers = lines(agent)
    assert [line.split()[0] for line in answers] == ["403", "403", "403"]
    assert "has the answers" in answers[0]
    assert "not public" in answers[1]
    assert "by its name" in answers[2]


@pytest.mark.parametrize("mode", ["none", "allow"])
def test_there_is_no_way_round_the_proxy(tmp_path: Path, judge_port: int, mode: str) -> None:
    rules = (HostRule(host="localhost", ports=(judge_port,), reason="local judge", private=True),)
    policy = NetworkPolicy.model_validate({"mode": mode, "allow": rules if mode == "allow" else ()})
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "round.py").write_text(GOES_ROUND)
    name = f"stepwell-test-{tmp_path.name}-{mode}"
    with served(socketserver.ThreadingUnixStreamServer(f"\0{name}", socketserver.StreamRequestHandler)):
        environment = {"HOST_PORT": str(judge_port), "ABSTRACT": name}
        agent = started(tmp_path, "python round.py; env | grep -ci _proxy=", network=policy, environment=environment)
        ended(agent)
    *tried, interfaces, proxies = lines(agent)
    assert [line.split()[1] for line in tried] == 6 * ["refused"]
    assert interfaces == "interfaces ['lo']"
    assert proxies == ("0" if mode == "none" else "9")


def test_a_command_that_hangs_on_the_network_ends_with_the_agent(tmp_path: Path) -> None:
    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Silent)
    server.daemon_threads = True
    port = server.server_address[1]
    rule = HostRule(host="localhost", ports=(port,), reason="says nothing", private=True)
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "ask.py").write_text(ASKS)
    with served(server):
        script = f"NO_PROXY= no_proxy= python ask.py http://localhost:{port}/ & sleep 1; echo over"
        agent = started(tmp_path, script, network=NetworkPolicy(mode="allow", allow=(rule,)))
        end = ended(agent)
    assert end.ended == "itself"


class Silent(socketserver.BaseRequestHandler):
    """Hears a client out, and says nothing."""

    def handle(self) -> None:
        while self.request.recv(1 << 16):
            pass
