"""Pages of ours, opened in headless Chromium."""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any

import pytest

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--enable-logging=stderr",
    "--allow-file-access-from-files",
    "--virtual-time-budget=4000",
)
READABLE = 4.5
"""Least contrast of text with what is behind it (WCAG 2.2, success criterion 1.4.3)."""
CONTRAST = r"""
const light = (color) => {
  const [red, green, blue] = color.match(/[\d.]+/g).slice(0, 3).map((part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
};
const behind = (view, element) => {
  const color = view.getComputedStyle(element).backgroundColor;
  return /, 0\)$/.test(color) && element.parentElement ? behind(view, element.parentElement) : color;
};
const contrast = (view, element) => {
  const style = view.getComputedStyle(element);
  const [one, other] = [light(element.closest("svg") ? style.fill : style.color), light(behind(view, element))];
  return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
};
"""
"""A script's `contrast(view, element)`, of an element's text with what is behind it."""


@dataclass(frozen=True)
class Opened:
    """What the browser says of a page."""

    dom: str
    console: list[str]


def find_chromium() -> str:
    """The browser; tests that need it fail without it."""
    found = shutil.which("chromium")
    if found is None:
        pytest.fail("chromium is not installed: `scripts/install-debian-packages`, or `make test`, installs it")
    return found


def open_page(chromium: str, path: Path, *flags: str) -> Opened:
    """Opens a file in a browser of its own, which is gone afterwards."""
    profile = tempfile.mkdtemp(prefix="profile-", dir=path.parent)
    command = [chromium, *FLAGS, f"--user-data-dir={profile}", *flags, "--dump-dom", path.as_uri()]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            dom, log = process.communicate(timeout=90)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, log
    return Opened(dom, [line for line in log.splitlines() if "CONSOLE" in line])


def found_by(chromium: str, harness: Path, *flags: str) -> dict[str, Any]:
    """What a page's script has put, as JSON, into an element with the id `found`."""
    opened = open_page(chromium, harness, "--window-size=1400,4100", *flags)
    assert opened.console == []
    found = re.search(r'<pre id="found">(.*?)</pre>', opened.dom, re.DOTALL)
    assert found is not None, "the page did not load in the probe"
    return json.loads(unescape(found.group(1)))
