// What applications do with the libraries that they call models with. Prints [{name, problem}], as one JSON document.
// Arguments: the folder with node_modules, the gateway's address, the models, separated by commas.
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const [folder, url, names] = process.argv.slice(2);
const { resolve } = createRequire(path.join(path.resolve(folder), 'package.json'));
const load = async (name) => import(pathToFileURL(resolve(name)));
const { generateText, stepCountIs, streamText, Output, tool } = await load('ai');
const { createGoogleGenerativeAI } = await load('@ai-sdk/google');
const { GoogleGenAI } = await load('@google/genai');
const { Ollama } = await load('ollama');
const { z } = await load('zod');

const google = createGoogleGenerativeAI({ baseURL: `${url}/v1beta`, apiKey: 'k' });
const genai = new GoogleGenAI({ apiKey: 'k', httpOptions: { baseUrl: url } });
const ollama = new Ollama({ host: url });
const WEATHER = 'What is the weather in Paris?';
const SCHEMA = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const RESULT = '24 degrees and a purple sky';
const found = [];

function expect(holds, seen) {
  if (!holds) throw new Error(`got ${JSON.stringify(seen)}`.slice(0, 300));
}

const get_weather = tool({
  description: 'The weather of a city',
  inputSchema: z.object({ city: z.string() }),
  execute: async () => RESULT,
});

function aiSdk(make) {
  return {
    async text(model) {
      const { text, finishReason, usage } = await generateText({ model: make(model), prompt: 'Hello there', maxRetries: 0 });
      expect(text.startsWith('Hello! I am demo') && finishReason === 'stop', { text, finishReason });
      expect(usage.inputTokens > 0 && usage.outputTokens > 0, usage);
    },
    async stream(model) {
      const problems = [];
      const onError = ({ error }) => problems.push(String(error));
      const result = streamText({ model: make(model), prompt: 'Hello there', maxRetries: 0, onError });
      const pieces = [];
      for await (const piece of result.textStream) pieces.push(piece);
      expect(pieces.length > 3 && pieces.join('').startsWith('Hello! I am demo'), { pieces, problems });
      expect((await result.finishReason) === 'stop', await result.finishReason);
    },
    async tools(model) {
      const asked = { model: make(model), prompt: WEATHER, tools: { get_weather }, stopWhen: stepCountIs(3), maxRetries: 0 };
      const { text, steps } = await generateText(asked);
      expect(steps.length === 2 && text.includes(RESULT), { text, steps: steps.length });
    },
    async streamedTools(model) {
      const result = streamText({ model: make(model), prompt: WEATHER, tools: { get_weather }, stopWhen: stepCountIs(3), maxRetries: 0 });
      const text = await result.text;
      expect((await result.steps).length === 2 && text.includes(RESULT), text);
    },
    async object(model) {
      const output = Output.object({ schema: z.object({ name: z.string(), size: z.number() }) });
      const result = await generateText({ model: make(model), prompt: 'A river', output, maxRetries: 0 });
      expect(typeof result.output.name === 'string' && typeof result.output.size === 'number', result.output);
    },
    async error(model) {
      const failed = await generateText({ model: make(model), prompt: '[[demo:fail 429]]', maxRetries: 0 }).catch((each) => each);
      expect(failed.statusCode === 429 && failed.message, { status: failed.statusCode, message: failed.message });
    },
  };
}

