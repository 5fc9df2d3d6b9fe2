// Loaded before each test file of an SDK. Tests name stored objects that only the vendor's mock has: before each
// such request one is made at the gateway, and its id takes the place of the example's.
const network = globalThis.fetch;
const base = process.env.TEST_API_BASE_URL;

async function make(path, body) {
  const options = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
  return (await network(base + path, options)).json();
}

const EXAMPLES = [
  [/resp_677efb\w+|resp_123|\bresponse_id\b/, async (url) => {
    const background = new URL(url).pathname.endsWith('/cancel');
    return (await make('/responses', { model: 'demo', input: 'Hello', store: true, background })).id;
  }],
  [/conv_123/, async () => (await make('/conversations', { items: [{ type: 'message', role: 'user', content: 'Hello' }] })).id],
];

globalThis.fetch = async (url, init) => {
  let address = String(url.url ?? url);
  let body = init?.body;
  for (const [example, create] of EXAMPLES) {
    const named = address.match(example) ?? (typeof body === 'string' ? body.match(example) : null);
    if (named === null) continue;
    const id = await create(address);
    address = address.replaceAll(named[0], id);
    if (typeof body === 'string') body = body.replaceAll(named[0], id);
    const items = address.match(/\/conversations\/[^/]+\/items\/(msg_abc|item_id)/);
    if (items !== null) {
      const { data } = await (await network(`${base}/conversations/${id}/items`)).json();
      address = address.replace(items[1], data[0].id);
    }
  }
  return network(address, { ...init, body });
};
