#!/bin/sh
# Makes the cluster and the database once, open to the network with a password; then the server takes this place.
set -eu
[ "${1:-}" = postgres ] || exec "$@"
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  : "${POSTGRES_PASSWORD:?must be set}"
  user=${POSTGRES_USER:-postgres}
  umask 077
  printf '%s\n' "$POSTGRES_PASSWORD" > /tmp/password
  # shellcheck disable=SC2086
  initdb -D "$PGDATA" -U "$user" --pwfile=/tmp/password --auth=scram-sha-256 --no-sync ${POSTGRES_INITDB_ARGS:-}
  rm /tmp/password
  echo 'host all all all scram-sha-256' >> "$PGDATA/pg_hba.conf"
  if [ "${POSTGRES_DB:-$user}" != postgres ]; then
    printf 'create database "%s";\n' "${POSTGRES_DB:-$user}" | postgres --single -D "$PGDATA" postgres > /dev/null
  fi
fi
shift
exec postgres -c listen_addresses='*' "$@"
