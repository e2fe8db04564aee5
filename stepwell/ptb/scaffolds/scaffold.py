"""What a scaffold declares, and the commands that follow from it for one agent."""

import re
from collections.abc import Sequence
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from stepwell.nearest_names import did_you_mean
from stepwell.ptb.traces import LimitKind, LimitRule, TraceFormat

_GROUPS = ("{effort_options}", "{search_options}", "{command}")
"""Elements of a command that stand for several, or none."""
_PLACES = ("{prompt}", "{model}", "{effort}", "{home}")
"""What stands for a text within an element."""
_PLACE = re.compile(r"\{[a-z_]+\}")
PASSING: tuple[LimitKind, ...] = ("rate", "overload", "turns")
"""Limits that are over after a while, or with the next prompt."""


class WrongAgent(ValueError):
    """An agent whose settings its scaffold cannot take."""


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Efforts(_Model):
    """Reasoning effort."""

    levels: tuple[str, ...]
    """That the program knows; a model may know fewer."""
    options: Annotated[tuple[str, ...], Field(min_length=1)]
    """Put into the command at `{effort_options}`; `{effort}` stands for the level."""


class Search(_Model):
    """Search and fetching that the provider does on its own side, where no policy of ours reaches."""

    on: tuple[str, ...]
    """Put into the command at `{search_options}` where it is allowed."""
    off: tuple[str, ...]
    """Where it is not."""


class Provider(_Model):
    """Where a model's answers come from."""

    keys: Annotated[tuple[str, ...], Field(min_length=1)]
    """Environment variables that may hold its key; one of them is needed."""
    hosts: tuple[str, ...]
    """That the program asks: a network policy must let them through."""


class UsagePattern(_Model):
    """Reads use out of a line while the agent works, for budgets in tokens or money."""

    pattern: str
    """Regular expression with the named groups `input`, `cached` (not part of `input`), `output`, `cost`, `id`."""
    counts: Literal["each", "total"]
    """Whether matches add up (the last one of an `id` holds), or each tells all since the last prompt."""


class Exit(_Model):
    """What an exit status means."""

    status: int
    limit: LimitKind | None = None
    """A limit that it tells of; None for a fault."""
    means: str
    """In words."""


class ScaffoldTrace(_Model):
    """What a program prints."""

    format: TraceFormat
    limits: tuple[LimitRule, ...] = ()
    """What its limits look like; the first that fits decides."""
    stops: tuple[LimitRule, ...] = ()
    """Lines by which it says that a limit let it do no more, of those that no waiting lifts: an agent that met one is
    not told to go on, whatever its exit status. What the agent's own commands print is looked through too, so each is
    bound to the beginning of a line that only the program itself prints."""
    usage: tuple[UsagePattern, ...] = ()
    """None: what it used is told only by its end, or not at all, and no budget in tokens or money can be held."""

    @model_validator(mode="after")
    def _is_strict(self) -> Self:
        for rule in self.stops:
            if not rule.pattern.startswith("^"):
                raise ValueError(f"the stop {rule.pattern!r} is not bound to a line's beginning: wanted one with ^")
            if rule.kind in PASSING:
                raise ValueError(f"a stop by {rule.kind}: that passes by waiting, so telling the agent to go on helps")
        return self


class ScaffoldOrder(_Model):
    """One agent's commands."""

    argv: tuple[str, ...]
    """Program and arguments; it is given an empty standard input."""
    again: tuple[str, ...]
    """What tells it to go on with what it did, `{text}` for the words; empty if it cannot be told."""
    environment: dict[str, str]
    """Beside keys."""
    files: dict[str, str]
    """Contents by path in its home, written before it starts."""


