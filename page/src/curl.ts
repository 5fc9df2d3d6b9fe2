// The client's request as a command: quoted for a shell, with a variable where the key was.
import type { Message } from "./types";

const quote = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;
// What no header has, and a terminal would obey.
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it removes
const plain = (text: string) => text.replaceAll(/[\u0000-\u001f\u007f-\u009f]/g, "");
const LEFT_OUT = new Set(["host", "content-length", "connection", "accept-encoding", "transfer-encoding"]);

export function curlOf(message: Message, origin: string, path: string): string {
  let target = path;
  try {
    const url = new URL(message.url || path, origin);
    target = url.pathname + url.search;
  } catch {
    target = path;
  }
  const lines = [`curl -sS -N -X ${/^[A-Z]+$/.test(message.method ?? "") ? message.method : "POST"} ${quote(plain(origin + target))}`];
  for (const [name, value] of message.headers ?? []) {
    if (LEFT_OUT.has(name.toLowerCase())) continue;
    if (/^(authorization|proxy-authorization|cookie|x-api-key|x-goog-api-key|api-key)$/i.test(name)) {
      const variable = name.toLowerCase() === "authorization" ? "Bearer $WIREGLOT_KEY" : "$WIREGLOT_KEY";
      lines.push(`-H "${plain(name).replaceAll(/[^\w-]/g, "")}: ${variable}"`);
    } else lines.push(`-H ${quote(plain(`${name}: ${value}`))}`);
  }
  if (message.body && !message.base64) lines.push(`--data-raw ${quote(message.body.replaceAll("\u0000", ""))}`);
  return lines.join(" \\\n  ") + "\n";
}
