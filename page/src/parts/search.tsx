// The search within an exchange, and what it found on each of its sides.
import { useMemo } from "preact/hooks";
import type { Exchange } from "../exchange";
import { plural } from "../format";
import { setQuery } from "../route";
import { type Hit, LEAST, searchSide } from "../search";

export function ExchangeSearch({ exchange }: { exchange: Exchange }) {
  const words = exchange.words.value;
  return (
    <div class="search exchange-search">
      <input data-search type="search" aria-label="Search in this exchange" placeholder="Search in it  ( / )" value={words} onInput={(event) => setQuery({ find: event.currentTarget.value }, true)} />
    </div>
  );
}

export function FoundInExchange({ exchange }: { exchange: Exchange }) {
  const words = exchange.words.value;
  const values = exchange.sides.map((side) => side.value.value);
  const hits = useMemo(() => exchange.sides.flatMap((side) => searchSide(side, words)), [words, exchange.trace.value, exchange.attempt.value, ...values]);
  if (words.length < LEAST) return null;
  const show = (hit: Hit) => {
    if (hit.event !== undefined) setQuery({ [`m-${hit.side}`]: "events", ev: `${hit.side.split("-")[0]}:${hit.event}`, pane: hit.side }, true);
    else {
      setQuery({ sel: `${hit.side}:${hit.pointer ?? ""}`, pane: hit.side }, true);
      exchange.reveal.value += 1;
      exchange.sought.value += 1;
    }
    document.getElementById("panes")?.querySelector(`[data-side="${hit.side}"]`)?.scrollIntoView({ block: "nearest" });
  };
  return (
    <section class="card found" aria-label="Found in this exchange">
      <p role="status">{hits.length ? plural(hits.length, "place") : "Not found in this exchange."}</p>
      <ol>
        {hits.map((hit, index) => (
          <li key={index}>
            <button type="button" class="quiet" onClick={() => show(hit)}>
              <span class="found-side">{hit.title}</span>
              <span class="found-words">{hit.before}<mark>{hit.found}</mark>{hit.after}</span>
              <code class="found-place">{hit.event === undefined ? hit.pointer : `event ${hit.event + 1}`}</code>
            </button>
          </li>
        ))}
      </ol>
    </section>
  );
}
