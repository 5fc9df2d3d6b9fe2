// What a pasted text is: its dialect, whether it is a request, an answer or a stream, and how it is written.
import { type CurlRequest, isCurl, parseCurl } from "./curl";
import type { Json } from "./json/parse";

export type Kind = "request" | "answer" | "stream";

export interface Recognised {
  dialect: string;
  kind: Kind;
  /** As the playground has it: the body of a command, lines as events. */
  text: string;
  /** What it was, in words for people. */
  from: string;
  /** Where the address names the model, and not the body. */
  model?: string;
  /** Where the address says whether it streams. */
  stream?: boolean;
  /** Whether another dialect could be meant as well. */
  unsure?: boolean;
}

type Obj = { [name: string]: Json };
const isObj = (value: unknown): value is Obj => value !== null && typeof value === "object" && !Array.isArray(value);
const list = (value: unknown): Json[] => (Array.isArray(value) ? (value as Json[]) : []);
const objects = (value: unknown): Obj[] => list(value).filter(isObj);
const has = (value: unknown, ...names: string[]): boolean => isObj(value) && names.some((name) => name in value);

function parsed(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}

/** Raises the Fault of a command that cannot be read. null: nothing that is known. */
export function recognise(given: string): Recognised | null {
  const text = given.trim().replace(/^```[a-z]*\n([\s\S]*?)\n?```$/, "$1").trim();
  if (!text) return null;
  if (isCurl(text)) return ofCommand(parseCurl(text));
  const whole = parsed(text);
  if (whole !== undefined) return ofDocument(whole, text);
  if (/^(?:data|event|id|retry):/m.test(text) && !text.startsWith("{")) return ofEvents(text);
  return ofLines(text);
}

function ofCommand(command: CurlRequest): Recognised | null {
  const document = parsed(command.body);
  const byPath = dialectOfPath(command.url);
  const byBody = document === undefined ? null : ofDocument(document, command.body);
  const dialect = byPath?.dialect ?? (byBody?.kind === "request" ? byBody.dialect : "");
  if (!dialect) return null;
  const text = document === undefined ? command.body : JSON.stringify(document, null, 2);
  return { dialect, kind: "request", text, from: "a curl command", ...(byPath?.model ? { model: byPath.model } : {}), ...(byPath?.stream !== undefined ? { stream: byPath.stream } : {}) };
}

const PATHS: [RegExp, string][] = [
  [/\/v1internal:(?:stream)?generateContent/i, "code-assist"],
  [/\/models\/([^/:?]+):(stream)?raw(?:Predict)/i, "anthropic-vertex"],
  [/\/models\/([^/:?]+):(stream)?generateContent/i, "gemini"],
  [/\/model\/([^/?]+)\/invoke(-with-response-stream)?/, "anthropic-bedrock"],
  [/\/v1\/gemini(?:[/?]|$)/, "gemini-simple"],
  [/\/interactions(?:[?]|$)/, "gemini-interactions"],
  [/\/chat\/completions(?:[?]|$)/, "openai-chat"],
  [/\/responses(?:[?]|$)/, "openai-responses"],
  [/\/messages(?:[?]|$)/, "anthropic"],
  [/\/api\/chat(?:[?]|$)/, "ollama"],
  [/\/api\/generate(?:[?]|$)/, "ollama-generate"],
];

export function dialectOfPath(url: string): { dialect: string; model?: string; stream?: boolean } | null {
  for (const [pattern, dialect] of PATHS) {
    const found = pattern.exec(url);
    if (!found) continue;
    const model = found[1] ? safelyDecoded(found[1]) : "";
    return { dialect, ...(model ? { model, stream: Boolean(found[2]) } : {}) };
  }
  return null;
}

function safelyDecoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function ofDocument(value: Json, text: string): Recognised | null {
  if (Array.isArray(value)) {
    // A stream of Gemini without alt=sse is one array of answers.
    const dialect = value.length ? answerOf(value[0]) : "";
    return dialect === "gemini" || dialect === "code-assist" ? { dialect, kind: "stream", text: events(objects(value)), from: "a JSON array of answers" } : null;
  }
  if (!isObj(value)) return null;
  if (isObj(value["row"]) && isObj(value["request"]) && String(value["format"] ?? "").startsWith("wireglot-trace/")) {
    const body = value["request"]["body"];
    const dialect = value["row"]["dialect"];
    return typeof body === "string" && typeof dialect === "string" ? { dialect, kind: "request", text: pretty(body), from: "the request of an exported trace" } : null;
  }
  const [request, unsure] = requestOf(value);
  if (request) return { dialect: request, kind: "request", text, from: "JSON", ...(unsure ? { unsure } : {}) };
  const answer = answerOf(value);
  if (answer) return { dialect: answer, kind: "answer", text, from: "JSON" };
  const event = eventOf(value);
  return event ? { dialect: event, kind: "stream", text: events([value]), from: "one event" } : null;
}

