"""Which hosts a trial's policy lets through, and why."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from stepwell.ptb.network.policy import HostRule, NetworkPolicy, address_of, canonical_host, is_public

WHY = "said so"


def rule(host: str, *ports: int, private: bool = False) -> HostRule:
    """A rule with the usual ports unless some are given."""
    return HostRule(host=host, reason=f"{host}: {WHY}", private=private, **({"ports": ports} if ports else {}))


ALLOWING = NetworkPolicy(
    mode="allow",
    allow=(rule("api.example.org"), rule("*.models.example"), rule("127.0.0.1", 8000, private=True)),
    deny=(rule("secret.models.example"),),
)
DENYING = NetworkPolicy(
    mode="deny",
    deny=(rule("*.leaks.example"), rule("leaks.example"), rule("answers.example")),
    allow=(rule("git.example", 22), rule("judge.internal", 9000, private=True)),
)


@pytest.mark.parametrize(
    ("policy", "host", "port", "allowed"),
    [
        (NetworkPolicy(mode="none"), "api.example.org", 443, False),
        (ALLOWING, "api.example.org", 443, True),
        (ALLOWING, "api.example.org", 80, True),
        (ALLOWING, "api.example.org", 8443, False),
        (ALLOWING, "v2.api.example.org", 443, False),
        (ALLOWING, "example.org", 443, False),
        (ALLOWING, "hub.models.example", 443, True),
        (ALLOWING, "a.b.models.example", 443, True),
        (ALLOWING, "models.example", 443, False),
        (ALLOWING, "notmodels.example", 443, False),
        (ALLOWING, "secret.models.example", 443, False),
        (ALLOWING, "127.0.0.1", 8000, True),
        (ALLOWING, "127.0.0.1", 80, False),
        (DENYING, "api.example.org", 443, True),
        (DENYING, "leaks.example", 443, False),
        (DENYING, "www.leaks.example", 443, False),
        (DENYING, "a.b.leaks.example", 443, False),
        (DENYING, "notleaks.example", 443, True),
        (DENYING, "answers.example", 8080, False),
        (DENYING, "api.example.org", 22, False),
        (DENYING, "git.example", 22, True),
        (DENYING, "git.example", 443, True),
        (DENYING, "93.184.216.34", 443, False),
        (DENYING, "2606:2800:220:1::1", 443, False),
        (DENYING, "judge.internal", 9000, True),
    ],
)
def test_a_policy_lets_through(policy: NetworkPolicy, host: str, port: int, allowed: bool) -> None:
    assert policy.judge(host, port).allowed is allowed


def test_a_verdict_gives_the_reason_of_the_rule_that_decided() -> None:
    assert ALLOWING.judge("hub.models.example", 443).reason == f"*.models.example: {WHY}"
    assert ALLOWING.judge("secret.models.example", 443).reason == f"secret.models.example: {WHY}"


def test_only_a_rule_that_says_so_opens_private_addresses() -> None:
    assert ALLOWING.judge("127.0.0.1", 8000).private
    assert not ALLOWING.judge("api.example.org", 443).private
    assert not DENYING.judge("api.example.org", 443).private


@pytest.mark.parametrize(
    "fields",
    [
        {"mode": "none", "deny": [{"host": "a.example", "reason": WHY}]},
        {"mode": "allow"},
        {"mode": "deny"},
        {"mode": "deny", "allow": [{"host": "a.example", "reason": WHY}]},
        {"mode": "open"},
        {"mode": "allow", "allow": [{"host": "https://a.example", "reason": WHY}]},
        {"mode": "allow", "allow": [{"host": "a.example:443", "reason": WHY}]},
        {"mode": "allow", "allow": [{"host": "A.example", "reason": WHY}]},
        {"mode": "allow", "allow": [{"host": "*", "reason": WHY}]},
        {"mode": "allow", "allow": [{"host": "a.*.example", "reason": WHY}]},
        {"mode": "allow", "allow": [{"host": "*.internal", "reason": WHY, "private": True}]},
        {"mode": "allow", "allow": [{"host": "a.example", "reason": ""}]},
        {"mode": "allow", "allow": [{"host": "a.example", "reason": WHY, "ports": [0]}]},
    ],
    ids=str,
)
def test_a_policy_that_would_not_do_what_it_seems_to_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        NetworkPolicy.model_validate(fields)


@pytest.mark.parametrize(
    ("given_host", "host"),
    [
        ("API.Example.ORG", "api.example.org"),
        ("example.org.", "example.org"),
        ("[::1]", "::1"),
        ("0:0:0:0:0:0:0:1", "::1"),
        ("::ffff:127.0.0.1", "127.0.0.1"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("a_b.example", "a_b.example"),
    ],
)
def test_a_host_has_one_form(given_host: str, host: str) -> None:
    assert canonical_host(given_host) == host


@pytest.mark.parametrize(
    "text", ["", ".", "a b", "a/b", "a:80", "*.example", "a..b", "-a.example", "a" * 64, "é" * 300]
)
def test_what_is_no_host_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no name of a host"):
        canonical_host(text)


@pytest.mark.parametrize(
    "text",
    [
        *("127.0.0.1", "127.255.0.1", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254"),
        *("100.64.0.1", "224.0.0.1", "255.255.255.255", "192.0.2.1", "240.0.0.1"),
        *("::1", "::", "fe80::1", "fc00::1", "ff02::1", "2001:db8::1", "::ffff:10.0.0.1"),
        *("2002:7f00:1::", "64:ff9b::7f00:1", "2001:0:4136:e378:8000:63bf:3fff:fdd2"),
    ],
)
def test_an_address_that_is_not_of_the_internet_is_not_public(text: str) -> None:
    assert not is_public(ipaddress.ip_address(text))


@pytest.mark.parametrize("text", ["93.184.216.34", "8.8.8.8", "2606:2800:220:1:248:1893:25c8:1946", "::ffff:8.8.8.8"])
def test_an_address_of_the_internet_is_public(text: str) -> None:
    assert is_public(ipaddress.ip_address(text))


@given(st.ip_addresses(v=4))
def test_an_address_within_ipv6_is_as_public_as_the_address_itself(address: ipaddress.IPv4Address) -> None:
    mapped = ipaddress.ip_address(f"::ffff:{address}")
    assert is_public(mapped) == is_public(address)
    assert address_of(str(mapped)) == address


@given(st.ip_addresses())
def test_no_address_passes_a_list_of_denied_names(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    assert not DENYING.judge(canonical_host(str(address)), 443).allowed
