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

// The other way: a command that was copied, from a page of documentation or a browser's developer tools.

export interface CurlRequest {
  url: string;
  method: string;
  headers: [string, string][];
  body: string;
}

/** What is wrong with a text, and where. */
export class Fault extends Error {
  constructor(
    message: string,
    readonly offset: number,
  ) {
    super(message);
  }
}

interface Word {
  text: string;
  at: number;
}

interface Script {
  words: Word[];
  /** What the command reads from its standard input. */
  input: string | null;
}

const ESCAPES: Record<string, string> = { n: "\n", t: "\t", r: "\r", a: "\x07", b: "\b", f: "\f", v: "\v", e: "\x1b", E: "\x1b", "\\": "\\", "'": "'", '"': '"', "?": "?" };

/** The text of `$'…'`, from behind its quote, and where that ends. */
function ansiQuoted(text: string, from: number): [string, number] {
  let found = "";
  let at = from;
  while (at < text.length && text[at] !== "'") {
    if (text[at] !== "\\") {
      found += text[at++];
      continue;
    }
    const code = /^\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3}))/.exec(text.slice(at, at + 10));
    if (code) {
      const value = code[4] ? Number.parseInt(code[4], 8) : Number.parseInt(code[1] ?? code[2] ?? code[3] ?? "0", 16);
      found += value <= 0x10ffff ? String.fromCodePoint(value) : "\ufffd";
      at += code[0].length;
      continue;
    }
    const next = text[at + 1] ?? "";
    found += ESCAPES[next] ?? "\\" + next;
    at += 2;
  }
  if (at >= text.length) throw new Fault("the quote that opens here is never closed: expected another '", from - 1);
  return [found, at + 1];
}

function doubleQuoted(text: string, from: number): [string, number] {
  let found = "";
  let at = from;
  while (at < text.length && text[at] !== '"') {
    if (text[at] === "\\" && at + 1 < text.length) {
      const next = text[at + 1] ?? "";
      if (next === "\r" && text[at + 2] === "\n") at++;
      else if (next !== "\n") found += '$`"\\'.includes(next) ? next : "\\" + next;
      at += 2;
    } else found += text[at++];
  }
  if (at >= text.length) throw new Fault('the quote that opens here is never closed: expected another "', from - 1);
  return [found, at + 1];
}

/** One word of a shell, from `at`: what its quotes and escapes come to, and where it ends. */
function wordAt(text: string, from: number): [string, number] {
  let found = "";
  let at = from;
  while (at < text.length) {
    const sign = text[at] ?? "";
    if (/[\s|;&<>]/.test(sign)) break;
    let more = sign;
    let next = at + 1;
    if (sign === "'") {
      const end = text.indexOf("'", next);
      if (end < 0) throw new Fault("the quote that opens here is never closed: expected another '", at);
      more = text.slice(next, end);
      next = end + 1;
    } else if (sign === '"') [more, next] = doubleQuoted(text, next);
    else if (sign === "$" && text[next] === "'") [more, next] = ansiQuoted(text, next + 1);
    else if (sign === "$" && text[next] === '"') [more, next] = doubleQuoted(text, next + 1);
    else if (sign === "\\") {
      const newline = /^\\\r?\n/.exec(text.slice(at, at + 3));
      more = newline ? "" : (text[next] ?? "");
      next = newline ? at + newline[0].length : at + 2;
    }
    found += more;
    at = next;
  }
  return [found, at];
}

/** The words of the command that is called `name`, and its standard input: a document of its own, or that of `cat`. */
function script(text: string, name: string): Script {
  const commands: Word[][] = [[]];
  const documents: { end: string; at: number; tabs: boolean }[] = [];
  let input: string | null = null;
  let at = 0;
  while (at < text.length) {
    const rest = text.slice(at);
    const blank = /^(?:[ \t]|\\\r?\n)+/.exec(rest);
    if (blank) {
      at += blank[0].length;
      continue;
    }
    const here = /^<<(-?)(?!<)[ \t]*/.exec(rest);
    if (here) {
      const [end, next] = wordAt(text, at + here[0].length);
      if (!end) throw new Fault("expected a word behind <<", at);
      documents.push({ end, at, tabs: here[1] === "-" });
      at = next;
      continue;
    }
    const string = /^<<<[ \t]*/.exec(rest);
    if (string) {
      [input, at] = wordAt(text, at + string[0].length);
      continue;
    }
    const line = /^\r?\n/.exec(rest);
    if (line) {
      at += line[0].length;
      for (const document of documents.splice(0)) [input, at] = documentAt(text, at, document);
      commands.push([]);
      continue;
    }
    if (/^[|;&]/.test(rest)) {
      commands.push([]);
      at++;
      continue;
    }
    const redirect = /^(?:\d?>{1,2}&?|<)[ \t]*/.exec(rest);
    if (redirect) {
      at = wordAt(text, at + redirect[0].length)[1];
      continue;
    }
    if (rest.startsWith("#")) {
      at += /^[^\n]*/.exec(rest)?.[0].length ?? 1;
      continue;
    }
    const [word, next] = wordAt(text, at);
    commands.at(-1)?.push({ text: word, at });
    at = Math.max(next, at + 1);
  }
  if (documents[0]) throw new Fault(`the document that begins here has no end: expected a line with ${documents[0].end}`, documents[0].at);
  const isIt = (word: Word) => word.text === name || word.text.endsWith(`/${name}`) || word.text === `${name}.exe`;
  for (const words of commands) {
    const place = words.findIndex(isIt);
    if (place >= 0) return { words: words.slice(place + 1), input };
  }
  throw new Fault(`expected a command that begins with ${name}`, 0);
}

