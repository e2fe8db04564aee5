"""How the proxy reads what a client asks for: the head of a request, and the name in a TLS client's first message."""

import ssl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell.ptb.network.client_hello import HANDSHAKE, NoClientHello, record_bytes, server_name
from stepwell.ptb.network.request import BadRequest, read_request


def head(*lines: str) -> bytes:
    """A head of these lines."""
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def client_hello(name: str | None) -> bytes:
    """What a real client of this Python sends first."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    outgoing = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def test_connect_asks_for_a_tunnel() -> None:
    request = read_request(head("CONNECT API.example.org:443 HTTP/1.1", "Host: other.example"))
    assert (request.is_tunnel, request.host, request.port) == (True, "api.example.org", 443)
    assert request.head == b""


def test_connect_takes_an_address_of_ipv6() -> None:
    request = read_request(head("CONNECT [::1]:8443 HTTP/1.1"))
    assert (request.host, request.port) == ("::1", 8443)


def test_a_plain_request_is_passed_on_for_the_host_of_its_address_whatever_its_header_says() -> None:
    request = read_request(
        head(
            "GET http://example.org/a?b=c HTTP/1.1",
            "Host: denied.example",
            "Proxy-Authorization: Basic eA==",
            "Connection: keep-alive",
            "Accept: */*",
        )
    )
    assert (request.host, request.port, request.body_bytes) == ("example.org", 80, 0)
    assert request.head == head("GET /a?b=c HTTP/1.1", "Host: example.org", "Connection: close", "Accept: */*")


def test_a_plain_request_keeps_its_port_and_the_length_of_its_body() -> None:
    request = read_request(head("POST http://example.org:8080 HTTP/1.1", "Content-Length: 12"))
    assert (request.port, request.body_bytes) == (8080, 12)
    assert b"POST / HTTP/1.1\r\nHost: example.org:8080\r\n" in request.head


@pytest.mark.parametrize(
    "lines",
    [
        ("GET / HTTP/1.1", "Host: example.org"),
        ("GET https://example.org/ HTTP/1.1",),
        ("GET ftp://example.org/ HTTP/1.1",),
        ("GET http:///a HTTP/1.1",),
        ("GET http://[::1/ HTTP/1.1",),
        ("GET http://example.org:99999/ HTTP/1.1",),
        ("GET http://exa mple.org/ HTTP/1.1",),
        ("CONNECT example.org HTTP/1.1",),
        ("CONNECT example.org:https HTTP/1.1",),
        ("CONNECT example.org:443 SSH",),
        ("GET http://example.org/ HTTP/1.1", "no colon"),
        ("GET http://example.org/ HTTP/1.1", "A: b", " folded"),
        ("GET http://example.org/ HTTP/1.1", "A: b\nHost: denied.example"),
        ("GET http://example.org/ HTTP/1.1", "A: b\rHost: denied.example"),
        ("POST http://example.org/ HTTP/1.1", "Transfer-Encoding: chunked"),
        ("POST http://example.org/ HTTP/1.1", "Content-Length: 1", "Content-Length: 2"),
        ("POST http://example.org/ HTTP/1.1", "Content-Length: +1"),
    ],
    ids=str,
)
def test_what_could_be_read_in_two_ways_is_refused(lines: tuple[str, ...]) -> None:
    with pytest.raises(BadRequest):
        read_request(head(*lines))


@given(st.binary(max_size=300))
def test_no_bytes_make_the_reader_of_heads_fail_otherwise(data: bytes) -> None:
    try:
        read_request(data + b"\r\n\r\n")
    except BadRequest:
        return


@pytest.mark.parametrize("name", ["api.example.org", "xn--bcher-kva.example"])
def test_the_name_that_a_tls_client_asks_for_is_read(name: str) -> None:
    hello = client_hello(name)
    assert hello[0] == HANDSHAKE
    assert record_bytes(hello) == len(hello) - 5
    assert server_name(hello[5:]) == name


def test_a_tls_client_need_not_ask_for_a_name() -> None:
    assert server_name(client_hello(None)[5:]) is None


@given(st.integers(min_value=0, max_value=200))
def test_a_cut_message_is_no_client_hello(size: int) -> None:
    with pytest.raises(NoClientHello):
        server_name(client_hello("api.example.org")[5:][:size])


@given(st.binary(max_size=200))
def test_no_bytes_make_the_reader_of_names_fail_otherwise(data: bytes) -> None:
    try:
        server_name(data)
    except NoClientHello:
        return
