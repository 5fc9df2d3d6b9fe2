// What the playground begins with: small, and with something that not every dialect can say.
export const EXAMPLES: Record<string, string> = {
  request: JSON.stringify(
    {
      model: "claude-sonnet-5-5",
      max_tokens: 1024,
      system: [{ type: "text", text: "You are a careful gardener.", cache_control: { type: "ephemeral" } }],
      thinking: { type: "enabled", budget_tokens: 512 },
      tools: [
        {
          name: "weather",
          description: "The weather of a place.",
          input_schema: { type: "object", properties: { place: { type: "string" } }, required: ["place"] },
        },
      ],
      messages: [
        { role: "user", content: "Do my roses need water today?" },
        { role: "assistant", content: [{ type: "tool_use", id: "toolu_01", name: "weather", input: { place: "Lisbon" } }] },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_01", is_error: true, content: "no station answers" }] },
      ],
      stream: true,
    },
    null,
    2,
  ),
  answer: JSON.stringify(
    {
      id: "msg_01",
      type: "message",
      role: "assistant",
      model: "claude-sonnet-5-5",
      content: [
        { type: "thinking", thinking: "No station answers, so I judge by the season.", signature: "c2lnbmVk" },
        { type: "text", text: "Water them in the evening; it was dry all week." },
        { type: "tool_use", id: "toolu_02", name: "weather", input: { place: "Porto" } },
      ],
      stop_reason: "tool_use",
      stop_sequence: null,
      usage: { input_tokens: 420, cache_read_input_tokens: 128, cache_creation_input_tokens: 0, output_tokens: 61 },
    },
    null,
    2,
  ),
  stream: [
    ["message_start", { type: "message_start", message: { id: "msg_01", type: "message", role: "assistant", model: "claude-sonnet-5-5", content: [], stop_reason: null, stop_sequence: null, usage: { input_tokens: 420, output_tokens: 1 } } }],
    ["content_block_start", { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } }],
    ["content_block_delta", { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Water them " } }],
    ["content_block_delta", { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "in the evening." } }],
    ["content_block_stop", { type: "content_block_stop", index: 0 }],
    ["content_block_start", { type: "content_block_start", index: 1, content_block: { type: "tool_use", id: "toolu_02", name: "weather", input: {} } }],
    ["content_block_delta", { type: "content_block_delta", index: 1, delta: { type: "input_json_delta", partial_json: "{\"place\": \"Porto\"}" } }],
    ["content_block_stop", { type: "content_block_stop", index: 1 }],
    ["message_delta", { type: "message_delta", delta: { stop_reason: "tool_use", stop_sequence: null }, usage: { output_tokens: 34 } }],
    ["message_stop", { type: "message_stop" }],
  ]
    .map(([name, data]) => `event: ${String(name)}\ndata: ${JSON.stringify(data)}\n\n`)
    .join(""),
};
