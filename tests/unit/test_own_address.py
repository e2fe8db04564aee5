"""By which address other machines reach this one."""

import pytest

from workers.own_address import own_address


@pytest.mark.parametrize(
    ("service", "own"),
    [("127.0.0.1:7233", "127.0.0.1"), ("[::1]:7233", "::1")],
    ids=["IPv4", "IPv6"],
)
def test_a_service_on_this_machine_is_reached_by_the_loopback(service: str, own: str) -> None:
    assert own_address(service) == own


def test_an_unknown_name_is_an_error() -> None:
    with pytest.raises(OSError, match=r"."):
        own_address("no-such-host.invalid:7233")
