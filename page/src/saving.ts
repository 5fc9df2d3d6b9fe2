// A test of an exchange, as a file: it is translated again as it was when it was saved.
import type { Trace } from "./types";

const named = (text: string) => text.toLowerCase().replace(/[^a-z0-9]+/g, "_").replace(/^_+|_+$/g, "");

export function nameOf(trace: Trace): string {
  const attempt = trace.attempts?.at(-1);
  return named([trace.row.dialect, "to", attempt?.provider, attempt?.model].filter(Boolean).join(" ")) || "exchange";
}

/** For pytest. JSON has nowhere three quotes in a row, and a raw string takes its backslashes as they are. */
export function testOf(trace: Trace): string {
  const name = nameOf(trace);
  return `"""An exchange saved by the Wireglot inspector.

It is translated again without a network, and must be translated as it was. Needs wireglot and pytest.
"""

from wireglot.testing import replay

TRACE = r"""
${JSON.stringify(trace, null, 1)}
"""


def test_${name}():
    replay(TRACE.encode())
`;
}
