"""docker-compose.yml as Docker Compose reads it: anchors resolved, variables put in."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

FILE = Path(__file__).parents[2] / "docker-compose.yml"
ENTRYPOINT = ["stepwell"]
"""Of the image that Dockerfile makes."""
_VARIABLE = re.compile(r"\$(?:(\$)|\{(\w+)(?::([-?])([^}]*))?\})")


@dataclass(frozen=True)
class ComposeService:
    """One service of the file."""

    name: str
    stated: Mapping[str, Any]

    @property
    def command(self) -> list[str]:
        """What the container runs, if it is the image of our Dockerfile or the file names an entry point."""
        return [*self.stated.get("entrypoint", ENTRYPOINT), *self.stated.get("command", [])]

    @property
    def environment(self) -> dict[str, str]:
        """Its variables."""
        return {name: str(value) for name, value in self.stated.get("environment", {}).items()}

    @property
    def health(self) -> list[str]:
        """The command that tells whether it is healthy."""
        kind, *command = self.stated["healthcheck"]["test"]
        assert kind == "CMD", f"{self.name}: a health check in the form {kind} is not run here"
        return command


def read(variables: Mapping[str, str]) -> dict[str, ComposeService]:
    """The file's services, by name.

    Args:
        variables: As in `.env`.

    Raises:
        KeyError: the file asks for a variable that is not given.
    """
    resolved = _resolve(yaml.safe_load(FILE.read_text()), variables)
    return {name: ComposeService(name, stated) for name, stated in resolved["services"].items()}


def _resolve(value: Any, variables: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _resolve(inner, variables) for key, inner in value.items()}
    if isinstance(value, list):
        return [_resolve(inner, variables) for inner in value]
    if isinstance(value, str):
        return _VARIABLE.sub(lambda found: _put_in(found, variables), value)
    return value


def _put_in(found: "re.Match[str]", variables: Mapping[str, str]) -> str:
    dollar, name, operator, rest = found.groups()
    if dollar:
        return "$"
    if variables.get(name):
        return variables[name]
    if operator == "-":
        return rest
    raise KeyError(f"{name}: {rest or 'not given'}")
