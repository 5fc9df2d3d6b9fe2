#!/usr/bin/env bash
# Installs PostgreSQL, Redis and PgBouncer for the tests where they are missing, and Valkey where there is a package
# (Debian 12 has none). The tests start private servers of their own (proofs/servers.py), so
# Debian's packages must not start theirs.
set -euo pipefail

has_postgres() { command -v initdb >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null; }
has_redis() { command -v redis-server >/dev/null || command -v valkey-server >/dev/null; }
has_pgbouncer() { command -v pgbouncer >/dev/null || [ -x /usr/sbin/pgbouncer ]; }

missing=()
has_postgres || missing+=(postgresql)
has_redis || missing+=(redis-server)
has_pgbouncer || missing+=(pgbouncer)
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
apt-get update -qq -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300
if ! command -v valkey-server >/dev/null && [ -n "$(apt-cache search --names-only '^valkey-server$')" ]; then
    missing+=(valkey-server)
fi
apt-get install -y -qq --no-install-recommends -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 "${missing[@]}" >/dev/null
