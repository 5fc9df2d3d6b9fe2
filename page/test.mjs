// Runs the unit tests of the page: bundles each by the esbuild that builds the page, and gives them to Node's own runner.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const target = mkdtempSync(join(tmpdir(), "page-tests-"));
try {
  await build({
    absWorkingDir: here,
    entryPoints: readdirSync(join(here, "tests")).filter((name) => name.endsWith(".test.ts")).map((name) => `tests/${name}`),
    outdir: target,
    outExtension: { ".js": ".mjs" },
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20",
    jsx: "automatic",
    jsxImportSource: "preact",
    sourcemap: "inline",
    logLevel: "warning",
  });
  const files = readdirSync(target).sort().map((name) => join(target, name));
  const { status } = spawnSync(process.execPath, ["--enable-source-maps", "--test", ...process.argv.slice(2), ...files], { stdio: "inherit" });
  process.exitCode = status ?? 1;
} finally {
  rmSync(target, { recursive: true, force: true });
}
