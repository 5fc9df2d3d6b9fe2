"""The rows of the fault table: what happens and what the gateway answers, and where its tests are not told by
docstrings."""

from __future__ import annotations

_HYGIENE = "http/test_server_hygiene.py"
_SERVER = "http/test_server.py"
_HEAD = "http/test_server_head.py"
_SERVER_LEAVING = "http/test_server_leaving.py"
_BODY = "http/test_transport_body.py"
_CODING = "http/test_transport_coding.py"
_DIAL = "http/test_transport_dial.py"
_POOL = "http/test_transport_pool.py"
_TIMEOUTS = "http/test_transport_timeouts.py"
_TLS = "http/test_transport_tls.py"
_TRANSPORT = "http/test_transport.py"
_OBSERVE = "gateway/observe/test_observe.py"
_MEMORY = "gateway/faults/test_faults_memory.py"
_WATCH = "gateway/config/test_config_watch.py"
_MALFORMED = (_HYGIENE, "test_malformed_bytes_are_refused_and_the_connection_ends")
_AGREES = (_HEAD, "test_a_head_we_accept_is_read_the_same_by_llhttp")
_CHUNKS = (_HEAD, "test_chunks_we_accept_are_read_the_same_by_llhttp_however_cut")

ROWS: dict[int, tuple[str, str]] = {
    # Bytes from the client
    1: ("lengths that contradict each other or are no number", "400, connection closed"),
    2: ("transfer codings other than one `chunked`", "400, closed"),
    3: ("malformed chunks", "400, closed"),
    4: ("bare LF, folded lines, NUL, other versions of HTTP", "400 or 505, closed"),
    5: ("no Host, two of them, or one that is more than a name", "400"),
    6: ("a Host that is not served here (DNS rebinding)", "403 `host_not_allowed`"),
    7: ("a target with another host, CONNECT, `*`", "400 or 405"),
    8: ("headers or a URL over their limits", "431 or 414, closed"),
    9: ("a head that trickles in", "408 after `header_time`"),
    10: ("a body that stalls or trickles in", "408 after `body_idle` or `body_total`"),
    11: ("a client that does not read", "the upstream is paused; cut off after `write_stall`"),
    12: ("a body over its limit, announced or not", "too large, as soon as that is known"),
    13: ("a body cut short", "no answer is possible; the upstream is not asked"),
    14: ("a compressed body", "media"),
    15: ("another content type or charset", "media"),
    16: ("`Expect: 100-continue` from one who may not come in", "auth, without 100"),
    17: ("pipelined requests", "answered in order"),
    18: ("`Upgrade`", "ignored, never 101"),
    19: ("trailers that look like headers", "never merged into headers"),
    # JSON and meaning
    20: ("a body that is no JSON", "bad `invalid_json`, with the byte"),
    21: ("JSON that is no object", "bad `invalid_type`"),
    22: ("nesting beyond `json_depth`", "bad `json_too_deep`"),
    23: ("very many keys or elements, long texts", "taken within `body`"),
    24: ("a key that stands twice", "bad `duplicate_key` where routing depends on it, else the last wins"),
    25: ("NaN, Infinity, 1e400", "bad `invalid_number`"),
    26: ("integers beyond 2^53", "kept digit by digit"),
    27: ("half a surrogate pair", "U+FFFD where it is translated"),
    28: ("bytes that are no UTF-8", "bad `invalid_utf8`"),
    29: ("control characters", "pass in texts, never in names"),
    30: ("line ends, `../`, `?` in a model's name", "refused or percent-encoded"),
    31: ("an unknown model; names that lead in a circle", "not found; refused when the file is loaded"),
    32: ("an unknown field", "goes on in its own dialect, else a declared loss; `strict`: bad"),
    33: ("a value of the wrong type", "bad, with its place"),
    34: ("a tool result without its call; ids the target does not take", "a declared loss; mapped"),
    35: ("schemas with cycles, remote references, patterns", "never followed or run"),
    36: ("addresses of pictures", "never fetched"),
    37: ("data URLs without a picture", "bad, or the upstream's to judge"),
    38: ("pictures that never end", "never fetched"),
    39: ("a stream for who wants none, and the reverse", "folded or unfolded, with the same account"),
    40: (
        "the same Idempotency-Key twice",
        "the same bytes again, `idempotent-replayed`; conflict while it runs or for another body",
    ),
    # The client leaves
    41: ("before the first byte", "the upstream is let go within a second"),
    42: ("in the middle of a stream", "as 41, with the account so far"),
    43: ("while the upstream is silent", "as 41"),
    44: ("during a call that does not stream", "as 41"),
    45: ("while the gateway waits to try again, or in the queue", "nothing is asked after that"),
    46: ("again and again, anywhere", "nothing is left behind"),
    47: ("after the last event", "counted as answered"),
    # The upstream, before its first byte
    48: ("its name cannot be resolved", "the next provider, else upstream down"),
    49: (
        "it refuses or swallows connections",
        "its next address after 0.2 s at most, then the next provider, else upstream down",
    ),
    50: ("its certificate is not good", "upstream down; no byte of a key is sent"),
    51: (
        "it closed a kept connection",
        "one more try on a new one, if it says so at once and nothing was answered",
    ),
    52: ("a connection after a half-read answer", "never used again"),
    53: ("400, 422", "the same in the client's words; not asked again"),
    54: ("401, 403", "the next key, else upstream auth; the key rests (403: for that model)"),
    55: ("401 for a token that expired", "not built: keys only"),
    56: ("402", "the next key or provider, else 402 (Gemini: 429)"),
    57: ("404", "not found"),
    58: ("413, a prompt that is too long", "bad; not asked again"),
    59: ("429", "another key or provider, a short wait, else rate with 1 to 120 s"),
    60: (
        "500, 502, 503, 529",
        "up to two more attempts within the retry budget, then told; a 500 in the same words twice is the "
        "request's; final only after a minute of them",
    ),
    61: ("200 with HTML, nothing, half a document", "upstream bad"),
    62: ("a stream that begins with an error", "its true status; another may be asked"),
    63: ("interim answers without end, redirects, 204, 101", "upstream bad; redirects are never followed"),
    64: ("headers without end", "upstream bad"),
    65: ("silence", "keep-alives, then upstream timeout"),
    66: ("a compressed answer, or a bomb", "decompressed within limits"),
    67: ("HTTP/2 frames", "not spoken"),
    # The upstream, in mid-stream
    68: ("an end without the last event", "upstream bad, in the stream"),
    69: ("a cut connection", "the same"),
    70: ("an end inside an event, a letter, an escape", "the same; the half is not sent"),
    71: ("any cutting, any line end", "the same output, bit by bit"),
    72: ("an event without end", "upstream bad at `event` bytes"),
    73: ("one event of 8 MiB", "passes"),
    74: ("comments, `retry:`, `id:`, unknown events", "skipped, or kept where they pass through"),
    75: ("an event that is no JSON", "upstream bad, in the stream; what came before it goes out"),
    76: ("an error event", "the same meaning in the client's words"),
    77: ("silence, or nothing but pings", "upstream timeout"),
    78: ("a stream that lasts too long", "upstream timeout"),
    79: ("events in the wrong order, or after the end", "mended or refused; ignored"),
    80: ("tool arguments cut short", "an error; at the limit the call is left out where it was not told yet"),
    81: ("an account that cannot be true", "left out"),
    # Keys and configuration
    88: ("a wrong key, none, one in the query", "auth"),
    89: ("guessing", "rate after `auth_failures` a minute and address"),
    90: ("a key taken back while it streams", "the stream ends well, the next request is auth"),
    91: (
        "a new configuration that is broken, empty or has lost its keys",
        "the old one stays, no door opens; told in log, metrics and readiness",
    ),
    92: ("a provider removed while it streams", "streams end well; not found for new requests"),
    # The store
    93: (
        "a full disk",
        "served on, usage goes to the journal; 503 `storage_unavailable` where state is needed",
    ),
    94: ("a lock on the database that stays", "as 93; nothing waits on the loop"),
    95: ("`kill -9` at any moment", "nothing acknowledged is lost or doubled; open intents become `crash`"),
    96: ("`kill -9` while the database is made or brought forward", "the next start goes on from there"),
    97: (
        "a file that is damaged, gone, read-only or no database",
        "no start, with a clear line; the file stays as it is",
    ),
    98: (
        "writes that were not synced are lost",
        "what was acknowledged had been synced; before a byte of an answer, so had its intent",
    ),
    99: ("SQLite versions with the WAL-reset race", "refused; a newer one comes with the package"),
    100: (
        "Redis down, slow, restarted, emptied",
        "rates by each process's share, budgets closed, back by itself",
    ),
    101: ("PostgreSQL down, deadlocked, restarted", "tried again, then as 93; keys from memory for a minute"),
    102: ("a request completed twice", "one row, completed once"),
    # The process
    103: ("SIGTERM", "nobody new comes in, streams finish until `drain`, then are told"),
    104: ("SIGTERM again", "streams are told within `drain_again`, exit 0"),
    105: ("new connections meanwhile", "refused"),
    106: ("no file descriptors left", "connections over `connections` are told and closed"),
    107: (
        "too many bytes held",
        "requests are shed at `buffered`; answers wait, one at a time goes past it",
    ),
    108: (
        "too many requests at once, or all connections to a provider in use",
        "a queue of `queue` for `queue_time`, then the next provider, then shed",
    ),
    109: ("a bug", "internal; logged with its place, without its words"),
    110: ("a worker dies", "replaced"),
    111: ("nobody reads the log", "lines are dropped and counted"),
    113: ("another site's page calls the admin API", "permission, nothing changed"),
}

