"""Built-in demo provider: a scripted model that runs in the process and speaks every dialect.

It says what it is, repeats what it was given, thinks and calls tools on request,
quotes their results, fills JSON schemas, and fails on request. The same request always gets the same
answer. What else it should do is in the last user text, as directives:

| directive | effect |
|---|---|
| `[[demo:echo]]` | answers with the user's own words and nothing else |
| `[[demo:text N]]` | answers with N words |
| `[[demo:think]]` | thinks, whether or not the request enables thinking |
| `[[demo:tool NAME {json}]]` | calls that tool, with these arguments if given |
| `[[demo:tools N]]` | calls tools N times in one turn |
| `[[demo:refuse]]` | refuses to answer |
| `[[demo:slow 50ms]]` | waits so long between two pieces of a stream |
| `[[demo:fail 429 retry-after=2]]` | answers with this error status |
| `[[demo:fail-midstream]]` | ends the stream with an error event, half way |
| `[[demo:cut]]` | ends the stream half way without any terminal event |
| `[[demo:hang]]` | never answers |
| `[[demo:hang-midstream]]` | falls silent half way |
| `[[demo:strict]]` | from there on answers 400 to a signature of its own that comes back changed |

A prompt that names a file as `[[marker-file:/path]]` makes it read that file with one of the offered tools
and answer `FINAL-OK NONCE-...` with the nonce it finds in the tool's result: a whole tool loop in two turns.

A safety check of a tool call, by the gateway's judge or by an agent itself, is answered by a simple rule:
`rm -rf /`, `curl ... | sh` and their like are blocked, everything else may run (see `safety_checks`).

`script` decides what to say, `service` puts it into a dialect, `transport` carries it like a provider would.
"""
