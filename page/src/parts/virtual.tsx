// A list of which only what is seen is drawn: all lines are of one height, so places are a multiplication.
import type { ComponentChildren, RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

interface Props {
  total: number;
  height: number;
  class?: string;
  role?: "tree" | "grid" | "list" | "log";
  label: string;
  render: (index: number) => ComponentChildren;
  /** The line that keyboard users are at: kept in sight. */
  active?: number;
  activeId?: string | undefined;
  rowCount?: number;
  columnCount?: number;
  /** The id of the headings, which stand outside of what scrolls. */
  owns?: string;
  multi?: boolean;
  onKeyDown?: (event: KeyboardEvent) => void;
  /** What a line is, wherever it is: lines that come above do not move what one reads. */
  keyOf?: (index: number) => string | undefined;
  onNearEnd?: () => void;
  onWidth?: (width: number) => void;
  box?: RefObject<HTMLDivElement | null>;
}

const OVERSCAN = 8;

export function Virtual(props: Props) {
  const own = useRef<HTMLDivElement>(null);
  const box = props.box ?? own;
  const [range, setRange] = useState<[number, number]>([0, 40]);
  const { total, height, active } = props;

  const anchor = useRef<{ key: string; index: number } | null>(null);

  const measure = () => {
    const element = box.current;
    if (!element) return;
    const top = Math.floor(element.scrollTop / height);
    const key = props.keyOf?.(top);
    anchor.current = key !== undefined && element.scrollTop > 0 ? { key, index: top } : null;
    const first = Math.max(0, Math.floor(element.scrollTop / height) - OVERSCAN);
    const last = Math.min(total, Math.ceil((element.scrollTop + element.clientHeight) / height) + OVERSCAN);
    setRange((old) => (old[0] === first && old[1] === last ? old : [first, last]));
    if (props.onNearEnd && last >= total - OVERSCAN * 2) props.onNearEnd();
  };

  const first = props.keyOf?.(0);
  useLayoutEffect(() => {
    const element = box.current;
    const held = anchor.current;
    if (element && held && props.keyOf) {
      let now = held.index;
      while (now < total && props.keyOf(now) !== held.key) now++;
      if (now < total) element.scrollTop += (now - held.index) * height;
    }
    measure();
  }, [total, height, first]);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const observer = new ResizeObserver(() => {
      measure();
      props.onWidth?.(element.clientWidth);
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, [total, height]);

  useLayoutEffect(() => {
    const element = box.current;
    if (!element || active === undefined || active < 0) return;
    const top = active * height;
    if (top < element.scrollTop) element.scrollTop = top;
    else if (top + height > element.scrollTop + element.clientHeight) element.scrollTop = top + height - element.clientHeight;
  }, [active, height]);

  const lines: ComponentChildren[] = [];
  for (let index = range[0]; index < Math.min(range[1], total); index++) lines.push(props.render(index));
  return (
    <div
      ref={box}
      class={"virtual " + (props.class ?? "")}
      role={props.role ?? "list"}
      aria-label={props.label}
      aria-activedescendant={props.activeId}
      aria-rowcount={props.rowCount}
      aria-colcount={props.columnCount}
      aria-owns={props.owns}
      tabIndex={0}
      onScroll={measure}
      onKeyDown={props.onKeyDown}
    >
      <div class="virtual-all" role="presentation" style={{ height: `${total * height}px` }}>
        <div class="virtual-seen" role={props.role === "grid" ? "rowgroup" : "presentation"} style={{ transform: `translateY(${range[0] * height}px)` }}>
          {lines}
        </div>
      </div>
    </div>
  );
}
