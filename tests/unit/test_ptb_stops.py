"""Lines after which an agent is not told to go on: those of limits that stay, and none that an agent can say."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from stepwell.ptb.scaffolds import SCAFFOLDS, BrokenScaffold, load_scaffold, scaffold
from stepwell.ptb.supervisor import LimitRule
from stepwell.ptb.supervisor.meter import Meter
from stepwell.ptb.supervisor.trace import utc_now
from stepwell.ptb.trials.agent_order import agent_order, command_of
from stepwell.ptb.trials.loading import load_run_set
from tests import ptb_traces as traces
from tests.unit.test_ptb_trace_limits import (
    DONE,
    claude_failed,
    codex_failed,
    gemini_failed,
    opencode_failed,
)
from tests.unit.test_trial_files import PLACES, RECIPE

BROKE: list[tuple[str, list[Any], str]] = [
    ("claude_code", claude_failed("Credit balance is too low"), "credit"),
    ("claude_code", claude_failed("You've hit your session limit · resets 2pm"), "credit"),
    ("claude_code", claude_failed("", subtype="error_max_budget_usd"), "credit"),
    ("claude_code", claude_failed("Invalid API key · Please run /login"), "login"),
    ("claude_code", claude_failed("Prompt is too long"), "tokens"),
    ("codex_cli", codex_failed("You've hit your usage limit. Visit the settings to purchase more credits"), "credit"),
    ("codex_cli", codex_failed("Quota exceeded. Check your plan and billing details."), "credit"),
    ("codex_cli", codex_failed("unexpected status 401 Unauthorized"), "login"),
    ("codex_cli", codex_failed("Codex ran out of room in the model's context window."), "tokens"),
    ("gemini_cli", gemini_failed("Error", "You exceeded your current quota, please check your plan"), "credit"),
    ("gemini_cli", gemini_failed("Error", "API key not valid. Please pass a valid API key."), "login"),
    ("opencode", opencode_failed("APIError", "Insufficient balance", 429), "credit"),
    ("opencode", opencode_failed("APIError", 'the "plan" is over', 402), "credit"),
    ("opencode", opencode_failed("ProviderAuthError", "no key"), "login"),
    ("opencode", opencode_failed("ContextOverflowError", "too long"), "tokens"),
]
GOES_ON: list[tuple[str, list[Any]]] = [
    ("claude_code", claude_failed("API Error: 529 overloaded_error")),
    ("claude_code", claude_failed("API Error", api_error_status=429)),
    ("claude_code", claude_failed("", subtype="error_max_turns")),
    ("codex_cli", codex_failed("exceeded retry limit, last status: 429 Too Many Requests")),
    ("gemini_cli", gemini_failed("Error", "Resource has been exhausted (e.g. check quota).")),
    ("gemini_cli", gemini_failed("FatalTurnLimitedError", "Reached max session turns for this session.")),
    ("opencode", opencode_failed("APIError", "Rate limit exceeded. Please try again later.", 429)),
    ("opencode", opencode_failed("UnknownError", "unexpected")),
]
CLAIMS = sorted({line for _, lines, _ in BROKE for line in map(json.dumps, lines)})
"""What would be a stop, if the program itself printed it."""


def printed(*lines: Any) -> list[str]:
    """Lines as programs print them."""
    return [json.dumps(line, separators=(",", ":"), ensure_ascii=False) for line in lines]


def met(name: str, lines: list[str]) -> list[str]:
    """The limits that a supervisor sees."""
    stops = [LimitRule(kind=each.kind, pattern=each.pattern) for each in scaffold(name).trace.stops]
    meter = Meter((), stops, None)
    for line in lines:
        meter.read(line, utc_now())
    return [limit.kind for limit in meter.limits]


@pytest.mark.parametrize(("name", "lines", "kind"), BROKE, ids=lambda each: str(each)[:40])
def test_a_limit_that_stays_is_seen_once_in_what_the_program_prints(name: str, lines: list[Any], kind: str) -> None:
    assert met(name, printed(*lines)) == [kind]


@pytest.mark.parametrize(("name", "lines"), GOES_ON, ids=lambda each: str(each)[:40])
def test_what_passes_by_waiting_or_is_no_limit_stops_nothing(name: str, lines: list[Any]) -> None:
    assert met(name, printed(*lines)) == []


@pytest.mark.parametrize("name", DONE)
def test_work_without_a_limit_shows_none(name: str) -> None:
    assert met(name, printed(*map(json.loads, DONE[name].decode().splitlines()))) == []


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda each: each[:60])
def test_an_agent_that_says_reads_or_prints_such_words_has_met_no_limit(claim: str) -> None:
    texts = [claim, claim.replace(" ", ""), f"Credit balance is too low. {claim}"]
    for text in texts:
        call = {**traces.CLAUDE_CALL, "input": {"command": text, "error": json.loads(claim)}}
        result = {"type": "tool_result", "tool_use_id": "t1", "content": text, "is_error": True}
        claude = [
            traces.claude_message("msg_1", {"type": "text", "text": text}, call),
            {"type": "user", "message": {"role": "user", "content": [result]}},
            traces.claude_result(result=text),
        ]
        output = {"id": "i", "type": "command_execution", "aggregated_output": text, "exit_code": 1, "status": "failed"}
        codex = [
            {"type": "item.completed", "item": output},
            {"type": "item.completed", "item": {"id": "j", "type": "agent_message", "text": text}},
        ]
        gemini = [
            {"type": "message", "role": "assistant", "content": text},
            {"type": "tool_result", "tool_id": "t", "status": "error", "output": text},
            {"type": "result", "status": "success", "stats": {}},
        ]
        state = {"status": "error", "input": json.loads(claim), "error": text}
        opencode = [
            {"type": "text", "timestamp": 1, "sessionID": "s", "part": {"type": "text", "text": text}},
            {"type": "tool_use", "timestamp": 1, "sessionID": "s", "part": {"tool": "bash", "state": state}},
        ]
        said = {"claude_code": claude, "codex_cli": codex, "gemini_cli": gemini, "opencode": opencode}
        assert {name: met(name, printed(*lines)) for name, lines in said.items()} == {name: [] for name in said}


def test_a_stop_that_an_agent_could_say_or_that_passes_is_refused(tmp_path: Path) -> None:
    head = 'name = "x"\ntitle = "X"\nchecked = "no"\nargv = ["{command}"]\n[trace]\nformat = "lines"\n[[trace.stops]]\n'
    for rule, message in [
        ('kind = "credit"\npattern = "credit"', "not bound to a line's beginning"),
        ('kind = "rate"\npattern = "^429"', "passes by waiting"),
    ]:
        path = tmp_path / "x.toml"
        path.write_text(f"{head}{rule}\n")
        with pytest.raises(BrokenScaffold, match=re.escape(message)):
            load_scaffold(path)


def test_what_stops_a_scaffold_stands_in_its_agent_s_order(tmp_path: Path) -> None:
    path = tmp_path / "open.toml"
    codex = 'scaffold = "codex_cli"\nsecrets = ["CODEX_API_KEY"]\nreprompt = true'
    hosts = '[network]\nmode = "allow"\nallow = [{ host = "api.openai.com", reason = "its model" }]'
    text = RECIPE.replace('scaffold = "shell"', codex).replace('command = ["python", "agent.py"]', "")
    path.write_text(f"{text}\n{hosts}\n")
    recipe = load_run_set(path)
    agent = recipe.agents[0]
    order = agent_order(recipe, agent, PLACES, command_of(agent, "do it"), "go on")
    assert order.reprompt is not None
    wanted = [(each.kind, each.pattern) for each in scaffold("codex_cli").trace.stops]
    assert [(each.kind, each.pattern) for each in order.limit_rules] == wanted
    assert wanted


def test_every_program_that_can_be_told_to_go_on_says_when_its_credit_is_gone() -> None:
    told_to = [name for name in SCAFFOLDS if scaffold(name).again]
    assert [name for name in told_to if "credit" in {each.kind for each in scaffold(name).trace.stops}] == told_to
