// A stream of one side, event by event: each with its time, and what it became on the other side.
import { useMemo } from "preact/hooks";
import type { ExchangeSide } from "../exchange";
import { duration } from "../format";
import { JsonTree } from "../json/tree";
import { wordsOf } from "../stream";
import { Virtual } from "./virtual";

const PARTNERS_SHOWN = 8;

function EventPartners({ side }: { side: ExchangeSide }) {
  const links = side.exchange.eventLinks.value;
  const found = side.exchange.focusPartners.value;
  const mine = side.side === "client";
  if (!links) return <span class="faint">How the events of these streams correspond is not known.</span>;
  if (!found.length) return <span class="faint">{mine ? "Created by the gateway, not by the provider." : "The client got nothing."}</span>;
  return (
    <>
      {mine ? "Made from the provider's" : "Translated to the client's"} {found.length === 1 ? "event" : "events"}{" "}
      {found.slice(0, PARTNERS_SHOWN).map((index) => (
        <button key={index} type="button" class="quiet" onClick={() => side.showPartner(index)}>
          {index + 1}
        </button>
      ))}
      {found.length > PARTNERS_SHOWN ? ` and ${found.length - PARTNERS_SHOWN} more` : ""}
      {links.by === "times" ? <span class="faint"> (by their times)</span> : null}
    </>
  );
}

export function Events({ side }: { side: ExchangeSide }) {
  const name = side.title;
  const events = side.events.value;
  const visible = side.visible.value;
  const chosen = side.chosenEvent.value;
  const lit = side.litEvents.value;
  const choose = side.chooseEvent;
  const event = chosen < visible ? events[chosen] : undefined;
  const marked = useMemo(() => new Set(lit), [lit]);
  const keys = (pressed: KeyboardEvent) => {
    if (pressed.ctrlKey || pressed.metaKey || pressed.altKey) return;
    const moves: Record<string, number> = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: 12, PageUp: -12, Home: -1e9, End: 1e9 };
    const by = moves[pressed.key];
    if (by === undefined) return;
    choose(Math.max(0, Math.min(visible - 1, chosen < 0 && by > 0 ? by - 1 : chosen + by)));
    pressed.preventDefault();
    pressed.stopPropagation();
  };
  return (
    <>
      <Virtual
        class="events"
        role="list"
        label={`${name}, event by event: arrows choose one`}
        total={visible}
        height={24}
        active={chosen >= 0 ? chosen : (lit.at(-1) ?? (visible < events.length ? visible - 1 : -1))}
        onKeyDown={keys}
        render={(index) => {
          const each = events[index];
          if (!each) return null;
          const wait = index ? each.ms - (events[index - 1]?.ms ?? 0) : each.ms;
          return (
            <div key={index} role="listitem" class={`event${index === chosen ? " active" : ""}${marked.has(index) ? " lit" : ""}`}>
              <button type="button" tabIndex={-1} aria-expanded={index === chosen} onClick={() => choose(index === chosen ? -1 : index)}>
                <span class="event-number">{index + 1}</span>
                <span class="event-time">{duration(each.ms)}</span>
                <span class={`event-wait${wait >= 400 ? " long" : ""}`}>{index ? `+${duration(wait)}` : ""}</span>
                <span class="event-name">{each.name}</span>
                <span class="event-words">
                  {marked.has(index) ? <span class="unseen">partner of the chosen event: </span> : null}
                  {wordsOf(each)}
                </span>
              </button>
            </div>
          );
        }}
      />
      {event ? (
        <div class="event-open">
          <p class="event-partners" role="status">
            <span class="unseen">
              Event {chosen + 1} of {visible}, {event.name}.{" "}
            </span>
            <EventPartners side={side} />
          </p>
          {event.value !== undefined ? <JsonTree value={event.value} label={`${name}, event ${chosen + 1}`} /> : <pre class="raw" tabIndex={0}>{event.raw}</pre>}
        </div>
      ) : null}
    </>
  );
}