function pretty(text: string): string {
  const value = parsed(text);
  return value === undefined ? text : JSON.stringify(value, null, 2);
}

const events = (values: Json[]): string => values.map((each) => `data: ${JSON.stringify(each)}\n\n`).join("");

function ofEvents(text: string): Recognised | null {
  for (const line of text.split(/\r?\n|\r/)) {
    const data = /^data: ?(.*)$/.exec(line)?.[1];
    const value = data ? parsed(data) : undefined;
    const dialect = value === undefined ? "" : eventOf(value);
    // An event has ended only behind an empty line.
    if (dialect) return { dialect, kind: "stream", text: text.endsWith("\n\n") ? text : `${text}\n\n`, from: "server-sent events" };
  }
  return null;
}

function ofLines(text: string): Recognised | null {
  const lines = text.split(/\r?\n/).filter((line) => line.trim());
  const values = lines.map(parsed);
  if (lines.length < 2 || values.slice(0, -1).some((each) => !isObj(each))) return null;
  for (const value of values) {
    const dialect = eventOf(value);
    if (!dialect) continue;
    const own = dialect.startsWith("ollama");
    return { dialect, kind: "stream", text: own ? `${lines.join("\n")}\n` : lines.map((line) => `data: ${line}\n\n`).join(""), from: "JSON lines" };
  }
  return null;
}

const ANTHROPIC_EVENTS = /^(?:message_start|message_delta|message_stop|content_block_(?:start|delta|stop)|ping)$/;

function eventOf(value: unknown): string {
  if (!isObj(value)) return "";
  const type = String(value["type"] ?? "");
  if (ANTHROPIC_EVENTS.test(type)) return "anthropic";
  if (type.startsWith("response.")) return "openai-responses";
  if ("event_type" in value) return "gemini-interactions";
  if (value["object"] === "chat.completion.chunk" || objects(value["choices"]).some((each) => "delta" in each)) return "openai-chat";
  return answerOf(value);
}

/** The dialect of a whole answer; "": it is none. */
function answerOf(value: unknown): string {
  if (!isObj(value)) return "";
  if (has(value["response"], "candidates", "promptFeedback", "usageMetadata")) return "code-assist";
  if (has(value, "candidates", "promptFeedback", "usageMetadata")) return "gemini";
  if (value["object"] === "chat.completion" || objects(value["choices"]).some((each) => "message" in each)) return "openai-chat";
  if (value["object"] === "response" || (Array.isArray(value["output"]) && "id" in value)) return "openai-responses";
  if (value["object"] === "interaction" || (Array.isArray(value["steps"]) && "status" in value)) return "gemini-interactions";
  if (value["type"] === "message" && Array.isArray(value["content"])) return "anthropic";
  if ("done" in value && isObj(value["message"])) return "ollama";
  if ("done" in value && typeof value["response"] === "string") return "ollama-generate";
  if (value["type"] === "error" && isObj(value["error"])) return "anthropic";
  if (isObj(value["error"])) return typeof value["error"]["code"] === "number" && "status" in value["error"] ? "gemini" : "openai-chat";
  return "";
}

/** The dialect of a request, and whether it could be another as well. */
function requestOf(value: Obj): [string, boolean] {
  if (has(value["request"], "contents")) return ["code-assist", false];
  if (Array.isArray(value["contents"]) || isObj(value["contents"])) return ["gemini", false];
  const version = String(value["anthropic_version"] ?? "");
  if (version.startsWith("vertex")) return ["anthropic-vertex", false];
  if (version.startsWith("bedrock")) return ["anthropic-bedrock", false];
  if (Array.isArray(value["messages"])) return ofMessages(value, objects(value["messages"]));
  if ("input" in value && !("output" in value) && !("steps" in value)) return ofInput(value);
  if (typeof value["prompt"] === "string") return ["ollama-generate", false];
  return ["", false];
}

