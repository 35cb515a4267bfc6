#!/bin/sh
# Makes the data folder once, open to the network for root with a password; then the server takes this place.
set -eu
[ "${1:-}" = mariadbd ] || exec "$@"
shift
data=/var/lib/mysql
if [ ! -d "$data/mysql" ]; then
  : "${MARIADB_ROOT_PASSWORD:?must be set}"
  mariadb-install-db --no-defaults --datadir="$data" --auth-root-authentication-method=normal --skip-test-db \
    --skip-name-resolve > /dev/null
  umask 077
  cat > /tmp/first.sql << SQL
create or replace user root@'%' identified by '$MARIADB_ROOT_PASSWORD';
grant all privileges on *.* to root@'%' with grant option;
alter user root@localhost identified by '$MARIADB_ROOT_PASSWORD';
SQL
  set -- --init-file=/tmp/first.sql "$@"
fi
exec mariadbd --no-defaults --datadir="$data" --socket=/run/mysqld/mysqld.sock --bind-address=0.0.0.0 "$@"
