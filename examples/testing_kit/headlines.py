"""The program under test: it asks a model for a headline. It knows nothing of Wireglot."""

from anthropic import Anthropic


class NoHeadline(Exception):
    """The model was not heard to the end."""


def headline(text: str, client: Anthropic, model: str = "claude-sonnet-5-5") -> str:
    """A headline for a text, streamed, in at most sixty tokens."""
    prompt = f"Write a headline for: {text}"
    with client.messages.stream(
        model=model, max_tokens=60, messages=[{"role": "user", "content": prompt}]
    ) as stream:
        message = stream.get_final_message()
    if message.stop_reason != "end_turn":
        raise NoHeadline(f"the model stopped for {message.stop_reason}")
    return "".join(block.text for block in message.content if block.type == "text")
