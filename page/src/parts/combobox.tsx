// A field with a list of what it may hold: any text, or one of the options, by keyboard, pointer or screen reader
// (the combobox pattern of the ARIA practices). The list is all of them until one types.
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { type Option, matching } from "../options";
import { plural } from "../format";

interface Props {
  label: string;
  /** The name of the list. */
  list: string;
  value: string;
  options: readonly Option[];
  /** What is typed, too, soon after it is. */
  choose: (value: string) => void;
  placeholder?: string;
  /** Whether what was chosen stays in the field; else it is empty again, for the next one. */
  keeps?: boolean;
}

/** Lines that are drawn: the rest is found by typing. */
const MAX_SHOWN = 1000;
const LIST_PIXELS = 320;
const MARGIN_PIXELS = 12;
const SOON_MS = 400;

export function Combobox({ label, list: named, value, options, choose, placeholder = "", keeps = true }: Props) {
  const [typed, setTyped] = useState<string | null>(null);
  const [open, setOpen] = useState(false);
  const [active, setActive] = useState(-1);
  const timer = useRef(0);
  const list = useRef<HTMLDivElement>(null);
  const box = useRef<HTMLDivElement>(null);
  /** On which side of the field there is room for the list, and how much. */
  const [room, setRoom] = useState({ above: false, pixels: LIST_PIXELS });
  const id = useId();
  const found = matching(options, typed ?? "");
  const shown = found.slice(0, MAX_SHOWN);
  useEffect(() => () => clearTimeout(timer.current), []);
  useLayoutEffect(() => {
    const place = box.current?.getBoundingClientRect();
    if (!open || !place) return;
    const [over, under] = [place.top - MARGIN_PIXELS, innerHeight - place.bottom - MARGIN_PIXELS];
    const above = under < LIST_PIXELS && over > under;
    setRoom({ above, pixels: Math.max(120, Math.min(LIST_PIXELS, above ? over : under)) });
  }, [open]);
  useEffect(() => {
    list.current?.children[active]?.scrollIntoView({ block: "nearest" });
  }, [active, open]);

  const close = () => {
    clearTimeout(timer.current);
    setOpen(false);
    setActive(-1);
    setTyped(null);
  };
  const take = (text: string) => {
    close();
    if ((text || keeps) && text !== value) choose(text);
  };
  const show = () => {
    setOpen(true);
    setActive(typed === null ? shown.findIndex((each) => each.id === value) : -1);
  };
  const leave = () => {
    if (!open && typed === null) return;
    if (keeps && typed !== null) take(typed.trim());
    else close();
  };
  const move = (event: KeyboardEvent, to: number) => {
    event.preventDefault();
    if (!open) show();
    else if (shown.length) setActive((to + shown.length) % shown.length);
  };
  const keys = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown") move(event, active + 1);
    else if (event.key === "ArrowUp") move(event, active < 0 ? shown.length - 1 : active - 1);
    else if (event.key === "PageDown") move(event, Math.min(shown.length - 1, active + 10));
    else if (event.key === "PageUp") move(event, Math.max(0, active - 10));
    else if (event.key === "Enter") {
      event.preventDefault();
      take(shown[active]?.id ?? (keeps || shown.length !== 1 ? (typed ?? "").trim() : (shown[0]?.id ?? "")));
    } else if (event.key === "Escape" && open) {
      event.preventDefault();
      event.stopPropagation();
      close();
    } else if (event.key === "Tab") leave();
  };
  return (
    <div ref={box} class="combobox">
      <label for={`${id}-field`}>{label}</label>
      <input
        id={`${id}-field`}
        type="text"
        role="combobox"
        aria-expanded={open}
        aria-controls={`${id}-list`}
        aria-autocomplete="list"
        aria-activedescendant={open && active >= 0 ? `${id}-${active}` : undefined}
        autocomplete="off"
        spellcheck={false}
        placeholder={placeholder}
        value={typed ?? (keeps ? value : "")}
        onFocus={(event) => event.currentTarget.select()}
        onClick={show}
        onKeyDown={keys}
        onInput={(event) => {
          const text = event.currentTarget.value;
          setTyped(text);
          setActive(-1);
          setOpen(true);
          clearTimeout(timer.current);
          // What is typed takes effect before the field loses focus.
          if (keeps && text.trim()) timer.current = window.setTimeout(() => choose(text.trim()), options.some((each) => each.id === text.trim()) ? 0 : SOON_MS);
        }}
        onBlur={leave}
      />
      <div ref={list} id={`${id}-list`} class={room.above ? "above" : undefined} style={{ maxHeight: `${room.pixels}px` }} role="listbox" aria-label={named} hidden={!open || !shown.length}>
        {open
          ? shown.map((each, index) => (
              // The field keeps the focus: what is pressed here is chosen before it is left.
              <div key={each.id} id={`${id}-${index}`} role="option" aria-selected={index === active} onPointerDown={(event) => event.preventDefault()} onClick={() => take(each.id)}>
                <span>{each.id}</span>
                {each.note ? <span class="faint">{each.note}</span> : null}
              </div>
            ))
          : null}
      </div>
      <span role="status" class="unseen">
        {open ? (found.length > shown.length ? `${plural(found.length, "option")}, type to narrow them down` : plural(found.length, "option")) : ""}
      </span>
    </div>
  );
}
