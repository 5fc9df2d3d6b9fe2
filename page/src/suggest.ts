// What may come next while a filter is typed: names of fields, and values that were seen. What it means is known to the
// server alone.

export interface FilterField {
  name: string;
  about: string;
  values?: string[];
}

export interface Suggestion {
  /** What takes the place of the word that is typed. */
  text: string;
  note: string;
}

export interface Suggestions {
  from: number;
  to: number;
  options: Suggestion[];
}

const MOST = 12;

/** Where the word begins that ends at the caret: spaces within quotes are part of it. */
function wordStart(text: string, caret: number): number {
  let start = 0;
  let quoted = false;
  for (let at = 0; at < caret; at++) {
    if (text[at] === "\\" && quoted) at++;
    else if (text[at] === '"') quoted = !quoted;
    else if (!quoted && /\s/.test(text[at] as string)) start = at + 1;
  }
  return start;
}

export function quoted(value: string): string {
  return /[\s",*]/.test(value) ? `"${value.replace(/[\\"]/g, "\\$&")}"` : value;
}

/** `seen`: values by the names of fields, besides those that the field names itself. */
export function suggestions(text: string, caret: number, fields: readonly FilterField[], seen: Readonly<Record<string, readonly string[] | undefined>>): Suggestions {
  const from = wordStart(text, caret);
  const word = text.slice(from, caret);
  const found = /^(-?)([A-Za-z_]*)(?:(:[<>]?=?~?)(.*))?$/s.exec(word);
  const none = { from, to: caret, options: [] };
  if (!found) return none;
  const [, not = "", name = "", colon, rest = ""] = found;
  if (colon === undefined) {
    const typed = name.toLowerCase();
    const begins = fields.filter((field) => field.name.startsWith(typed));
    const options = begins.slice(0, typed ? MOST : 30).map((field) => ({ text: `${not}${field.name}:`, note: field.about }));
    return { from, to: caret, options };
  }
  const field = fields.find((each) => each.name === name.toLowerCase());
  if (!field) return none;
  // Of several values, separated by commas, the last one is typed.
  const cut = colon === ":" ? rest.lastIndexOf(",") + 1 : 0;
  const typed = rest.slice(cut).replace(/^"/, "").toLowerCase();
  const values = [...new Set([...(field.values ?? []), ...(seen[field.name] ?? [])])];
  const near = values.filter((value) => value.toLowerCase().includes(typed) && value.toLowerCase() !== typed);
  near.sort((a, b) => Number(b.toLowerCase().startsWith(typed)) - Number(a.toLowerCase().startsWith(typed)));
  // A value that compares includes the operator.
  const options = near.slice(0, MOST).map((value) => ({ text: `${not}${field.name}${/^[<>]/.test(value) ? ":" : colon}${rest.slice(0, cut)}${/^[<>]/.test(value) ? value : quoted(value)}`, note: "" }));
  return { from, to: caret, options };
}

/** Whether the cursor is in the middle of a term: its value is still to come. */
export function isUnfinished(text: string): boolean {
  const word = text.slice(wordStart(text, text.length));
  return /^-?[A-Za-z_]+:([<>]=?|=|~)?("[^"]*)?$/.test(word);
}
