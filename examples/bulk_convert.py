"""A data set in bulk: conversations in OpenAI's form (one JSON object a line) become Gemini's requests.

    python examples/bulk_convert.py examples/data/chats.jsonl converted.jsonl

The same from a shell, without a program of one's own; each result has its losses beside it. `--jobs 4` works
in four processes, and memory stays constant:

    sed 's/.*/{"kind": "request", "body": &}/' examples/data/chats.jsonl > cases.jsonl
    wireglot translate --jsonl --from openai-chat --to gemini --in cases.jsonl --out results.jsonl
"""

import json
import sys
from collections import Counter

import wireglot


def main(source: str, target: str) -> int:
    losses: Counter[str] = Counter()
    done = failed = 0
    with open(source, encoding="utf-8") as lines, open(target, "w", encoding="utf-8") as converted:
        for number, line in enumerate(lines, 1):
            try:
                out = wireglot.translate_request(line, source="openai-chat", target="gemini")
            except wireglot.WireglotError as problem:  # one bad line does not stop the rest
                print(f"line {number}: {problem}", file=sys.stderr)
                failed += 1
                continue
            converted.write(json.dumps(out.value, ensure_ascii=False) + "\n")
            losses.update(f"{loss.grade}: {loss.feature} {loss.action}" for loss in out.losses)
            done += 1
    print(f"{done} converted, {failed} failed")
    for loss, times in sorted(losses.items()):
        print(f"  {times} × {loss}")
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python examples/bulk_convert.py SOURCE.jsonl TARGET.jsonl")
    sys.exit(main(sys.argv[1], sys.argv[2]))
