"""What the parts of a Chat message are, for those who look for one of them."""

from tests.tiers import rows
from wireglot_core.dialects.openai_chat.places import PLACES
from wireglot_core.dialects.places import Turn


@rows(
    ("kind", "expected"),
    [
        ("text", "Text"),
        ("refusal", "Text"),
        ("thinking", "Reasoning"),
        ("image_url", "Media"),
        ("input_audio", "Media"),
        ("file", "Media"),
        ("video_url", "Media"),
        ("audio_url", "Media"),
        ("novelty", "Foreign"),
        (7, "Text"),
    ],
)
def test_a_part_is_known_by_its_type(kind, expected):
    (node,) = PLACES.parts(Turn("$.messages[0]", {"role": "user", "content": [{"type": kind}]}))
    assert (node.path, node.kind) == ("$.messages[0].content[0]", expected)
