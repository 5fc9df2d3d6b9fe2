// Loaded before each test file of an SDK. The answers of a test's own `fetch` become those of an upstream, and
// the SDK gets what the gateway makes of them; the test's `fetch` gets the body that arrived upstream.
import fs from 'node:fs';
import http from 'node:http';
import { Readable } from 'node:stream';

const { GATEWAY_URL, UPSTREAM_PORT, JUDGED_TESTS } = process.env;
const GENERATES = /\/(chat\/completions|responses|messages)$/;
const network = globalThis.fetch;
const waiting = [];
const wrapped = new WeakSet();
let upstream;

function listen() {
  upstream ??= new Promise((resolve, reject) => {
    const server = http.createServer(answer);
    server.on('error', reject);
    server.listen(Number(UPSTREAM_PORT), '127.0.0.1', () => resolve(server));
  });
  return upstream;
}

async function answer(request, response) {
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  // None: the gateway tries again what the test's `fetch` has thrown at.
  const { inner, url, init } = waiting.shift() ?? {};
  if (inner === undefined) return request.socket.destroy();
  let given;
  try {
    given = await inner(url, { ...init, body: Buffer.concat(pieces).toString() });
  } catch (problem) {
    if (!response.destroyed) request.socket.destroy();
    return;
  }
  const headers = Object.fromEntries(given.headers);
  delete headers['transfer-encoding'];
  delete headers['content-length'];
  // The recorded streams of some tests are labelled as JSON.
  if (given.ok && JSON.parse(String(init.body)).stream) headers['content-type'] = 'text/event-stream';
  response.writeHead(given.status, headers);
  if (given.body === null) return response.end();
  const body = given.body instanceof Readable ? given.body : Readable.fromWeb(given.body);
  body.on('error', () => response.destroy());
  response.on('close', () => body.destroy());
  body.pipe(response);
}

function throughGateway(inner) {
  return async (url, init) => {
    const { pathname } = new URL(typeof url === 'string' ? url : url.url ?? String(url));
    if (init?.method !== 'POST' || !GENERATES.test(pathname) || typeof init.body !== 'string') return inner(url, init);
    await listen();
    fs.appendFileSync(JUDGED_TESTS, `${expect.getState().currentTestName}\n`);
    const exchange = { inner, url, init };
    waiting.push(exchange);
    try {
      return await network(GATEWAY_URL + (pathname.startsWith('/v1/') ? pathname : `/v1${pathname}`), init);
    } finally {
      if (waiting.includes(exchange)) waiting.splice(waiting.indexOf(exchange), 1);
    }
  };
}

// After the test file has replaced modules of the SDK, if it does.
beforeAll(async () => {
  const sdk = await import('SDK');
  const { prototype } = sdk.BaseAnthropic ?? sdk.OpenAI;
  const original = prototype.fetchWithTimeout;
  prototype.fetchWithTimeout = function (...given) {
    if (!wrapped.has(this) && this.fetch !== network) {
      wrapped.add(this);
      this.fetch = throughGateway(this.fetch);
    }
    return original.apply(this, given);
  };
});

afterAll(async () => {
  if (upstream === undefined) return;
  const server = await upstream;
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});
