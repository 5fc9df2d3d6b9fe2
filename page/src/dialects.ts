// The dialects as the page names them.

/** Those that most clients and providers speak. */
export const DIALECTS = ["anthropic", "openai-chat", "openai-responses", "gemini", "gemini-interactions", "ollama"];
export const TITLES: Record<string, string> = {
  anthropic: "Anthropic Messages",
  "openai-chat": "OpenAI Chat",
  "openai-responses": "OpenAI Responses",
  gemini: "Gemini",
  "gemini-interactions": "Gemini Interactions",
  ollama: "Ollama",
  "ollama-generate": "Ollama, one prompt",
  "code-assist": "Gemini Code Assist",
  "gemini-simple": "Gemini, simple",
  "anthropic-vertex": "Anthropic on Vertex AI",
  "anthropic-bedrock": "Anthropic on Bedrock",
};
export const titleOf = (name: string) => TITLES[name] ?? name;
