"""A package small enough to forge from in seconds, as a source distribution."""

import io
import tarfile
from pathlib import Path

METADATA = "Metadata-Version: 2.4\nName: {name}\nVersion: 1.2\nLicense-Expression: {licence}\n"
MODULE = '''"""Small change."""

COINS = (200, 100, 50, 20, 10, 5, 2, 1)


def change(amount, coins=COINS):
    """Coins that make an amount, large before small."""
    if amount < 0:
        raise ValueError("nobody owes change")
    given = []
    for coin in coins:
        while amount >= coin:
            given.append(coin)
            amount -= coin
    return given  # ü


def spell(amount, unit="ct", *, plus=False):
    """An amount with its unit."""
    sign = "+" if plus and amount > 0 else ""
    return f"{sign}{amount} {unit}".strip()


def runs(items):
    """Neighbours that are alike, with how often they stand there."""
    last, count = None, 0
    for item in items:
        if item == last:
            count += 1
            continue
        if count > 0:
            yield last, count
        last, count = item, 1
    if count > 0:
        yield last, count


class Purse:
    """Coins, counted."""

    def __init__(self, coins=()):
        self.coins = {}
        for coin in coins:
            self.put(coin)

    def put(self, coin, count=1):
        """Puts coins in."""
        self.coins[coin] = self.coins.get(coin, 0) + count

    def take(self, coin):
        """Takes one out."""
        if self.coins.get(coin, 0) == 0:
            raise KeyError(coin)
        self.coins[coin] -= 1
        return coin

    def total(self):
        """Sum of all coins."""
        return sum(coin * count for coin, count in self.coins.items())

    def __len__(self):
        return sum(self.coins.values())
'''
TESTS = """import time

import pytest

from wallet import Purse, change, runs, spell


@pytest.mark.parametrize(("amount", "coins"), [(0, []), (3, [2, 1]), (388, [200, 100, 50, 20, 10, 5, 2, 1])])
def test_change(amount, coins):
    assert change(amount) == coins


def test_negative():
    with pytest.raises(ValueError):
        change(-1)


def test_spell():
    assert spell(3) == "3 ct"
    assert spell(3, "EUR", plus=True) == "+3 EUR"
    assert spell(-3, "", plus=True) == "-3"


def test_runs():
    assert list(runs("aab")) == [("a", 2), ("b", 1)]
    assert list(runs("")) == []


class TestPurse:
    def test_put(self):
        purse = Purse([5, 5, 2])
        purse.put(1, count=3)
        assert len(purse) == 6
        assert purse.total() == 15

    def test_take(self):
        purse = Purse([5])
        assert purse.take(5) == 5
        assert len(purse) == 0
        with pytest.raises(KeyError):
            purse.take(5)


def test_never_the_same(seen=[]):
    seen.append(id(object()))
    assert isinstance(change(seen[0] % 7), list)


def test_takes_no_time():
    began = time.monotonic()
    assert change(3) == [2, 1]
    assert time.monotonic() - began < 600


def test_needs_what_is_not_there():
    import a_package_that_is_not_there  # noqa: F401
"""


def write_archive(folder: Path, name: str = "wallet", *, licence: str = "MIT", with_tests: bool = True) -> Path:
    """Writes the source distribution; its path."""
    archive = folder / f"{name}-1.2.tar.gz"
    files = {
        "PKG-INFO": METADATA.format(name=name, licence=licence),
        "LICENSE": "Permission is granted.\n",
        "setup.py": "raise SystemExit('never run')\n",
        "wallet.py": MODULE,
    }
    if with_tests:
        files["tests/test_wallet.py"] = TESTS
    with tarfile.open(archive, "w:gz") as opened:
        for path, text in files.items():
            member = tarfile.TarInfo(f"{name}-1.2/{path}")
            member.size = len(text.encode())
            opened.addfile(member, io.BytesIO(text.encode()))
    return archive
