"""Which hosts an agent may reach: nothing, what is listed, or everything but what is listed.

A pure decision on names, addresses and ports; `stepwell.ptb.network.proxy` holds it.
"""

import ipaddress
import re
from dataclasses import dataclass
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

WEB_PORTS = (80, 443)
"""What a host is reached at unless a rule names others."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_LABEL = r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"(\*\.)?{_LABEL}(\.{_LABEL})*")


class HostRule(BaseModel):
    """A host, or all hosts under a name, and why it is in the policy."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    host: str
    """A name (`api.example.org`), an address (`10.0.0.5`, `::1`), or `*.example.org`: every name under that one, and
    not that one itself."""
    reason: Annotated[str, Field(min_length=1)]
    """Stands in the log of each request that the rule decides."""
    ports: tuple[Annotated[int, Field(ge=1, le=65535)], ...] = WEB_PORTS
    """In a rule that allows: what the host is reached at. A rule that denies covers all ports, whatever stands here."""
    private: bool = False
    """In a rule that allows: whether the host may be at a private, loopback or link-local address, or on this machine,
    as a local judge or engine is."""

    @model_validator(mode="after")
    def _check_host(self) -> Self:
        if address_of(self.host) is None and not _NAME.fullmatch(self.host):
            raise ValueError(
                f"host {self.host!r}: wanted a name in lower case without scheme, port or path, an address, "
                "or `*.` and a name"
            )
        if self.private and self.host.startswith("*."):
            raise ValueError(f"host {self.host!r}: a rule for private addresses names one host, without `*.`")
        return self

    def covers(self, host: str) -> bool:
        """Whether a host, as `canonical_host` gives it, is the rule's."""
        if self.host.startswith("*."):
            return host.endswith(self.host[1:])
        own = address_of(self.host)
        return host == self.host if own is None else own == address_of(host)


@dataclass(frozen=True)
class Verdict:
    """What becomes of a request."""

    allowed: bool
    reason: str
    """The rule's own, or what was found and what is wanted."""
    private: bool = False
    """Whether the host may be at an address that is not public."""


class NetworkPolicy(BaseModel):
    """The network as an agent has it. What a prompt says about the network can be checked against it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    mode: Literal["none", "allow", "deny"]
    """`none`: only the sandbox's own loopback. `allow`: only what `allow` lists. `deny`: everything public but what
    `deny` lists; a host must then be asked for by name, since an address would go round the list."""
    allow: tuple[HostRule, ...] = ()
    """In mode `deny`: hosts that are reached at other ports or at private addresses too."""
    deny: tuple[HostRule, ...] = ()
    """Prevails over `allow`."""

    @model_validator(mode="after")
    def _check_rules(self) -> Self:
        if self.mode == "none" and (self.allow or self.deny):
            raise ValueError("mode `none` reaches no host: leave out `allow` and `deny`, or choose another mode")
        if self.mode == "allow" and not self.allow:
            raise ValueError("mode `allow` without a rule in `allow` reaches no host: list hosts, or say mode `none`")
        if self.mode == "deny" and not self.deny:
            raise ValueError("mode `deny` without a rule in `deny` denies nothing: list at least one host")
        return self

    def judge(self, host: str, port: int) -> Verdict:
        """Whether a request may go out.

        Args:
            host: As `canonical_host` gives it.
            port: Of the host.
        """
        denying = next((rule for rule in self.deny if rule.covers(host)), None)
        if denying is not None:
            return Verdict(False, denying.reason)
        allowing = [rule for rule in self.allow if rule.covers(host)]
        at_port = next((rule for rule in allowing if port in rule.ports), None)
        if at_port is not None:
            return Verdict(True, at_port.reason, at_port.private)
        if allowing and (self.mode != "deny" or port not in WEB_PORTS):
            return Verdict(False, f"port {port} is in no rule for {host}")
        if self.mode != "deny":
            return Verdict(False, "in no rule that allows")
        if address_of(host) is not None:
            return Verdict(False, "an address, and this policy denies hosts by name: ask for the host by its name")
        if port not in WEB_PORTS:
            return Verdict(False, f"port {port} is in no rule that allows; without one only 80 and 443 are reached")
        return Verdict(True, "in no rule that denies")


def canonical_host(host: str) -> str:
    """A host as rules compare it: lower case, without brackets, scope or trailing dots; names beyond ASCII by IDNA.

    Raises:
        ValueError: it is neither a name nor an address.
    """
    bare = host.strip().removeprefix("[").removesuffix("]").rstrip(".").lower()
    address = address_of(bare)
    if address is not None:
        return str(address)
    if not bare.isascii():
        try:
            bare = bare.encode("idna").decode().lower()
        except UnicodeError as error:
            raise ValueError(f"{host!r} is no name of a host") from error
    if len(bare) > 253 or bare.startswith("*") or not _NAME.fullmatch(bare):
        raise ValueError(f"{host!r} is no name of a host")
    return bare


def address_of(host: str) -> Address | None:
    """The address that a text is, one of IPv4 within IPv6 as IPv4; None if it is none."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return address if mapped is None else mapped


def is_public(address: Address) -> bool:
    """Whether an address is of the public internet: not private, loopback, link-local, multicast or reserved, nor one
    of IPv6 that carries an address of IPv4 to be reached by a translator or a tunnel."""
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return is_public(address.ipv4_mapped)
        if address.sixtofour is not None or address.teredo is not None or address in _TRANSLATED:
            return False
    return address.is_global and not address.is_multicast and not address.is_reserved


_TRANSLATED = ipaddress.IPv6Network("64:ff9b::/96")
"""NAT64, RFC 6052."""
