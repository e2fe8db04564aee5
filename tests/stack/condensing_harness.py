"""A harness that condenses its conversation in the middle, so that its rollouts are two rows of tokens.

    python condensing_harness.py ANSWERS HOLD

It asks twice, forgets all but the issue's first line, and asks once more. By the ids of the last answer, whatever they
say, it repairs the task or does not, so that a group has something to compare: ANSWERS is a file of JSON from issues to
the files that solve them; other tasks are left as they are. Before its last call the first of all harnesses to come
makes the file HOLD and waits to be killed; `-` as HOLD: none does.
"""

import json
import os
import shlex
import sys
import time
import urllib.request


def ask(path, body):
    headers = {"Authorization": f"Bearer {os.environ['STEPWELL_TOKEN']}", "Content-Type": "application/json"}
    request = urllib.request.Request(os.environ["STEPWELL_GATEWAY"] + path, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=600) as response:
        return json.load(response)


def say(messages):
    choice = ask("/v1/chat/completions", {"messages": messages, "return_token_ids": True})["choices"][0]
    messages.append(choice["message"])
    return choice["token_ids"]


def hold(path):
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    while True:
        time.sleep(60)


def main():
    answers, held = sys.argv[1:]
    issue = sys.stdin.read()
    messages = [{"role": "user", "content": issue}]
    say(messages)
    ask("/v1/sandbox/exec", {"command": "echo seen > seen"})
    messages.append({"role": "user", "content": "go on"})
    say(messages)
    if held != "-":
        hold(held)
    messages = [{"role": "user", "content": f"In short: {issue.splitlines()[0]}"}]
    if sum(say(messages)) % 2:
        with open(answers) as file:
            files = json.load(file).get(issue, {})
        for path, text in files.items():
            ask("/v1/sandbox/exec", {"command": f"printf %s {shlex.quote(text)} > {shlex.quote(path)}"})
    return 0


if __name__ == "__main__":
    sys.exit(main())
