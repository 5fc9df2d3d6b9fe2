#!/usr/bin/env bash
# Installs PostgreSQL and Redis for the tests where they are missing. The tests start private servers of their
# own (tools/servers.py), so Debian's packages must not start theirs.
set -euo pipefail

has_postgres() { command -v initdb >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null; }
has_redis() { command -v redis-server >/dev/null || command -v valkey-server >/dev/null; }

missing=()
has_postgres || missing+=(postgresql)
has_redis || missing+=(redis-server)
[ ${#missing[@]} -gt 0 ] || exit 0

if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "missing here: ${missing[*]} (install it, or run this as root on Debian)" >&2
    exit 1
fi

# Debian asks this file whether a daemon may start; 101 is no. One that is there already is the owner's.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod +x "$policy"
fi
export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
apt-get update -qq -o Acquire::Retries=3
apt-get install -y -qq --no-install-recommends -o Acquire::Retries=3 "${missing[@]}" >/dev/null