const clients = {
  'ai-sdk generateContent': aiSdk((model) => google(model)),
  'ai-sdk interactions': {
    ...aiSdk((model) => google.interactions(model)),
    async chain(model) {
      const first = await generateText({ model: google.interactions(model), prompt: 'Hello there', maxRetries: 0 });
      const { interactionId } = first.providerMetadata.google;
      expect(interactionId, first.providerMetadata);
      const providerOptions = { google: { previousInteractionId: interactionId } };
      const next = await generateText({ model: google.interactions(model), prompt: 'And more', providerOptions, maxRetries: 0 });
      expect(next.usage.inputTokens > first.usage.inputTokens, [first.usage, next.usage]);
    },
  },
  'js-genai interactions': {
    async text(model) {
      const whole = await genai.interactions.create({ model, input: 'Hello there' });
      expect(whole.status === 'completed' && whole.output_text.startsWith('Hello! I am demo'), whole);
    },
    async stream(model) {
      const kinds = [];
      let text = '';
      for await (const event of await genai.interactions.create({ model, input: 'Hello there', stream: true })) {
        kinds.push(event.event_type);
        if (event.event_type === 'step.delta' && event.delta.type === 'text') text += event.delta.text;
      }
      expect(kinds.at(-1) === 'interaction.completed' && text.startsWith('Hello! I am demo'), { kinds, text });
    },
    async tools(model) {
      const tools = [{ type: 'function', name: 'get_weather', description: 'The weather of a city', parameters: SCHEMA }];
      const asked = await genai.interactions.create({ model, input: WEATHER, tools });
      const call = asked.steps.find((step) => step.type === 'function_call');
      expect(asked.status === 'requires_action' && call?.arguments.city, asked);
      const input = [{ type: 'function_result', call_id: call.id, name: call.name, result: RESULT }];
      const told = await genai.interactions.create({ model, input, tools, previous_interaction_id: asked.id });
      expect(told.output_text.includes(RESULT), told);
    },
    async stored(model) {
      const { id } = await genai.interactions.create({ model, input: 'Hello there' });
      const kept = await genai.interactions.get(id, { include_input: true });
      expect(kept.id === id && kept.status === 'completed', kept);
      await genai.interactions.delete(id);
      const gone = await genai.interactions.get(id).catch((each) => each);
      expect((gone.status ?? gone.statusCode) === 404, String(gone));
    },
    async background(model) {
      let kept = await genai.interactions.create({ model, input: 'Hello there', background: true });
      for (let n = 0; n < 200 && kept.status === 'in_progress'; n++) {
        await new Promise((done) => setTimeout(done, 50));
        kept = await genai.interactions.get(kept.id);
      }
      expect(kept.status === 'completed', kept);
    },
  },
  ollama: {
    async text(model) {
      const whole = await ollama.chat({ model, messages: [{ role: 'user', content: 'Hello there' }] });
      expect(whole.done && whole.message.content.startsWith('Hello! I am demo') && whole.eval_count > 0, whole);
    },
    async stream(model) {
      const pieces = [];
      for await (const piece of await ollama.chat({ model, messages: [{ role: 'user', content: 'Hello there' }], stream: true })) pieces.push(piece);
      const text = pieces.map((piece) => piece.message.content).join('');
      expect(pieces.at(-1).done_reason === 'stop' && text.startsWith('Hello! I am demo'), text);
    },
    async tools(model) {
      const tools = [{ type: 'function', function: { name: 'get_weather', description: 'The weather of a city', parameters: SCHEMA } }];
      const messages = [{ role: 'user', content: WEATHER }];
      const { message } = await ollama.chat({ model, messages, tools });
      expect(message.tool_calls?.[0].function.arguments.city, message);
      messages.push(message, { role: 'tool', tool_name: 'get_weather', content: RESULT });
      const told = await ollama.chat({ model, messages, tools });
      expect(told.message.content.includes(RESULT), told);
    },
    async generate(model) {
      const { response } = await ollama.generate({ model, prompt: 'Hello there', system: 'Be brief.' });
      expect(response.startsWith('Hello! I am demo'), response);
    },
    async format(model) {
      const { message } = await ollama.chat({ model, messages: [{ role: 'user', content: 'A river' }], format: SCHEMA });
      expect(typeof JSON.parse(message.content).city === 'string', message);
    },
    async error(model) {
      const failed = await ollama.chat({ model, messages: [{ role: 'user', content: '[[demo:fail 429]]' }] }).catch((each) => each);
      expect(failed.status_code === 429, { status: failed.status_code, message: failed.message });
    },
    async lists(model) {
      const { models } = await ollama.list();
      expect(models.some((each) => each.name.startsWith(model)), models.map((each) => each.name));
      expect((await ollama.show({ model })).capabilities.includes('tools'), 'show');
      expect((await ollama.version()).version, 'version');
    },
    async embed() {
      const { embeddings } = await ollama.embed({ model: 'demo-embedding', input: ['a', 'b'] });
      expect(embeddings.length === 2 && embeddings[0].length > 8, embeddings.length);
    },
  },
};

for (const [client, cases] of Object.entries(clients)) {
  for (const [name, run] of Object.entries(cases)) {
    for (const model of names.split(',')) {
      let problem = '';
      try {
        await run(model);
      } catch (error) {
        problem = `${error.name}: ${error.message}`;
      }
      found.push({ name: `${client} ${name} ${model}`, problem });
    }
  }
}
fs.writeFileSync(1, JSON.stringify(found));
process.exit(0);
