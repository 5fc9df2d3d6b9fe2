// What a document of a dialect says, part by part, each with its place: for people, who read messages and not JSON.
// What is not understood is shown unchanged: nothing here may fail on any body.
import { type Json, escapeToken } from "./json/parse";

export type Kind = "system" | "text" | "reasoning" | "call" | "result" | "image" | "file" | "tool" | "refusal" | "error" | "other";

export interface Part {
  pointer: string;
  role: string;
  kind: Kind;
  text: string;
  /** A tool's name, a file's or an image's type. */
  name?: string | undefined;
  /** The id that links a call with its result. */
  id?: string | undefined;
  failed?: boolean;
  /** What cannot be read, in words for people: reasoning that is encrypted, or only signed. */
  note?: string | undefined;
  /** Whether that is sent back to its provider, where nothing of it is lost. */
  goesBack?: boolean | undefined;
  /** The part that has the picture's bytes. */
  data?: string | undefined;
}

type Obj = { [name: string]: Json };

const isObj = (value: Json | undefined): value is Obj => value !== null && typeof value === "object" && !Array.isArray(value);
const list = (value: Json | undefined): Json[] => (Array.isArray(value) ? value : []);
const str = (value: Json | undefined): string => (typeof value === "string" ? value : "");
export function pretty(value: Json | undefined): string {
  if (value === undefined || typeof value === "string") return value ?? "";
  try {
    return JSON.stringify(value, null, 2);
  } catch {
    return "(nested too deeply to be written)";
  }
}

function argumentsText(value: Json | undefined): string {
  if (typeof value !== "string") return pretty(value);
  try {
    return JSON.stringify(JSON.parse(value), null, 2);
  } catch {
    return value;
  }
}

function other(pointer: string, role: string, value: Json): Part {
  return { pointer, role, kind: "other", name: isObj(value) ? str(value["type"]) : "", text: pretty(value) };
}

/** One part of a message, in whichever dialect: their `type`s do not collide, and Gemini's parts have none. */
function part(value: Json, pointer: string, role: string): Part[] {
  if (typeof value === "string") return [{ pointer, role, kind: role === "system" ? "system" : "text", text: value }];
  if (!isObj(value)) return [other(pointer, role, value)];
  const id = str(value["id"]);
  switch (str(value["type"])) {
    case "text":
    case "input_text":
    case "output_text":
      return [{ pointer, role, kind: role === "system" || role === "developer" ? "system" : "text", text: str(value["text"]) }];
    case "refusal":
      return [{ pointer, role, kind: "refusal", text: str(value["refusal"]) }];
    case "thinking":
      return [{ pointer, role, kind: "reasoning", text: str(value["thinking"]), ...(str(value["thinking"]) ? {} : unread(value["signature"], "signed")) }];
    case "redacted_thinking":
      return [{ pointer, role, kind: "reasoning", text: "", ...unread(value["data"], "encrypted") }];
    case "tool_use":
    case "server_tool_use":
      return [{ pointer, role, kind: "call", name: str(value["name"]), id, text: argumentsText(value["input"]) }];
    case "tool_result":
      return result(value["content"], pointer, str(value["tool_use_id"]), value["is_error"] === true);
    case "image":
      return [{ pointer, role, kind: "image", text: "", ...imageOf(value, pointer) }];
    case "image_url": {
      const url = isObj(value["image_url"]) ? str(value["image_url"]["url"]) : "";
      return [{ pointer, role, kind: "image", text: url.startsWith("data:") ? "" : url, name: typeOf(url), data: url.startsWith("data:") ? `${pointer}/image_url/url` : undefined }];
    }
    case "input_image": {
      const url = str(value["image_url"]);
      return [{ pointer, role, kind: "image", text: url.startsWith("data:") ? "" : url || str(value["file_id"]), name: typeOf(url), data: url.startsWith("data:") ? `${pointer}/image_url` : undefined }];
    }
    case "document":
    case "file":
    case "input_file":
      return [{ pointer, role, kind: "file", name: str(value["title"]) || str(value["filename"]) || (isObj(value["file"]) ? str(value["file"]["filename"]) : "") || "file", text: "" }];
  }
  if (value["text"] === "" && str(value["thoughtSignature"])) return [{ pointer, role, kind: "reasoning", text: "", ...unread(value["thoughtSignature"], "signed") }];
  if (typeof value["text"] === "string")
    return [{ pointer, role, kind: value["thought"] === true ? "reasoning" : role === "system" ? "system" : "text", text: value["text"] }];
  if (isObj(value["functionCall"])) {
    const call = value["functionCall"];
    return [{ pointer, role, kind: "call", name: str(call["name"]), id: str(call["id"]) || str(call["name"]), text: pretty(call["args"]) }];
  }
  if (isObj(value["functionResponse"])) {
    const answer = value["functionResponse"];
    return [{ pointer, role: "tool", kind: "result", name: str(answer["name"]), id: str(answer["id"]) || str(answer["name"]), text: pretty(answer["response"]) }];
  }
  const inline = value["inlineData"] ?? value["inline_data"];
  if (isObj(inline)) {
    const name = str(inline["mimeType"] ?? inline["mime_type"]);
    const field = value["inlineData"] ? "inlineData" : "inline_data";
    return [{ pointer, role, kind: name.startsWith("image/") ? "image" : "file", name, text: "", data: `${pointer}/${field}/data` }];
  }
  return [other(pointer, role, value)];
}