ELSEWHERE: dict[int, tuple[tuple[str, str], ...]] = {
    1: (_MALFORMED, _AGREES, (_HYGIENE, "test_what_follows_malformed_bytes_is_never_read_as_a_request")),
    2: (_MALFORMED, _AGREES),
    3: (_MALFORMED, _CHUNKS),
    4: (_MALFORMED, _AGREES),
    5: (_MALFORMED, (_HYGIENE, "test_good_hosts_come_in")),
    7: (_MALFORMED, (_HYGIENE, "test_good_targets_are_split_and_never_decoded")),
    8: (
        (_HYGIENE, "test_limits_of_the_head_hold_to_the_byte"),
        (_HYGIENE, "test_an_endless_head_is_refused_before_its_end"),
    ),
    9: (
        (_HYGIENE, "test_a_head_that_does_not_end_is_given_up"),
        (_HYGIENE, "test_a_head_that_trickles_in_gets_no_more_time_for_it"),
    ),
    10: ((_HYGIENE, "test_a_body_that_stalls_is_answered_by_the_application_and_closed"),),
    11: (
        (_SERVER_LEAVING, "test_a_slow_reader_is_felt_by_the_handler_and_so_is_its_catching_up"),
        (_SERVER_LEAVING, "test_a_client_that_never_reads_is_cut_off"),
    ),
    12: ((_HYGIENE, "test_a_body_over_its_limit_is_refused_as_soon_as_that_is_known"),),
    13: ((_SERVER_LEAVING, "test_a_request_cut_short_is_never_handled"),),
    16: ((_SERVER, "test_continue_is_said_only_to_who_may_come_in"),),
    17: (
        (_SERVER, "test_pipelined_requests_are_answered_in_order_one_at_a_time"),
        (_SERVER, "test_a_short_refused_body_is_read_past_and_the_connection_stays"),
    ),
    18: ((_HYGIENE, "test_an_upgrade_is_ignored_and_its_tail_is_the_next_request"),),
    19: (_MALFORMED, _CHUNKS),
    46: ((_SERVER_LEAVING, "test_a_thousand_clients_that_leave_at_any_point_leave_nothing_behind"),),
    48: (
        (_DIAL, "test_a_name_that_does_not_exist_is_a_dns_fault"),
        (_DIAL, "test_a_name_server_that_stalls_is_asked_once_and_given_up"),
    ),
    49: (
        (_DIAL, "test_an_address_that_swallows_everything_leaves_time_for_the_next"),
        (_TIMEOUTS, "test_a_server_that_does_not_accept_is_given_up"),
    ),
    50: (
        (_TLS, "test_a_server_that_cannot_prove_itself_sees_no_byte_of_the_request"),
        (_TIMEOUTS, "test_a_tls_handshake_that_stalls_is_given_up"),
    ),
    51: (
        (_POOL, "test_a_connection_that_died_in_the_pool_is_replaced_without_anyone_noticing"),
        (_POOL, "test_a_pooled_connection_that_answered_a_byte_is_not_tried_again"),
    ),
    52: ((_POOL, "test_a_cancelled_exchange_never_leaks_into_another"),),
    63: ((_TRANSPORT, "test_a_redirect_is_an_answer_and_not_followed"),),
    64: ((_BODY, "test_what_is_not_http_as_we_speak_it_is_refused"),),
    66: ((_CODING, "test_a_decompression_bomb_is_stopped"),),
    69: ((_TLS, "test_a_tls_stream_cut_without_its_end_is_broken"),),
    73: ((_BODY, "test_a_piece_of_a_stream_larger_than_any_buffer_passes"),),
    91: ((_WATCH, "test_a_file_that_is_being_written_is_not_loaded_halfway"),),
    103: ((_SERVER_LEAVING, "test_draining_lets_requests_finish_and_closes_idle_connections"),),
    106: ((_HYGIENE, "test_too_many_connections_are_told_and_closed"),),
    107: (
        (_HYGIENE, "test_bodies_that_arrive_together_are_limited"),
        (_MEMORY, "test_large_answers_at_once_are_all_given"),
        (_MEMORY, "test_a_request_for_whose_answer_there_is_no_room_is_refused_before_it_is_sent"),
        (_MEMORY, "test_an_answer_that_waits_is_not_taken_for_silent"),
    ),
    109: ((_OBSERVE, "test_a_failing_sink_is_counted_and_not_felt"),),
    111: (
        (_OBSERVE, "test_a_reader_that_never_reads_stalls_no_one"),
        (_OBSERVE, "test_a_reader_that_has_gone_is_counted"),
    ),
}
"""Tests whose docstrings do not name their rows."""

REASONS: dict[int, str] = {
    55: "there are no tokens yet, only keys",
    67: "upstreams are spoken to in HTTP/1.1",
}
