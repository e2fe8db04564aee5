"""A page as one HTML file that needs no network. Its policy forbids every other source, and every other script."""

import base64
import hashlib
from html import escape
from importlib import resources


def document(title: str, *, header: str, main: str, footer: str, style: str = "") -> str:
    """The file.

    Args:
        title: Plain text.
        header: HTML.
        main: HTML.
        footer: HTML.
        style: Rules beside those that all pages have.
    """
    rules, script = _asset("page.css") + style, _asset("page.js")
    policy = f"default-src 'none'; img-src data:; style-src '{_source(rules)}'; script-src '{_source(script)}'"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<link rel="icon" href="data:,">
<title>{escape(title)} · Stepwell</title>
<style>{rules}</style>
</head>
<body>
<header>
{header}
</header>
<main>
{main}
</main>
<footer>{footer}</footer>
<script>{script}</script>
</body>
</html>
"""


def _asset(name: str) -> str:
    return resources.files("stepwell.report").joinpath(name).read_text(encoding="utf-8")


def _source(text: str) -> str:
    """A script or style in the page's policy: by its digest, so that no other runs."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