/** Why reasoning has no text. Whether it goes on to the other side is what its losses say. */
function unread(sealed: Json | undefined, how: "signed" | "encrypted"): { name: string; note: string; goesBack?: boolean } {
  const size = str(sealed).length.toLocaleString("en");
  if (!str(sealed)) return { name: "empty", note: "The provider says that the model thought, and not what: there is neither text nor a signature." };
  if (how === "encrypted") return { name: "encrypted", note: `${size} characters that only the provider can read.`, goesBack: true };
  return { name: "signature only", note: `A signature of ${size} characters without text: the provider does not show what the model thought.`, goesBack: true };
}

function typeOf(url: string): string {
  return url.startsWith("data:") ? url.slice(5, url.indexOf(";")) : "address";
}

function imageOf(value: Obj, pointer: string): { name: string; data?: string } {
  const source = value["source"];
  if (!isObj(source)) return { name: "image" };
  if (source["type"] === "base64") return { name: str(source["media_type"]), data: `${pointer}/source/data` };
  return { name: str(source["url"]) || str(source["type"]) };
}

function result(content: Json | undefined, pointer: string, id: string, failed: boolean): Part[] {
  const base: Part = { pointer, role: "tool", kind: "result", id, failed, text: "" };
  if (typeof content === "string") return [{ ...base, text: content }];
  const parts = list(content).flatMap((each, index) => part(each, `${pointer}/content/${index}`, "tool"));
  const text = parts.filter((each) => each.kind === "text").map((each) => each.text).join("\n");
  return [{ ...base, text }, ...parts.filter((each) => each.kind === "image" || each.kind === "file")];
}

function content(value: Json | undefined, pointer: string, role: string): Part[] {
  if (typeof value === "string") return value ? part(value, pointer, role) : [];
  return list(value).flatMap((each, index) => part(each, `${pointer}/${index}`, role));
}

function chatMessage(message: Json, pointer: string): Part[] {
  if (!isObj(message)) return [other(pointer, "", message)];
  const role = str(message["role"]);
  if (role === "tool") return result(message["content"], pointer, str(message["tool_call_id"]), false);
  const parts: Part[] = [];
  const reasoning = str(message["reasoning_content"]) || str(message["reasoning"]);
  if (reasoning) parts.push({ pointer: `${pointer}/${message["reasoning_content"] ? "reasoning_content" : "reasoning"}`, role, kind: "reasoning", text: reasoning });
  parts.push(...content(message["content"], `${pointer}/content`, role === "developer" ? "system" : role));
  if (typeof message["refusal"] === "string") parts.push({ pointer: `${pointer}/refusal`, role, kind: "refusal", text: message["refusal"] });
  list(message["tool_calls"]).forEach((call, index) => {
    const there = `${pointer}/tool_calls/${index}`;
    if (!isObj(call)) return parts.push(other(there, role, call));
    const inner = isObj(call["function"]) ? call["function"] : isObj(call["custom"]) ? call["custom"] : {};
    return parts.push({ pointer: there, role, kind: "call", name: str(inner["name"]), id: str(call["id"]), text: argumentsText(inner["arguments"] ?? inner["input"]) });
  });
  // A message without anything that is known has its place all the same.
  return parts.length ? parts : [{ pointer, role, kind: "text", text: "" }];
}

