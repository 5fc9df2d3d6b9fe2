// Two tool loops with the Vercel AI SDK, one whole and one streamed: node ai_sdk.mjs PROVIDER
// It prints what the model said last. The AI SDK checks each answer against its own schema (zod).
import { readFileSync } from 'node:fs';
import * as ai from 'ai';
import { createAnthropic } from '@ai-sdk/anthropic';
import * as google from '@ai-sdk/google';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { z } from 'zod';

const { generateText, streamText, tool } = ai;
// Version 7 renamed these two.
const stepCount = ai.isStepCount ?? ai.stepCountIs;
const createGoogle = google.createGoogle ?? google.createGoogleGenerativeAI;
const { WIREGLOT_URL: url, WIREGLOT_KEY: apiKey, WIREGLOT_PROMPT: prompt } = process.env;
const baseURL = `${url}/v1`;

const models = {
  'openai-compatible': () =>
    createOpenAICompatible({ name: 'wireglot', baseURL, apiKey, includeUsage: true })('my-model'),
  'openai-chat': () => createOpenAI({ baseURL, apiKey }).chat('gpt-4.1-mini'),
  openai: () => createOpenAI({ baseURL, apiKey })('gpt-5.5'),
  anthropic: () => createAnthropic({ baseURL, apiKey })('claude-sonnet-4-5'),
  google: () => createGoogle({ baseURL: `${url}/v1beta`, apiKey })('gemini-2.5-flash'),
};

const tools = {
  get_marker: tool({
    description: 'Read the marker file at a path and return its content',
    inputSchema: z.object({ path: z.string() }),
    execute: async ({ path }) => readFileSync(path, 'utf8').trim(),
  }),
};

const request = { model: models[process.argv[2]](), tools, prompt, stopWhen: stepCount(4), maxRetries: 0 };

function check(usage, steps) {
  if (steps.length !== 2) throw new Error(`${steps.length} turns instead of two`);
  if (!(usage.inputTokens > 0 && usage.outputTokens > 0)) throw new Error(`no usage: ${JSON.stringify(usage)}`);
}

const whole = await generateText(request);
check(whole.usage, whole.steps);
console.log(whole.text);

let failure;
const streamed = streamText({ ...request, onError: ({ error }) => { failure ??= error; } });
let text = '';
for await (const delta of streamed.textStream) text += delta;
if (failure) throw failure;
check(await streamed.usage, await streamed.steps);
console.log(text);
