// The field for filters and words, with suggestions under it (the combobox pattern of the ARIA practices).
import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { get } from "../api";
import { seen } from "../rows";
import { type FilterField, isUnfinished, suggestions } from "../suggest";

const SOON_MS = 250;

interface Props {
  field: RefObject<HTMLInputElement | null>;
  value: string;
  apply: (text: string) => void;
}

export function FilterBox({ field, value, apply }: Props) {
  const [fields, setFields] = useState<FilterField[]>([]);
  const [typed, setTyped] = useState<string | null>(null);
  const [caret, setCaret] = useState(0);
  const [open, setOpen] = useState(false);
  const [active, setActive] = useState(-1);
  const timer = useRef(0);
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => () => clearTimeout(timer.current), []);
  useEffect(() => {
    list.current?.children[active]?.scrollIntoView({ block: "nearest" });
  }, [active]);
  const text = typed ?? value;
  const found = open ? suggestions(text, Math.min(caret, text.length), fields, seen.value) : null;
  const options = found?.options ?? [];

  const begin = () => {
    setOpen(true);
    setCaret(field.current?.selectionEnd ?? text.length);
    if (!fields.length) void get<{ fields: FilterField[] }>("/fields").then((answer) => setFields(answer.fields)).catch(() => undefined);
  };
  const type = (changed: string, at: number) => {
    setTyped(changed);
    setCaret(at);
    setActive(-1);
    setOpen(true);
    clearTimeout(timer.current);
    if (!isUnfinished(changed)) timer.current = window.setTimeout(() => apply(changed), SOON_MS);
  };
  const take = (index: number) => {
    const option = options[index];
    if (!found || !option) return;
    const ends = option.text.endsWith(":") || /^\S/.test(text.slice(found.to)) ? "" : " ";
    const before = text.slice(0, found.from) + option.text + ends;
    type(before + text.slice(found.to).replace(/^\s+/, ""), before.length);
    requestAnimationFrame(() => field.current?.setSelectionRange(before.length, before.length));
  };
  const finish = () => {
    clearTimeout(timer.current);
    setOpen(false);
    setActive(-1);
    if (typed !== null && typed !== value) apply(typed);
    setTyped(null);
  };
  const keys = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown" && options.length) setActive((active + 1) % options.length);
    else if (event.key === "ArrowUp" && options.length) setActive((active <= 0 ? options.length : active) - 1);
    else if ((event.key === "Enter" || event.key === "Tab") && active >= 0) take(active);
    else if (event.key === "Enter") {
      clearTimeout(timer.current);
      setOpen(false);
      apply(text);
      return;
    } else if (event.key === "Escape" && options.length) {
      setOpen(false);
      setActive(-1);
    } else return;
    event.preventDefault();
  };
  return (
    <div class="search">
      <label class="unseen" for="search">Search exchanges</label>
      <input
        id="search"
        ref={field}
        data-search
        type="text"
        role="combobox"
        aria-expanded={open && options.length > 0}
        aria-controls="search-suggestions"
        aria-autocomplete="list"
        aria-activedescendant={active >= 0 ? `search-suggestion-${active}` : undefined}
        autocomplete="off"
        spellcheck={false}
        placeholder="Filter: client:codex status:>=400, or words  ( / )"
        title="Words are searched in rows, and in bodies where they are recorded"
        value={text}
        onFocus={begin}
        onClick={begin}
        onKeyDown={keys}
        onInput={(event) => type(event.currentTarget.value, event.currentTarget.selectionEnd ?? event.currentTarget.value.length)}
        onBlur={finish}
      />
      <div ref={list} id="search-suggestions" class="suggestions" role="listbox" aria-label="Suggestions" hidden={!options.length}>
        {options.map((each, index) => (
          <div key={each.text} id={`search-suggestion-${index}`} role="option" aria-selected={index === active} onPointerDown={(event) => event.preventDefault()} onClick={() => take(index)}>
            <code>{each.text}</code>
            <span class="faint">{each.note}</span>
          </div>
        ))}
      </div>
    </div>
  );
}