function responsesItem(item: Json, pointer: string): Part[] {
  if (!isObj(item)) return [other(pointer, "", item)];
  const type = str(item["type"]);
  if (type === "message" || (!type && item["role"])) {
    const role = str(item["role"]);
    return content(item["content"], `${pointer}/content`, role === "developer" ? "system" : role);
  }
  if (type === "function_call" || type === "custom_tool_call" || type === "local_shell_call")
    return [{ pointer, role: "assistant", kind: "call", name: str(item["name"]) || type, id: str(item["call_id"]), text: argumentsText(item["arguments"] ?? item["input"] ?? item["action"]) }];
  if (type === "function_call_output" || type === "custom_tool_call_output" || type === "local_shell_call_output") {
    if (Array.isArray(item["output"])) {
      const parts = item["output"].flatMap((each, index) => part(each, `${pointer}/output/${index}`, "tool"));
      return [{ pointer, role: "tool", kind: "result", id: str(item["call_id"]), text: parts.map((each) => each.text).join("\n") }, ...parts.filter((each) => each.kind === "image")];
    }
    return [{ pointer, role: "tool", kind: "result", id: str(item["call_id"]), text: pretty(item["output"]) }];
  }
  if (type === "reasoning") {
    const texts = [...list(item["summary"]), ...list(item["content"])].map((each) => (isObj(each) ? str(each["text"]) : "")).filter(Boolean);
    return [{ pointer, role: "assistant", kind: "reasoning", text: texts.join("\n\n"), ...(texts.length ? {} : unread(item["encrypted_content"], "encrypted")) }];
  }
  if (type === "additional_tools") return tools(item["tools"], `${pointer}/tools`);
  return [other(pointer, str(item["role"]) || "assistant", item)];
}

function tools(value: Json | undefined, pointer: string, space = ""): Part[] {
  return list(value).flatMap((tool, index): Part[] => {
    const there = `${pointer}/${index}`;
    if (!isObj(tool)) return [other(there, "tools", tool)];
    if (tool["type"] === "namespace" && Array.isArray(tool["tools"])) return tools(tool["tools"], `${there}/tools`, `${str(tool["name"])}.`);
    const declared = tool["functionDeclarations"] ?? tool["function_declarations"];
    if (Array.isArray(declared)) {
      const field = tool["functionDeclarations"] ? "functionDeclarations" : "function_declarations";
      return declared.map((each, at) => ({ pointer: `${there}/${field}/${at}`, role: "tools", kind: "tool", name: isObj(each) ? str(each["name"]) : "", text: isObj(each) ? str(each["description"]) : "" }));
    }
    const inner = isObj(tool["function"]) ? tool["function"] : tool;
    return [{ pointer: there, role: "tools", kind: "tool", name: (inner["name"] ? space + str(inner["name"]) : "") || str(tool["type"]) || Object.keys(tool)[0], text: str(inner["description"]) }];
  });
}

/** The parts of a request, in its own order; Gemini's body may stand in an envelope (`request`). */
export function readRequest(value: Json): Part[] {
  if (!isObj(value)) return [];
  const inner = isObj(value["request"]) && (value["request"]["contents"] || value["request"]["systemInstruction"]) ? value["request"] : value;
  const base = inner === value ? "" : "/request";
  const parts: Part[] = [];
  const system = inner["system"] ?? inner["instructions"];
  const field = inner["system"] !== undefined ? "system" : "instructions";
  if (system !== undefined) parts.push(...content(system, `${base}/${field}`, "system"));
  const instruction = inner["systemInstruction"] ?? inner["system_instruction"];
  if (isObj(instruction)) parts.push(...content(instruction["parts"], `${base}/${inner["systemInstruction"] ? "systemInstruction" : "system_instruction"}/parts`, "system"));
  parts.push(...tools(inner["tools"], `${base}/tools`));
  list(inner["messages"]).forEach((message, index) => {
    const there = `${base}/messages/${index}`;
    const blocks = isObj(message) && !message["tool_calls"] && message["role"] !== "tool" && !message["reasoning_content"];
    if (blocks && isObj(message)) parts.push(...content(message["content"], `${there}/content`, str(message["role"])));
    else parts.push(...chatMessage(message, there));
  });
  if (typeof inner["input"] === "string") parts.push({ pointer: `${base}/input`, role: "user", kind: "text", text: inner["input"] });
  list(inner["input"]).forEach((item, index) => parts.push(...responsesItem(item, `${base}/input/${index}`)));
  list(inner["contents"]).forEach((turn, index) => {
    if (!isObj(turn)) return;
    const role = str(turn["role"]) === "model" ? "assistant" : str(turn["role"]) || "user";
    parts.push(...content(turn["parts"], `${base}/contents/${index}/parts`, role));
  });
  return parts;
}