function documentAt(text: string, from: number, document: { end: string; at: number; tabs: boolean }): [string, number] {
  const lines: string[] = [];
  let at = from;
  while (at < text.length) {
    const stop = text.indexOf("\n", at);
    const whole = text.slice(at, stop < 0 ? text.length : stop).replace(/\r$/, "");
    const line = document.tabs ? whole.replace(/^\t+/, "") : whole;
    at = stop < 0 ? text.length : stop + 1;
    if (line === document.end) return [lines.map((each) => each + "\n").join(""), at];
    lines.push(line);
  }
  throw new Fault(`the document that begins here has no end: expected a line with ${document.end}`, document.at);
}

/** Options of curl that are followed by a value, by their long names. Of these only some are looked at. */
const VALUED = new Set(
  ("request header data data-raw data-binary data-ascii data-urlencode json url user user-agent cookie output max-time connect-timeout proxy form form-string upload-file referer cert cacert key write-out " +
    "retry retry-delay retry-max-time config dump-header resolve range cookie-jar limit-rate aws-sigv4 oauth2-bearer interface connect-to trace trace-ascii stderr speed-time speed-limit time-cond keepalive-time unix-socket proxy-user noproxy ciphers url-query variable expand-data").split(" "),
);
const SHORT: Record<string, string> = {
  X: "request", H: "header", d: "data", u: "user", A: "user-agent", b: "cookie", o: "output", m: "max-time", x: "proxy", F: "form", T: "upload-file", e: "referer", E: "cert", w: "write-out",
  K: "config", D: "dump-header", r: "range", c: "cookie-jar", Y: "speed-limit", y: "speed-time", z: "time-cond", U: "proxy-user", G: "get",
};
const DATA = new Set(["data", "data-raw", "data-binary", "data-ascii", "data-urlencode", "json", "expand-data"]);

/** The command is at the beginning: a document may come before its options, and not before it. */
const BEGINNING = 4000;

export function isCurl(text: string): boolean {
  const beginning = text.slice(0, BEGINNING);
  return beginning.includes("curl") && !/^\s*[{[]/.test(beginning) && /(?:^|[|;&\n]|\$ |> )\s*(?:[A-Za-z_]\w*=\S*\s+)*(?:sudo |time |exec )?(?:\S*\/)?curl(?:\.exe)?(?=\s)/.test(beginning);
}

/** Raises a Fault that names the place and what was expected. */
export function parseCurl(text: string): CurlRequest {
  const { words, input } = script(text, "curl");
  const found: CurlRequest = { url: "", method: "", headers: [], body: "" };
  const bodies: string[] = [];
  let isGet = false;
  const take = (name: string, value: string, at: number) => {
    if (name === "request") found.method = value;
    else if (name === "url") found.url ||= value;
    else if (name === "header") {
      const [, header = "", said = ""] = /^([^:;]+)[:;]\s*([\s\S]*)$/.exec(value) ?? [];
      if (header) found.headers.push([header.trim(), said]);
    } else if (DATA.has(name)) {
      if (name === "json") found.headers.push(["content-type", "application/json"]);
      if (value.startsWith("@") && name !== "data-raw") {
        if (value !== "@-") throw new Fault(`the body is in the file ${value.slice(1)}: expected it in the command, paste it in its place`, at);
        if (input === null) throw new Fault("the body is read from standard input, and none is given: expected a document behind <<EOF", at);
        bodies.push(name === "data-binary" || name === "json" ? input : input.replace(/[\r\n]/g, ""));
      } else bodies.push(value);
    } else if (name === "form" || name === "form-string" || name === "upload-file") throw new Fault(`--${name} sends no JSON: expected --data, --data-raw or --json`, at);
  };
  for (let index = 0; index < words.length; index++) {
    const word = words[index] as Word;
    const following = (name: string): string => {
      const next = words[++index];
      if (!next) throw new Fault(`expected a value for --${name}`, word.at);
      return next.text;
    };
    if (word.text.startsWith("--")) {
      const [, name = "", given] = /^--([^=]+)(?:=([\s\S]*))?$/.exec(word.text) ?? [];
      if (name === "get") isGet = true;
      else if (VALUED.has(name)) take(name, given ?? following(name), word.at);
    } else if (word.text.startsWith("-") && word.text.length > 1) {
      for (let place = 1; place < word.text.length; place++) {
        const name = SHORT[word.text[place] ?? ""] ?? "";
        if (name === "get") isGet = true;
        if (!VALUED.has(name)) continue;
        const rest = word.text.slice(place + 1);
        take(name, rest || following(name), word.at);
        break;
      }
    } else found.url ||= word.text;
  }
  found.body = bodies.join("&");
  if (!found.url) throw new Fault("expected an address behind curl", 0);
  if (!found.body || isGet) throw new Fault("the command has no body: expected --data, --data-raw or --json with a request", 0);
  found.method ||= "POST";
  return found;
}
