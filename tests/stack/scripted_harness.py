"""A harness of a few lines, on the standard library alone: asks, runs what it is told in the sandbox, asks again.

    python scripted_harness.py COMMAND [BEHAVIOUR]

It is told nothing by the policy but to go on or to stop (`done`); COMMAND is what it runs after each answer. BEHAVIOUR
`forgets` drops all messages but the first before the last call; `crashes` ends with 3 after the first call; the path of
a file: ends after the first call if the file is there, else makes it.
"""

import json
import os
import sys
import urllib.request


def ask(path, body):
    headers = {"Authorization": f"Bearer {os.environ['STEPWELL_TOKEN']}", "Content-Type": "application/json"}
    request = urllib.request.Request(os.environ["STEPWELL_GATEWAY"] + path, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=600) as response:
        return json.load(response)


def main():
    command, behaviour = sys.argv[1], (sys.argv[2:] or [""])[0]
    messages = [{"role": "user", "content": sys.stdin.read()}]
    stops = behaviour.startswith("/") and os.path.exists(behaviour)
    if behaviour.startswith("/"):
        open(behaviour, "w").close()
    while True:
        said = ask("/v1/chat/completions", {"messages": messages, "temperature": 0})["choices"][0]["message"]
        if said["content"] == "done":
            return 0
        if behaviour == "crashes":
            return 3
        if stops:
            return 0
        output = ask("/v1/sandbox/exec", {"command": command})["output"]
        messages += [said, {"role": "user", "content": output}]
        if behaviour == "forgets" and said["content"] == "forget":
            del messages[1:]
            messages.append({"role": "user", "content": "go on"})


if __name__ == "__main__":
    sys.exit(main())
