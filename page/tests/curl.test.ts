import assert from "node:assert/strict";
import { test } from "node:test";
import { Fault, curlOf, isCurl, parseCurl } from "../src/curl";

const BODY = '{"model": "m", "messages": [{"role": "user", "content": "It\'s \\"one\\""}]}';

const COMMANDS: [string, string][] = [
  ["single quotes", `curl https://h/v1/messages -d '${BODY.replaceAll("'", "'\\''")}'`],
  ["double quotes", `curl https://h/v1/messages --data "${BODY.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`],
  ["ANSI quotes, as browsers copy", `curl 'https://h/v1/messages' --data-raw $'${BODY.replaceAll("\\", "\\\\").replaceAll("'", "\\u0027")}'`],
  ["a heredoc", `curl https://h/v1/messages \\\n  -H 'x-api-key: k' \\\n  --data-binary @- <<'EOF'\n${BODY}\nEOF\n`],
  ["a heredoc without quotes and with tabs", `curl https://h/v1/messages -d @- <<-END\n\t${BODY}\n\tEND`],
  ["a heredoc of cat", `cat <<EOF | curl -sS https://h/v1/messages --json @-\n${BODY}\nEOF`],
  ["a here-string", `curl https://h/v1/messages --data-binary @- <<< '${BODY.replaceAll("'", "'\\''")}'`],
  ["options that are joined", `curl -sSNXPOST https://h/v1/messages -d'${BODY.replaceAll("'", "'\\''")}'`],
  ["lines of Windows", `curl https://h/v1/messages \\\r\n  -d '${BODY.replaceAll("'", "'\\''")}' \\\r\n  -H "a: b"\r\n`],
  ["a prompt and variables before it", `$ KEY=1 curl -o out.json https://h/v1/messages --data='${BODY.replaceAll("'", "'\\''")}' | jq .`],
];

for (const [name, command] of COMMANDS)
  test(`a body is read out of ${name}`, () => {
    assert.ok(isCurl(command));
    const found = parseCurl(command);
    assert.equal(found.url, "https://h/v1/messages");
    assert.deepEqual(JSON.parse(found.body), JSON.parse(BODY));
    assert.equal(found.method, "POST");
  });

test("headers are read, and values of other options are no addresses", () => {
  const found = parseCurl(`curl -m 5 --retry 3 -H "authorization: Bearer $KEY" -H 'Content-Type:application/json' --proxy p:1 u -d {}`);
  assert.deepEqual(found, { url: "u", method: "POST", body: "{}", headers: [["authorization", "Bearer $KEY"], ["Content-Type", "application/json"]] });
});

const BROKEN: [string, string, RegExp, number][] = [
  ["a quote that is not closed", "curl u -d '{\"a\": 1}", /expected another '/, 10],
  ["a double quote that is not closed", 'curl u -d "{}', /expected another "/, 10],
  ["an ANSI quote that is not closed", "curl u -d $'{}", /expected another '/, 11],
  ["a heredoc without its end", "curl u -d @- <<EOF\n{}\n", /expected a line with EOF/, 13],
  ["a body in a file", "curl u -d @body.json", /in the file body.json/, 7],
  ["a form", "curl u -F a=b", /expected --data/, 7],
  ["no address", "curl -d {}", /expected an address/, 0],
  ["no body", "curl https://h/v1/models", /expected --data/, 0],
  ["no value", "curl u -d", /expected a value for --data/, 7],
  ["nothing on standard input", "curl u -d @-", /none is given/, 7],
];

for (const [name, command, message, offset] of BROKEN)
  test(`a command with ${name} is a fault at its place`, () => {
    assert.throws(() => parseCurl(command), (fault) => fault instanceof Fault && message.test(fault.message) && fault.offset === offset);
  });

test("what the page copies as a command is read again", () => {
  const body = '{"model":"m","text":"it\'s $5 `now` \\n"}';
  const command = curlOf({ method: "POST", url: "/v1/chat/completions?a=1", headers: [["authorization", "Bearer secret"], ["x-a", "1"]], body }, "http://g", "/");
  const found = parseCurl(command);
  assert.equal(found.url, "http://g/v1/chat/completions?a=1");
  assert.equal(found.body, body);
  assert.ok(!command.includes("secret"));
});

test("JSON and prose are no commands", () => {
  for (const text of ['{"curl": "curl "}', "", "data: {}", "a curly word", "see curling"]) assert.ok(!isCurl(text), text);
});

test("no text makes the reader fail in another way", () => {
  const pieces = ["curl ", "'", '"', "\\", "$'", "<<", "EOF", "\n", "-d ", "@-", "|", "{}", " ", "\\x", "--", "<<<", "\u0000", "é"];
  let seed = 11;
  const next = (below: number) => (seed = (seed * 1103515245 + 12345) % 2 ** 31) % below;
  for (let run = 0; run < 3000; run++) {
    const text = "curl " + Array.from({ length: next(14) }, () => pieces[next(pieces.length)]).join("");
    try {
      parseCurl(text);
    } catch (fault) {
      assert.ok(fault instanceof Fault && fault.offset >= 0 && fault.offset <= text.length, `${JSON.stringify(text)}: ${String(fault)}`);
    }
  }
});