function ofInput(value: Obj): [string, boolean] {
  if (objects(value["tools"]).some((each) => has(each, "functionDeclarations", "googleSearch", "codeExecution", "urlContext")) || has(value, "generationConfig", "systemInstruction", "safetySettings", "tool_results")) return ["gemini-simple", false];
  const items = objects(value["input"]);
  const interactions =
    isObj(value["input"]) ||
    has(value, "generation_config", "system_instruction", "agent", "response_modalities", "previous_interaction_id", "response_format", "agent_config", "service_tier_config") ||
    items.some((each) => /^(?:user_input|model_output|thought|text|image|audio|document|video|[a-z_]+_(?:result))$/.test(String(each["type"] ?? "")) || each["role"] === "model" || has(each, "steps"));
  const responses =
    has(value, "instructions", "reasoning", "text", "max_output_tokens", "previous_response_id", "include", "parallel_tool_calls", "truncation", "conversation", "prompt") ||
    items.some((each) => /^(?:message|function_call|function_call_output|item_reference|[a-z_]+_call(?:_output)?|reasoning|compaction)$/.test(String(each["type"] ?? "")) || objects(each["content"]).some((part) => /^(?:input|output)_/.test(String(part["type"] ?? ""))));
  if (interactions !== responses) return [interactions ? "gemini-interactions" : "openai-responses", false];
  return [/^(?:models\/)?gemini/.test(String(value["model"] ?? "")) ? "gemini-interactions" : "openai-responses", true];
}

function ofMessages(value: Obj, messages: Obj[]): [string, boolean] {
  const model = String(value["model"] ?? "");
  const parts = messages.flatMap((message) => objects(message["content"]));
  const tools = objects(value["tools"]);
  const calls = messages.flatMap((message) => objects(message["tool_calls"]));
  const points: Record<string, number> = { anthropic: 0, "openai-chat": 0, ollama: 0 };
  const sign = (dialect: string, holds: boolean, weight = 4) => {
    if (holds) points[dialect] = (points[dialect] ?? 0) + weight;
  };
  sign("anthropic", has(value, "system", "stop_sequences", "thinking", "mcp_servers", "output_config", "context_management", "cache_control", "top_k"));
  sign("anthropic", parts.some((part) => /^(?:tool_use|tool_result|thinking|redacted_thinking|document|server_tool_use|search_result|image)$/.test(String(part["type"] ?? "")) || has(part, "cache_control")));
  sign("anthropic", tools.some((tool) => has(tool, "input_schema") || /_\d{8}$/.test(String(tool["type"] ?? ""))));
  sign("anthropic", "max_tokens" in value, 1);
  sign("anthropic", /claude/.test(model), 2);
  sign("openai-chat", messages.some((message) => message["role"] === "developer" || message["role"] === "function" || has(message, "tool_call_id", "refusal", "audio")));
  // Ollama has these, too, and asks to be taken for it only where a program names it.
  for (const dialect of ["openai-chat", "ollama"]) {
    const points = dialect === "ollama" ? 2 : 3;
    sign(dialect, messages.some((message) => message["role"] === "system" || message["role"] === "tool"), points);
    sign(dialect, tools.some((tool) => isObj(tool["function"])), points);
  }
  sign("openai-chat", parts.some((part) => /^(?:image_url|input_audio|file|refusal)$/.test(String(part["type"] ?? ""))));
  sign("openai-chat", has(value, "response_format", "stream_options", "max_completion_tokens", "n", "logprobs", "top_logprobs", "seed", "frequency_penalty", "presence_penalty", "parallel_tool_calls", "reasoning_effort", "logit_bias", "modalities", "functions", "prediction", "stop", "store", "user", "web_search_options", "extra_body"));
  sign("openai-chat", calls.some((call) => isObj(call["function"]) && typeof call["function"]["arguments"] === "string"));
  sign("openai-chat", /^(?:gpt|o\d|chatgpt)/.test(model), 2);
  sign("ollama", has(value, "options", "keep_alive", "think", "format"), 8);
  sign("ollama", messages.some((message) => has(message, "images", "tool_name")), 8);
  sign("ollama", calls.some((call) => isObj(call["function"]) && isObj(call["function"]["arguments"])), 8);
  sign("ollama", /^[a-z0-9._-]+:[a-z0-9._-]+$/.test(model), 2);
  const order = Object.entries(points).sort((one, other) => other[1] - one[1]);
  const [best, second] = order;
  if (!best?.[1]) return ["openai-chat", true]; // what most programs speak
  return [best[0], best[1] - (second?.[1] ?? 0) <= 2];
}
