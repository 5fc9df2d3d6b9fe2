// Builds the page into src/wireglot/gateway/inspector/assets, the same bytes each time; with --check it compares
// what would be built with what is there, and fails where they differ.
import { build } from "esbuild";
import { minify } from "terser";
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, gzipSync } from "node:zlib";

const here = dirname(fileURLToPath(import.meta.url));
const target = join(here, "../src/wireglot/gateway/inspector/assets");
const LIMIT = 230_000; // compressed, all of it

const built = await build({
  absWorkingDir: here,
  entryPoints: { page: "src/main.tsx", worker: "src/json/worker.ts", feed: "src/feed/worker.ts" },
  outdir: target,
  bundle: true,
  splitting: true,
  format: "esm",
  target: ["es2022"],
  minify: true,
  charset: "utf8",
  legalComments: "none",
  metafile: true,
  write: false,
  jsx: "automatic",
  jsxImportSource: "preact",
  chunkNames: "chunk-[hash]",
  logLevel: "warning",
});

const files = new Map();
for (const file of built.outputFiles) files.set(relative(target, file.path), file.path.endsWith(".js") ? await smaller(file.text) : Buffer.from(file.contents));
for (const name of readdirSync(join(here, "static")).sort()) files.set(name, readFileSync(join(here, "static", name)));
files.set("LICENSES.txt", licences(built.metafile));

// It inlines and shortens what esbuild leaves: another 3 %.
async function smaller(text) {
  return Buffer.from((await minify(text, { module: true, format: { comments: false } })).code);
}

function licences(metafile) {
  // What is in the bundle, each with its licence: the terms ask for it.
  const packages = new Set();
  for (const input of Object.keys(metafile.inputs)) {
    const found = /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input);
    if (found) packages.add(found[1]);
  }
  const texts = [...packages].sort().map((name) => {
    const folder = join(here, "node_modules", name);
    const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
    const text = file ? readFileSync(join(folder, file), "utf8").trim() : "";
    return `${name} ${version} (${license})\n\n${text}\n`;
  });
  return Buffer.from(texts.join("\n----------------------------------------------------------------\n\n"));
}

let total = 0;
for (const [name, bytes] of [...files].sort(([a], [b]) => (a < b ? -1 : 1))) {
  const small = gzipSync(bytes, { level: 9 }).length;
  if (/\.(js|css|html)$/.test(name)) total += small;
  console.log(
    `${name.padEnd(20)} ${String(bytes.length).padStart(8)} bytes ${String(small).padStart(7)} gzip ` +
      `${String(brotliCompressSync(bytes).length).padStart(7)} brotli`,
  );
}
console.log(`all of the page      ${String(total).padStart(24)} gzip`);
if (total > LIMIT) {
  console.error(`the page is larger than ${LIMIT} bytes`);
  process.exit(1);
}

if (process.argv.includes("--check")) {
  const there = new Set(readdirSync(target));
  const wrong = [...files].filter(([name, bytes]) => !there.has(name) || !readFileSync(join(target, name)).equals(bytes));
  const left = [...there].filter((name) => !files.has(name));
  if (wrong.length || left.length) {
    console.error(`not what is built: ${[...wrong.map(([name]) => name), ...left].sort().join(", ")}: run make page`);
    process.exit(1);
  }
  console.log("what is shipped is what is built");
} else {
  rmSync(target, { recursive: true, force: true });
  mkdirSync(target, { recursive: true });
  for (const [name, bytes] of files) writeFileSync(join(target, name), bytes);
}