class Scaffold(_Model):
    """A program that turns a model into an agent."""

    name: str
    title: str
    """As its publisher calls it."""
    native_to: str | None = None
    """Vendor for whose models it is made; None for one that is the same for all."""
    checked: str
    """Version whose options were looked at for this declaration, and how."""
    argv: Annotated[tuple[str, ...], Field(min_length=1)]
    """Command that starts it."""
    again: tuple[str, ...] = ()
    """Command that has it go on with its last conversation."""
    version_command: tuple[str, ...] = ()
    """Prints its version."""
    environment: dict[str, str] = Field(default_factory=dict)
    """Set for it always."""
    files: dict[str, str] = Field(default_factory=dict)
    """Written into its home before it starts, by path there."""
    providers: dict[str, Provider] = Field(default_factory=dict)
    """By name: one, or those that begin the names of its models (`provider/model`)."""
    any_secret: bool = False
    """Whether it may be given any secret: a program of the recipe's own."""
    efforts: Efforts | None = None
    """None: it has no option for it."""
    search: Search | None = None
    """None: it searches only over the network that its sandbox has."""
    addition: str = ""
    """What its prompt says beyond what all agents are told."""
    trace: ScaffoldTrace
    exits: tuple[Exit, ...] = ()
    """Exit statuses that say more than that it failed."""

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        own = self._takes_command
        if not own and "{prompt}" not in self.argv:
            raise ValueError("argv has no {prompt}: wanted it as an element of its own")
        if self.again and "{prompt}" not in self.again:
            raise ValueError("again has no {prompt}: wanted it as an element of its own")
        texts = [*self.argv, *self.again, *self.environment.values(), *self.files.values()]
        options = [*(self.efforts.options if self.efforts else ())]
        for text in [*texts, *options]:
            unknown = [place for place in _PLACE.findall(text) if place not in (*_GROUPS, *_PLACES)]
            if unknown and text not in self.files.values():
                raise ValueError(f"{text!r} holds {unknown[0]}: known are {', '.join((*_GROUPS, *_PLACES))}")
        for place, section in (("{effort_options}", self.efforts), ("{search_options}", self.search)):
            if (place in self.argv) != (section is not None):
                raise ValueError(f"{place} in argv, and a section that says what it stands for, go together")
        if not own and not self.providers:
            raise ValueError("providers is empty: wanted where its model's answers come from")
        return self

    @property
    def _takes_command(self) -> bool:
        return "{command}" in self.argv

    def provider_of(self, model: str) -> Provider | None:
        """Where a model's answers come from; None for a program of the recipe's own.

        Raises:
            WrongAgent: the name does not begin with a provider that is declared.
        """
        if len(self.providers) <= 1:
            return next(iter(self.providers.values()), None)
        name, slash, rest = model.partition("/")
        if not slash or not rest or name not in self.providers:
            hint = did_you_mean(name, self.providers)
            raise WrongAgent(
                f"{self.name}: model {model!r}: wanted provider/model with one of {', '.join(self.providers)}"
                + (f"; {hint}" if hint else "")
            )
        return self.providers[name]

    def check(self, model: str, effort: str | None, secrets: Sequence[str], command: Sequence[str] = ()) -> None:
        """Whether an agent's settings fit, before anything begins.

        Args:
            model: That its calls go to.
            effort: None for the program's own.
            secrets: Names of those that it is given.
            command: Program and arguments, of a scaffold that takes any.

        Raises:
            WrongAgent: what does not fit, and what would.
        """
        if self._takes_command != bool(command):
            wanted = "a command" if self._takes_command else "none: its command is declared"
            raise WrongAgent(f"{self.name}: command is {list(command)}, wanted {wanted}")
        if effort is not None and (self.efforts is None or effort not in self.efforts.levels):
            known = ", ".join(self.efforts.levels) if self.efforts else "none: it has no option for it"
            raise WrongAgent(f"{self.name}: effort {effort!r}: it knows {known}")
        provider = self.provider_of(model)
        if self.any_secret or provider is None:
            return
        foreign = [name for name in secrets if name not in provider.keys]
        if foreign:
            raise WrongAgent(
                f"{self.name}: {foreign[0]} is not for an agent with {model}: it may be given "
                f"{' or '.join(provider.keys)}, and nothing else"
            )
        if not secrets:
            raise WrongAgent(f"{self.name}: no key for {model}: name {' or '.join(provider.keys)} in its secrets")

    def order(
        self,
        prompt: str,
        model: str,
        effort: str | None = None,
        *,
        command: Sequence[str] = (),
        remote_search: bool = False,
        home: str = "/home/agent",
    ) -> ScaffoldOrder:
        """The commands of one agent.

        Args:
            prompt: What it is told, whole.
            model: As the program takes it.
            effort: None for the program's own.
            command: Program and arguments, of a scaffold that takes any.
            remote_search: Whether the provider may search and fetch for it, past any network policy: only where
                nothing is blocked.
            home: Its home, inside.

        Raises:
            WrongAgent: as `check`, secrets apart.
        """
        provider = self.provider_of(model)
        self.check(model, effort, provider.keys[:1] if provider else (), command)
        groups: dict[str, Sequence[str]] = {
            "{effort_options}": self.efforts.options if self.efforts and effort is not None else (),
            "{search_options}": () if self.search is None else self.search.on if remote_search else self.search.off,
            "{command}": command,
        }
        places = {"{model}": model, "{effort}": effort or "", "{home}": home}

        def filled(text: str, said: str) -> str:
            return _PLACE.sub(lambda match: {**places, "{prompt}": said}.get(match[0], match[0]), text)

        def whole(template: Sequence[str], said: str) -> tuple[str, ...]:
            found: list[str] = []
            for element in template:
                # A program of the recipe's own is taken as it is: what stands in braces there is its own affair.
                given = element == "{command}"
                found += groups["{command}"] if given else [filled(one, said) for one in groups.get(element, [element])]
            return tuple(found)

        return ScaffoldOrder(
            argv=whole(self.argv, prompt),
            again=whole(self.again, "{text}"),
            environment={name: filled(value, prompt) for name, value in self.environment.items()},
            files={path: filled(contents, prompt) for path, contents in self.files.items()},
        )
