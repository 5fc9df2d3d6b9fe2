// The gateway's side of the page: JSON over its own routes, and nothing from anywhere else.
import { signal } from "@preact/signals";
import { currencyInUse } from "./format";
import type { Session } from "./types";

export const API = "/inspector/api";

export const session = signal<Session | null>(null);
export const sessionError = signal("");

export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly document: unknown = null,
  ) {
    super(message);
  }

  /** What kind of error it is, as programs read it. */
  get code(): string {
    return (this.document as { error?: { code?: string } } | null)?.error?.code ?? "";
  }
}

export type Query = Record<string, string | number | boolean | null | undefined>;

export function address(path: string, query: Query = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== "" && value !== null && value !== undefined) search.set(name, String(value));
  const text = search.toString();
  return API + path + (text ? "?" + text : "");
}

export async function get<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
  return ask<T>("GET", address(path, query), undefined, signal);
}

export async function send<T>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  return ask<T>(method, API + path, body, signal);
}

async function ask<T>(method: string, url: string, body: unknown, signal?: AbortSignal): Promise<T> {
  const headers: Record<string, string> = { accept: "application/json" };
  if (body !== undefined) headers["content-type"] = "application/json";
  if (method !== "GET") headers["x-wireglot-csrf"] = session.value?.csrf ?? "";
  const init: RequestInit = { method, headers, credentials: "same-origin", cache: "no-store" };
  if (body !== undefined) init.body = JSON.stringify(body);
  if (signal) init.signal = signal;
  let response: Response;
  try {
    response = await fetch(url, init);
  } catch (problem) {
    if (problem instanceof DOMException && problem.name === "AbortError") throw problem;
    throw new ApiError(0, "The gateway does not answer. Is it still running?");
  }
  // Not by way of a text: a recorded exchange is megabytes.
  const document: unknown = await response.json().catch((problem: unknown) => {
    if (problem instanceof DOMException && problem.name === "AbortError") throw problem;
    return null;
  });
  if (!response.ok) {
    const reported = (document as { error?: { message?: unknown } } | null)?.error?.message;
    if (response.status === 401 && session.value && session.value.access !== "none" && !url.endsWith("/session")) {
      session.value = { ...session.value, access: "none" };
    }
    throw new ApiError(response.status, typeof reported === "string" ? reported : `The gateway answered ${response.status}.`, document);
  }
  return document as T;
}

export async function loadSession(): Promise<void> {
  try {
    const found = await get<Session>("/session");
    currencyInUse.value = found.currency || "USD";
    session.value = found;
    sessionError.value = "";
  } catch (problem) {
    sessionError.value = problem instanceof Error ? problem.message : String(problem);
    if (problem instanceof ApiError && (problem.status === 401 || problem.status === 403))
      session.value = { access: "none" };
  }
}

export function message(problem: unknown): string {
  return problem instanceof Error ? problem.message : String(problem);
}
