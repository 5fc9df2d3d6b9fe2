// Whose key pays for a request, and what it may cost at most: said before it is sent.
import { count, money } from "../format";
import type { Preview } from "../targets";

export function Pays({ preview }: { preview: Preview }) {
  const { estimate, context } = preview;
  if (preview.sends === false) return <p>{preview.provider} is not configured here: the request can be translated for it, but not sent.</p>;
  return (
    <>
      <p>
        Goes to <strong>{[preview.provider, preview.model].filter(Boolean).join("/")}</strong>.{" "}
        {preview.pays ? <>It is paid with the key {preview.pays === "config" ? "in the configuration" : <>of <strong>{preview.pays}</strong></>}</> : "No provider key needed"}
        {preview.key ? <>, and is counted for <strong>{preview.key}</strong></> : ""}.
      </p>
      <p class="faint">
        {estimate?.input ? `About ${count(estimate.input)} tokens in` : "How many tokens go in is not known"}
        {estimate?.max_output ? `, at most ${count(estimate.max_output)} out` : ""}
        {estimate?.cost !== null && estimate?.cost !== undefined ? <>: it may cost up to <strong>{money(estimate.cost)}</strong>.</> : "; its price is not known."}
      </p>
      {context && estimate?.input && estimate.input > context ? <p class="grade grade-serious">✕ More than its context of {count(context)} tokens: it is likely to be refused.</p> : null}
    </>
  );
}
