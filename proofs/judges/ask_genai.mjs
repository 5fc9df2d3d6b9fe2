// Sends recorded requests with @google/genai to an address; prints what the SDK reads, as one JSON document.
// Arguments: the SDK's folder, the file with the requests, the address.
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const [folder, file, baseUrl] = process.argv.slice(2);
const { GoogleGenAI } = await import(pathToFileURL(path.join(folder, 'dist/node/index.mjs')));
const client = new GoogleGenAI({ apiKey: 'k', httpOptions: { baseUrl } });
const told = [];
for (const { model, stream, body } of JSON.parse(fs.readFileSync(file))) {
  const { contents, generationConfig, ...config } = body;
  const parameters = { model, contents, config: { ...generationConfig, ...config } };
  try {
    const chunks = [];
    if (stream) {
      for await (const chunk of await client.models.generateContentStream(parameters)) chunks.push(chunk);
    } else {
      chunks.push(await client.models.generateContent(parameters));
    }
    told.push({ answers: chunks.map(({ sdkHttpResponse, automaticFunctionCallingHistory, ...rest }) => rest) });
  } catch (problem) {
    told.push({ status: problem.status ?? 0, message: problem.message });
  }
}
fs.writeFileSync(1, JSON.stringify(told));
