// One of the four sides of an exchange: as people read it, as JSON or events, or as it was.
import { useEffect, useState } from "preact/hooks";
import type { ExchangeSide } from "../exchange";
import { duration, plural, size } from "../format";
import { type Parsed, useParsed } from "../json/parse";
import { JsonTree } from "../json/tree";
import { Events } from "./events";
import { Reading } from "./reading";
import { Choice, Copy } from "./small";

export function Pane({ side }: { side: ExchangeSide }) {
  const [search, setSearch] = useState("");
  const [finding, setFinding] = useState(false);
  const message = side.message.value;
  const events = side.events.value;
  const visible = side.visible.value;
  const streamed = events.length > 0;
  const document = streamed ? message?.folded || undefined : message?.body || undefined;
  const parsed = useParsed(message?.base64 ? undefined : document);
  useEffect(() => {
    side.value.value = parsed?.value;
  }, [side, parsed]);
  const asked = side.mode.value;
  const mode = streamed && asked === "json" ? "events" : asked === "whole" && !(streamed && parsed) ? "json" : asked;
  const modes: [string, string][] = streamed
    ? [["read", "Read"], ["events", "Events"], ...(parsed ? [["whole", "JSON"] as [string, string]] : []), ["raw", "Raw"]]
    : [["read", "Read"], ["json", "JSON"], ["raw", "Raw"]];
  const asTree = mode === "json" || mode === "whole";
  const raw = () => (streamed ? events.slice(0, visible).map((event) => event.raw).join("\n\n") : (message?.body ?? ""));
  const isEmpty = !message || (!streamed && !message.body);

  return (
    <section class={`pane pane-${side.document} pane-in-${mode === "read" ? "words" : "data"}`} data-side={side.name} aria-label={side.title}>
      <header class="pane-head">
        <h2>{side.title}</h2>
        <span class="faint clip">{side.about.value}</span>
        <span class="pane-tools">
          {message?.shortened ? (
            <span class="grade grade-degraded" title="All else of it was recorded. Set [trace] body_bytes to record longer bodies.">≈ {plural(message.shortened, "long string")} cut, was {size(message.bytes)}</span>
          ) : message?.truncated ? (
            <span class="grade grade-degraded" title="only the beginning was kept">≈ cut, was {size(message.bytes)}</span>
          ) : null}
          {message?.stops && visible === events.length ? <span class="grade grade-degraded" title={message.stops}>≈ stops before its end</span> : null}
          {!isEmpty ? (
            <>
              {asTree ? (
                <button type="button" class="quiet" aria-pressed={finding} aria-label={`Find in ${side.title}`} title="Find" onClick={() => setFinding(!finding)}>
                  ⌕
                </button>
              ) : null}
              <Choice label={`How to show the ${side.title}`} options={modes} value={mode} choose={side.setMode} />
              <Copy text={raw} />
            </>
          ) : null}
        </span>
      </header>
      {finding && asTree ? (
        <div class="find">
          <input type="search" aria-label={`Find in ${side.title}`} placeholder="Find names and values" value={search} onInput={(event) => setSearch(event.currentTarget.value)} autoFocus />
        </div>
      ) : null}
      <div class="pane-body">
        {isEmpty ? (
          <p class="faint nothing">{side.missing.value}</p>
        ) : mode === "raw" ? (
          <RawText text={raw()} name={side.title} />
        ) : mode === "events" ? (
          <Events side={side} />
        ) : (
          <Body side={side} parsed={parsed} tree={asTree} search={finding ? search : ""} raw={raw} />
        )}
      </div>
      {streamed ? (
        <footer class="pane-foot faint">
          {visible === events.length ? plural(events.length, "event") : `${visible} of ${plural(events.length, "event")}`}
          {visible ? `, last at ${duration(events[visible - 1]?.ms)}` : ""}
        </footer>
      ) : null}
    </section>
  );
}

interface BodyProps {
  side: ExchangeSide;
  parsed: Parsed | null;
  tree: boolean;
  search: string;
  raw: () => string;
}

/** Its document, to be read or as a tree; a stream is read before its document is there. */
function Body({ side, parsed, tree, search, raw }: BodyProps) {
  const streamed = side.events.value.length > 0;
  if (!streamed && parsed === null) return <p class="waiting">{side.message.value?.base64 ? "No text: it is shown as Raw, in base64." : "Parsing …"}</p>;
  if (!streamed && parsed?.problem)
    return (
      <>
        <p class="note">This is no JSON ({parsed.problem}).</p>
        <RawText text={raw()} name={side.title} />
      </>
    );
  if (!tree || parsed?.value === undefined) return <Reading side={side} value={parsed?.value} />;
  return (
    <JsonTree
      value={parsed.value}
      label={side.title}
      losses={side.losses.value}
      linked={side.linked.value}
      lit={side.lit.value}
      reveal={side.isChosen.value ? 0 : side.exchange.reveal.value}
      choose={side.choose}
      search={search}
    />
  );
}

const RAW_AT_FIRST = 200_000;

function RawText({ text, name }: { text: string; name: string }) {
  const [all, setAll] = useState(false);
  const long = text.length > RAW_AT_FIRST && !all;
  return (
    <>
      <pre class="raw" tabIndex={0} aria-label={`${name}, raw`}>
        {long ? text.slice(0, RAW_AT_FIRST) : text}
      </pre>
      {long ? (
        <button type="button" class="quiet more" onClick={() => setAll(true)}>
          Show all {size(text.length)}
        </button>
      ) : null}
    </>
  );
}
