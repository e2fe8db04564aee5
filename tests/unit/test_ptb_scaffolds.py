"""Each scaffold is whole, gives the commands that its program takes, and refuses an agent that does not fit it."""

import json
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from stepwell.ptb.scaffolds import (
    SCAFFOLDS,
    BrokenScaffold,
    WrongAgent,
    load_scaffold,
    native_scaffolds,
    scaffold,
)
from tests import ptb_traces as traces

OURS = Path(__file__).resolve().parents[2] / "stepwell/ptb/scaffolds"
PROMPT = "Train {base}, then stop.\n- and {prompt} again"
MODELS = {"opencode": "anthropic/claude-x"}
PROGRAMS = [name for name in SCAFFOLDS if name != "shell"]


def model(name: str) -> str:
    return MODELS.get(name, "model-x")


def test_all_that_lie_here_are_declared() -> None:
    assert sorted(path.stem for path in OURS.glob("*.toml")) == sorted(SCAFFOLDS)
    assert [scaffold(name).name for name in SCAFFOLDS] == list(SCAFFOLDS)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_prompt_is_one_argument_letter_for_letter(name: str) -> None:
    order = scaffold(name).order(PROMPT, model(name))
    assert order.argv.count(PROMPT) == 1
    assert model(name) in order.argv
    assert order.again.count("{text}") == 1
    # Nothing that stands for something else is left.
    rest = [word for word in (*order.argv, *order.again) if word not in (PROMPT, "{text}")]
    rest += order.environment.values()
    assert not [text for text in rest if re.search(r"\{[a-z_]+\}", text)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_going_on_differs_from_starting_only_by_the_conversation(name: str) -> None:
    order = scaffold(name).order(PROMPT, model(name))
    more = [word for word in order.again if word not in order.argv]
    more.remove("{text}")
    assert more in (["--continue"], ["resume", "--last"], ["--resume", "latest"])
    assert [word for word in order.argv if word not in order.again] == [PROMPT]


def test_a_program_that_would_quote_its_arguments_reads_its_prompt_from_its_input(tmp_path: Path) -> None:
    """OpenCode puts a message with spaces into quotation marks."""
    program = tmp_path / "opencode"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@" > arguments\ncat > said\n')
    program.chmod(0o755)
    order = scaffold("opencode").order(PROMPT, model("opencode"), "high")
    path = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    subprocess.run(order.argv, cwd=tmp_path, env=path, stdin=subprocess.DEVNULL, check=True, timeout=60)
    assert (tmp_path / "said").read_text() == PROMPT
    arguments = (tmp_path / "arguments").read_text().splitlines()
    assert arguments == [
        "run",
        "--title",
        "trial",
        "--format",
        "json",
        "--thinking",
        "--variant",
        "high",
        "--model",
        "anthropic/claude-x",
    ]


@pytest.mark.parametrize("name", [name for name in PROGRAMS if scaffold(name).efforts])
def test_an_effort_is_in_the_command_or_nothing_is_said_of_it(name: str) -> None:
    declared = scaffold(name)
    assert declared.efforts is not None
    plain = declared.order(PROMPT, model(name)).argv
    high = declared.order(PROMPT, model(name), "high").argv
    added = [word for word in high if word not in plain]
    assert any("high" in word for word in added)
    with pytest.raises(WrongAgent, match=r"effort 'huge': it knows .*high"):
        declared.order(PROMPT, model(name), "huge")


def test_a_program_without_an_option_for_effort_refuses_one() -> None:
    with pytest.raises(WrongAgent, match="it has no option for it"):
        scaffold("gemini_cli").order(PROMPT, "m", "high")


@pytest.mark.parametrize("name", ["claude_code", "codex_cli", "gemini_cli"])
def test_what_a_provider_would_search_past_the_policy_is_off_unless_asked_for(name: str) -> None:
    declared = scaffold(name)
    assert declared.search is not None
    off = declared.order(PROMPT, "m").argv
    on = declared.order(PROMPT, "m", remote_search=True).argv
    assert off != on
    words = [word.replace("{home}", "/home/agent") for word in declared.search.off]
    assert all(word in off for word in words)
    assert not any(word in on for word in words if word.startswith("--") and word != "--config")


def test_no_remote_search_is_a_policy_that_gemini_is_given() -> None:
    order = scaffold("gemini_cli").order(PROMPT, "m", home="/root/home")
    assert "/root/home/.gemini/no-remote-search.toml" in order.argv
    rules = tomllib.loads(order.files[".gemini/no-remote-search.toml"])["rule"]
    assert rules[0]["toolName"] == ["google_web_search", "web_fetch"]
    assert rules[0]["decision"] == "deny"


@pytest.mark.parametrize("name", SCAFFOLDS)
def test_files_of_the_home_are_what_their_names_say(name: str) -> None:
    declared = scaffold(name)
    command = ("python", "agent.py") if name == "shell" else ()
    for path, contents in declared.order(PROMPT, model(name), command=command).files.items():
        assert not path.startswith("/")
        assert ".." not in path
        if path.endswith(".json"):
            json.loads(contents)
        elif path.endswith(".toml"):
            tomllib.loads(contents)


def test_a_command_of_ones_own_is_taken_as_it_is_and_finds_its_prompt() -> None:
    shell = scaffold("shell")
    order = shell.order(PROMPT, "scripted", command=("python", "a.py", "{model}"), home="/h")
    assert order.argv == ("python", "a.py", "{model}")
    assert order.again == ()
    assert order.files == {"prompt.txt": PROMPT}
    assert order.environment["STEPWELL_PROMPT"] == "/h/prompt.txt"
    with pytest.raises(WrongAgent, match=r"shell: command is \[\], wanted a command"):
        shell.order(PROMPT, "scripted")
    with pytest.raises(WrongAgent, match="wanted none: its command is declared"):
        scaffold("codex_cli").order(PROMPT, "m", command=("sh",))
    shell.check("scripted", None, ["ANY_KEY"], ["sh"])


def test_an_agent_is_given_its_own_provider_s_key_and_no_other() -> None:
    declared = scaffold("opencode")
    declared.check("openai/gpt-x", None, ["OPENAI_API_KEY"])
    with pytest.raises(WrongAgent, match=r"ANTHROPIC_API_KEY is not for an agent with openai/gpt-x: .* OPENAI_API_KEY"):
        declared.check("openai/gpt-x", None, ["OPENAI_API_KEY", "ANTHROPIC_API_KEY"])
    with pytest.raises(WrongAgent, match="no key for openai/gpt-x: name OPENAI_API_KEY"):
        declared.check("openai/gpt-x", None, [])
    with pytest.raises(WrongAgent, match=r"wanted provider/model with one of .*did you mean 'openai'\?"):
        declared.check("opnai/gpt-x", None, ["OPENAI_API_KEY"])
    with pytest.raises(WrongAgent, match="wanted provider/model"):
        declared.provider_of("openai/")
    provider = declared.provider_of("openrouter/some/model")
    assert provider is not None
    assert provider.hosts == ("openrouter.ai",)


USED = {"claude_code": traces.CLAUDE, "opencode": traces.OPENCODE, "shell": traces.PLAIN}


@pytest.mark.parametrize("name", [name for name in SCAFFOLDS if scaffold(name).trace.usage])
def test_use_is_read_while_the_agent_works_from_the_lines_that_its_program_prints(name: str) -> None:
    """As a supervisor does: compact JSON, one pattern after another."""
    found: dict[str, list[str]] = {}
    for line in USED[name].decode().splitlines():
        compact = json.dumps(json.loads(line), separators=(",", ":")) if line.startswith("{") else line
        for usage in scaffold(name).trace.usage:
            match = re.search(usage.pattern, compact)
            for group, value in (match.groupdict() if match else {}).items():
                found.setdefault(group, []).append(value)
    wanted = {
        "claude_code": {
            "id": ["msg_1", "msg_1", "msg_1", "msg_2"],
            "input": ["4"] * 4,
            "cached": ["900"] * 4,
            "output": ["2"] * 4,
            "cost": ["0.0125"],
        },
        "opencode": {"input": ["350"] * 2, "output": ["30"] * 2, "cached": ["600"] * 2, "cost": ["0.01", "0.02"]},
        "shell": {"input": ["900"], "output": ["40"], "cost": ["0.5"]},
    }
    assert found == wanted[name]


BROKEN = [
    ('argv = ["x", "{prompt}"]', "", "providers is empty"),
    ('argv = ["x"]', "", r"argv has no \{prompt\}"),
    ('argv = ["{command}", "{modle}"]', "", r"holds \{modle\}: known are"),
    ('argv = ["{command}", "{effort_options}"]', "", "go together"),
    ('argv = ["{command}"]', "colour = 1", "colour: Extra inputs"),
    ('argv = ["{command}"]', '[[trace.limits]]\nkind = "rate"\npattern = "("', "no regular expression"),
]


@pytest.mark.parametrize(("argv", "more", "message"), BROKEN)
def test_a_file_that_declares_nothing_usable_is_refused(tmp_path: Path, argv: str, more: str, message: str) -> None:
    head = f'name = "x"\ntitle = "X"\nchecked = "no"\n{argv}\n'
    inner = more if more.startswith("[[") else ""
    path = tmp_path / "x.toml"
    path.write_text(f'{head}{"" if inner else more}\n[trace]\nformat = "lines"\n{inner}\n')
    with pytest.raises(BrokenScaffold, match=message):
        load_scaffold(path)


def test_a_name_that_there_is_not_is_refused_with_the_nearest() -> None:
    with pytest.raises(BrokenScaffold, match="did you mean 'claude_code'"):
        scaffold("claude")


def test_those_that_are_one_vendor_s_own_are_told_apart() -> None:
    assert native_scaffolds() == {"claude_code": "Anthropic", "codex_cli": "OpenAI", "gemini_cli": "Google"}


def test_the_page_names_each_with_the_version_that_it_was_checked_against_and_its_keys() -> None:
    page = (OURS.parents[2] / "docs/posttrainbench-scaffolds.md").read_text(encoding="utf-8")
    rows: dict[str, str] = {}
    for line in page.splitlines():
        if line.startswith("| `"):
            rows.setdefault(line.split("`")[1], line)
    for name in SCAFFOLDS:
        declared = scaffold(name)
        assert declared.title in rows[name]
        if name != "shell":
            assert declared.checked.split(",")[0] in rows[name]
        provider = declared.provider_of(model(name)) if len(declared.providers) == 1 else None
        assert all(f"`{key}`" in rows[name] for key in (provider.keys if provider else ()))
