// What a field may hold, and which of it fits what is typed.
export interface Option {
  id: string;
  note?: string;
}

/** Those with all words that are typed, in any order; those that begin with them first. Nothing typed: all of them. */
export function matching(options: readonly Option[], typed: string): readonly Option[] {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return options;
  const text = words.join(" ");
  const found = options.filter((each) => words.every((word) => each.id.toLowerCase().includes(word)));
  const begins = (each: Option) => each.id.toLowerCase().startsWith(text);
  return [...found.filter(begins), ...found.filter((each) => !begins(each))];
}

/** Of a text with commas between them. */
export const namesOf = (text: string): string[] => text.split(",").map((each) => each.trim()).filter(Boolean);

/** What the last name of such a text may be, each with the names before it. */
export function listOptions(text: string, names: readonly string[]): Option[] {
  const before = namesOf(text.slice(0, text.lastIndexOf(",") + 1));
  return names.filter((name) => !before.includes(name)).map((name) => ({ id: [...before, name].join(", ") }));
}
