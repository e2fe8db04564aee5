"""Errors in OpenAI's form: a status, and a JSON object that clients turn into exceptions of their own."""

import json

CONTEXT_CODE = "context_length_exceeded"
"""By this code clients know that they may ask again with less."""


class Refused(Exception):
    """A request that is not answered.

    Args:
        status: HTTP status; clients try again by themselves on 409, 429 and 5xx alone.
        kind: OpenAI's `type`.
        code: OpenAI's `code`.
        message: What was found, what is wanted, what to do.
    """

    def __init__(self, status: int, kind: str, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.kind, self.code, self.message = status, kind, code, message

    def body(self) -> bytes:
        """The JSON object."""
        error = {"message": self.message, "type": self.kind, "param": None, "code": self.code}
        return json.dumps({"error": error}).encode()


def bad_request(message: str) -> Refused:
    """A request that cannot be understood or done."""
    return Refused(400, "invalid_request_error", "invalid_request", message)


def unknown_token() -> Refused:
    """A token that opens no rollout."""
    return Refused(401, "invalid_request_error", "invalid_api_key", "the key opens no rollout: it is unknown or over")


def too_long(tokens: int, limit: int) -> Refused:
    """A prompt without room for an answer. Clients look for these words, too."""
    return Refused(
        400,
        "invalid_request_error",
        CONTEXT_CODE,
        f"This model's maximum context length is {limit} tokens. However, your messages resulted in {tokens} tokens. "
        "Please reduce the length of the messages.",
    )


def used_up(code: str, message: str) -> Refused:
    """The rollout has had what its recipe gives it; asking again changes nothing."""
    return Refused(403, "invalid_request_error", code, message)


def over(message: str) -> Refused:
    """The rollout is given up by this worker."""
    return Refused(403, "invalid_request_error", "rollout_over", message)


def unavailable(message: str) -> Refused:
    """Infrastructure failed; asking again may help."""
    return Refused(503, "server_error", "unavailable", message)
