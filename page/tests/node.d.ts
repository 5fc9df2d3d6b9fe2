// What the tests use of Node: its whole types would be one more dependency, and would be seen by the page's own files.
declare module "node:test" {
  export function test(name: string, body: () => void | Promise<void>): void;
  export function beforeEach(body: () => void): void;
  export function afterEach(body: () => void): void;
  export const mock: { timers: { enable(options: { apis: string[] }): void; tick(ms: number): void; reset(): void } };
}
declare module "node:assert/strict" {
  interface Assert {
    (value: unknown, message?: string): asserts value;
    equal(actual: unknown, expected: unknown, message?: string): void;
    deepEqual(actual: unknown, expected: unknown, message?: string): void;
    throws(body: () => unknown, expected?: RegExp | ((fault: unknown) => boolean)): void;
    ok(value: unknown, message?: string): asserts value;
  }
  const assert: Assert;
  export default assert;
}
declare module "node:fs" {
  export function readdirSync(path: string): string[];
  export function readFileSync(path: string, encoding: "utf8"): string;
}