export function readAnswer(value: Json): Part[] {
  if (!isObj(value)) return [];
  const inner = isObj(value["response"]) && value["response"]["candidates"] ? value["response"] : value;
  const base = inner === value ? "" : "/response";
  // A stream may have said something before its error: then both are there.
  const failed: Part[] = [];
  if (isObj(inner["error"]) || inner["type"] === "error") {
    const error = isObj(inner["error"]) ? inner["error"] : {};
    failed.push({ pointer: `${base}/error`, role: "error", kind: "error", name: str(error["type"]) || str(error["status"]) || String(error["code"] ?? ""), text: str(error["message"]) || pretty(error) });
  }
  const parts: Part[] = [];
  if (Array.isArray(inner["content"])) parts.push(...content(inner["content"], `${base}/content`, "assistant"));
  list(inner["choices"]).forEach((choice, index) => {
    if (isObj(choice) && choice["message"] !== undefined) parts.push(...chatMessage(choice["message"], `${base}/choices/${index}/message`));
  });
  list(inner["output"]).forEach((item, index) => parts.push(...responsesItem(item, `${base}/output/${index}`)));
  list(inner["candidates"]).forEach((candidate, index) => {
    const body = isObj(candidate) && isObj(candidate["content"]) ? candidate["content"] : {};
    parts.push(...content(body["parts"], `${base}/candidates/${index}/content/parts`, "assistant"));
  });
  if (isObj(inner["message"]) && "done" in inner) {
    if (str(inner["message"]["thinking"])) parts.push({ pointer: "/message/thinking", role: "assistant", kind: "reasoning", text: str(inner["message"]["thinking"]) });
    parts.push(...chatMessage(inner["message"], "/message"));
  } else if (typeof inner["response"] === "string" && "done" in inner) parts.push({ pointer: "/response", role: "assistant", kind: "text", text: inner["response"] });
  list(inner["steps"]).forEach((step, index) => {
    if (!isObj(step)) return;
    const pointer = `/steps/${index}`;
    if (step["type"] === "thought") {
      const summary = list(step["summary"]).map((each) => (isObj(each) ? str(each["text"]) : "")).join("");
      if (summary) parts.push({ pointer, role: "assistant", kind: "reasoning", text: summary });
    } else if (str(step["type"]).endsWith("_call")) parts.push({ pointer, role: "assistant", kind: "call", name: str(step["name"]) || str(step["type"]), id: str(step["id"]), text: argumentsText(step["arguments"] ?? {}) });
    else if (Array.isArray(step["content"])) parts.push(...content(step["content"], `${pointer}/content`, "assistant"));
  });
  return [...parts, ...failed];
}

/** What applies to the whole conversation: the model, limits, settings. */
export function settingsOf(value: Json): [string, string][] {
  if (!isObj(value)) return [];
  const reported = new Set(["system", "instructions", "systemInstruction", "system_instruction", "tools", "messages", "input", "contents", "request", "content", "choices", "output", "candidates"]);
  return Object.entries(value)
    .filter(([name]) => !reported.has(name))
    .map(([name, each]) => [name, typeof each === "string" ? each : JSON.stringify(each)]);
}

export function pointerOf(...tokens: (string | number)[]): string {
  return tokens.map((token) => "/" + escapeToken(String(token))).join("");
}

const PARTS_AT_FIRST = 40;

/** Which of so many are drawn: the last ones, or those that were asked for; where one must be seen, those around it. */
export function partsInView(total: number, first: number | null, last: number | null, asked: number): { from: number; to: number } {
  const isShorter = first !== null && first >= total; // another document, by now
  const from = first === null || isShorter ? Math.max(0, total - PARTS_AT_FIRST) : first;
  const to = isShorter ? total : Math.min(last ?? total, total);
  if (asked < 0 || (asked >= from && asked < to)) return { from, to };
  const around = Math.max(0, asked - PARTS_AT_FIRST / 2);
  return { from: around, to: Math.min(total, around + PARTS_AT_FIRST) };
}
