// Two tool loops with a vendor's own SDK, one whole and one streamed: node vendor_sdk.mjs PROVIDER
// It prints what the model said last.
import { readFileSync } from 'node:fs';

const { WIREGLOT_URL: url, WIREGLOT_KEY: apiKey, WIREGLOT_PROMPT: prompt } = process.env;
const name = 'get_marker';
const description = 'Read the marker file at a path and return its content';
const schema = {
  type: 'object',
  properties: { path: { type: 'string' } },
  required: ['path'],
  additionalProperties: false,
};
const marker = ({ path }) => readFileSync(path, 'utf8').trim();

function expect(condition, about) {
  if (!condition) throw new Error(JSON.stringify(about));
}

// Each gives the two turns, and what a turn leaves behind: its calls, the messages to add, its text.
const loops = {
  async 'openai-chat'() {
    const { default: OpenAI } = await import('openai');
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 });
    const tools = [{ type: 'function', function: { name, description, parameters: schema, strict: true } }];
    const asked = (messages) => ({ model: 'gpt-4.1-mini', messages, tools });
    return {
      first: { role: 'user', content: prompt },
      whole: async (messages) => {
        const answer = await client.chat.completions.create(asked(messages));
        expect(answer.usage.total_tokens > 0, answer);
        return answer.choices[0].message;
      },
      streamed: async (messages) => {
        const stream = client.chat.completions.stream({
          ...asked(messages),
          stream_options: { include_usage: true },
        });
        // No field of OpenAI's own: the SDK does not join its pieces.
        let reasoning = '';
        for await (const chunk of stream) reasoning += chunk.choices[0]?.delta.reasoning_content ?? '';
        const answer = await stream.finalChatCompletion();
        expect(answer.usage.total_tokens > 0, answer);
        return { ...answer.choices[0].message, reasoning_content: reasoning };
      },
      calls: (message) => message.tool_calls ?? [],
      answered: (message, calls) => [
        message,
        ...calls.map((call) => ({
          role: 'tool',
          tool_call_id: call.id,
          content: marker(JSON.parse(call.function.arguments)),
        })),
      ],
      text: (message) => message.content,
    };
  },
  async 'openai-responses'() {
    const { default: OpenAI } = await import('openai');
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 });
    const tools = [{ type: 'function', name, description, parameters: schema, strict: true }];
    const asked = (input) => ({
      model: 'gpt-5.5',
      input,
      tools,
      store: false,
      include: ['reasoning.encrypted_content'],
    });
    return {
      first: { role: 'user', content: prompt },
      whole: (input) => client.responses.create(asked(input)),
      streamed: async (input) => {
        const stream = client.responses.stream({ ...asked(input), reasoning: { effort: 'low', summary: 'auto' } });
        for await (const _ of stream);
        return stream.finalResponse();
      },
      calls: (answer) => answer.output.filter((item) => item.type === 'function_call'),
      answered: (answer, calls) => [
        ...answer.output.map(({ parsed_arguments, ...item }) => item),
        ...calls.map((call) => ({
          type: 'function_call_output',
          call_id: call.call_id,
          output: marker(JSON.parse(call.arguments)),
        })),
      ],
      text: (answer) => {
        expect(answer.usage.total_tokens > 0, answer);
        return answer.output_text;
      },
    };
  },
  async anthropic() {
    const { default: Anthropic } = await import('@anthropic-ai/sdk');
    const client = new Anthropic({ baseURL: url, apiKey, maxRetries: 0 });
    const tools = [{ name, description, input_schema: schema }];
    const asked = (messages) => ({ model: 'claude-sonnet-4-5', max_tokens: 4000, messages, tools });
    return {
      first: { role: 'user', content: prompt },
      whole: (messages) => client.messages.create(asked(messages)),
      streamed: (messages) =>
        client.messages
          .stream({ ...asked(messages), thinking: { type: 'enabled', budget_tokens: 1024 } })
          .finalMessage(),
      calls: (message) => message.content.filter((block) => block.type === 'tool_use'),
      answered: (message, calls) => [
        { role: 'assistant', content: message.content },
        {
          role: 'user',
          content: calls.map((call) => ({
            type: 'tool_result',
            tool_use_id: call.id,
            content: marker(call.input),
          })),
        },
      ],
      text: (message) => {
        expect(message.usage.output_tokens > 0 && message.stop_reason === 'end_turn', message);
        return message.content.map((block) => (block.type === 'text' ? block.text : '')).join('');
      },
    };
  },
  async google() {
    const { GoogleGenAI } = await import('@google/genai');
    const client = new GoogleGenAI({ apiKey, httpOptions: { baseUrl: url } });
    const config = {
      tools: [{ functionDeclarations: [{ name, description, parametersJsonSchema: schema }] }],
      thinkingConfig: { includeThoughts: true },
    };
    const asked = (contents) => ({ model: 'gemini-2.5-flash', contents, config });
    return {
      first: { role: 'user', parts: [{ text: prompt }] },
      whole: async (contents) => {
        const answer = await client.models.generateContent(asked(contents));
        expect(answer.usageMetadata.totalTokenCount > 0, answer);
        return answer.candidates[0].content;
      },
      streamed: async (contents) => {
        const parts = [];
        for await (const chunk of await client.models.generateContentStream(asked(contents))) {
          parts.push(...(chunk.candidates?.[0]?.content?.parts ?? []));
        }
        return { role: 'model', parts };
      },
      calls: (content) => content.parts.flatMap((part) => part.functionCall ?? []),
      answered: (content, calls) => [
        content,
        {
          role: 'user',
          parts: calls.map((call) => ({
            functionResponse: { id: call.id, name: call.name, response: { output: marker(call.args) } },
          })),
        },
      ],
      text: (content) => content.parts.map((part) => (part.thought ? '' : (part.text ?? ''))).join(''),
    };
  },
  async ollama() {
    const { Ollama } = await import('ollama');
    const client = new Ollama({ host: url, headers: { Authorization: `Bearer ${apiKey}` } });
    const tools = [{ type: 'function', function: { name, description, parameters: schema } }];
    const asked = (messages) => ({ model: 'qwen3', messages, tools });
    return {
      first: { role: 'user', content: prompt },
      whole: async (messages) => {
        const answer = await client.chat(asked(messages));
        expect(answer.done && answer.eval_count > 0, answer);
        return answer.message;
      },
      streamed: async (messages) => {
        const said = { role: 'assistant', content: '', thinking: '', tool_calls: [] };
        let last;
        for await (const chunk of await client.chat({ ...asked(messages), stream: true, think: true })) {
          said.content += chunk.message.content ?? '';
          said.thinking += chunk.message.thinking ?? '';
          said.tool_calls.push(...(chunk.message.tool_calls ?? []));
          last = chunk;
        }
        expect(last.done && last.eval_count > 0, last);
        return said;
      },
      calls: (message) => message.tool_calls ?? [],
      answered: (message, calls) => [
        message,
        ...calls.map((call) => ({
          role: 'tool',
          tool_name: call.function.name,
          content: marker(call.function.arguments),
        })),
      ],
      text: (message) => message.content,
    };
  },
};

const loop = await loops[process.argv[2]]();
for (const turn of [loop.whole, loop.streamed]) {
  const history = [loop.first];
  const answer = await turn(history);
  const calls = loop.calls(answer);
  expect(calls.length, answer);
  console.log(loop.text(await turn([...history, ...loop.answered(answer, calls)])));
}
