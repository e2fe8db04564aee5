"""Play a rollout by mini-swe-agent: its agent and its model as they are, its commands carried out in our sandbox.

    .venv-harnesses/mini-swe-agent/bin/python scripts/harnesses/mini_swe_agent.py [--light] < issue

STEPWELL_GATEWAY (http://host:port) and STEPWELL_TOKEN say which rollout. `--light` takes mini-swe-agent's client that
needs no litellm. The last line of output is how the agent ended.
"""

import argparse
import json
import os
import sys
import urllib.request
from typing import Any

import yaml
from minisweagent.agents.default import DefaultAgent
from minisweagent.config import builtin_config_dir
from minisweagent.exceptions import Submitted

GATEWAY = os.environ["STEPWELL_GATEWAY"]
TOKEN = os.environ["STEPWELL_TOKEN"]
DONE = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"


class SandboxEnvironment:
    """An environment of mini-swe-agent that runs commands behind the gateway."""

    config: Any = None

    def execute(self, action: dict[str, Any], cwd: str = "") -> dict[str, Any]:
        """Runs one command in the root of the work tree."""
        answer = ask("/v1/sandbox/exec", {"command": action["command"]})
        late = answer["end"] != "exited"
        output = {
            "output": answer["output"],
            "returncode": answer["returncode"],
            "exception_info": f"The command was stopped: {answer['end']}" if late else "",
        }
        first, _, rest = output["output"].lstrip().partition("\n")
        if first.strip() == DONE and output["returncode"] == 0:
            ended = {"exit_status": "Submitted", "submission": rest}
            raise Submitted({"role": "exit", "content": rest, "extra": ended})
        return output

    def get_template_vars(self, **more: Any) -> dict[str, Any]:
        """What the prompt's templates may name: the sandbox, not this machine."""
        return {"system": "Linux", "release": "", "version": "", "machine": "", "cwd": "/work"} | more

    def serialize(self) -> dict[str, Any]:
        """Nothing that a trajectory needs."""
        return {}


def ask(path: str, body: dict[str, Any]) -> dict[str, Any]:
    """Posts to the gateway."""
    request = urllib.request.Request(
        GATEWAY + path,
        json.dumps(body).encode(),
        {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=600) as response:
        return json.load(response)


def make_model(light: bool, settings: dict[str, Any]) -> Any:
    """One of mini-swe-agent's own clients, pointed at the gateway."""
    if light:
        from minisweagent.models.openrouter_model import OpenRouterModel

        model = OpenRouterModel(model_name="policy", cost_tracking="ignore_errors", **settings)
        model._api_url, model._api_key = f"{GATEWAY}/v1/chat/completions", TOKEN
        return model
    from minisweagent.models.litellm_model import LitellmModel

    access = {"api_base": f"{GATEWAY}/v1", "api_key": TOKEN}
    settings["model_kwargs"] = settings.get("model_kwargs", {}) | access
    return LitellmModel(model_name="openai/policy", cost_tracking="ignore_errors", **settings)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--light", action="store_true")
    light = parser.parse_args().light
    config = yaml.safe_load((builtin_config_dir / "mini.yaml").read_text())
    texts = {key: config["agent"][key] for key in ("system_template", "instance_template")}
    agent = DefaultAgent(make_model(light, config["model"]), SandboxEnvironment(), **texts)
    ended = agent.run(sys.stdin.read())
    print(ended["exit_status"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
