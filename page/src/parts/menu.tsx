// A button that opens a small panel under itself; Escape, a click elsewhere and leaving it close it.
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

interface Props {
  label: ComponentChildren;
  name: string;
  disabled?: boolean;
  /** `close` may be called by what is in it. */
  children: (close: () => void) => ComponentChildren;
}

export function Menu({ label, name, disabled = false, children }: Props) {
  const [open, setOpen] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  // With the panel, not after it: Escape pressed at once would close what is under it.
  useLayoutEffect(() => {
    if (!open) return;
    const outside = (event: Event) => {
      if (!box.current?.contains(event.target as Node)) setOpen(false);
    };
    // Wherever the focus is: not every browser gives it to a button that is clicked.
    const closeOnEscape = (event: KeyboardEvent) => {
      if (event.key !== "Escape") return;
      event.preventDefault();
      event.stopPropagation();
      close();
    };
    addEventListener("pointerdown", outside);
    addEventListener("focusin", outside);
    addEventListener("keydown", closeOnEscape, true);
    return () => {
      removeEventListener("pointerdown", outside);
      removeEventListener("focusin", outside);
      removeEventListener("keydown", closeOnEscape, true);
    };
  }, [open]);
  const close = () => {
    setOpen(false);
    button.current?.focus();
  };
  return (
    <div ref={box} class="menu">
      <button ref={button} type="button" aria-expanded={open} disabled={disabled} onClick={() => setOpen(!open)}>
        {label} <span aria-hidden="true">▾</span>
      </button>
      {open ? (
        <div class="menu-panel" role="group" aria-label={name}>
          {children(close)}
        </div>
      ) : null}
    </div>
  );
}
