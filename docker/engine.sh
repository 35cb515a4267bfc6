#!/usr/bin/env bash
# Runs a command with a container engine of our own, for a machine where none runs (needs root, dockerd, tini and debootstrap):
#
#     docker/engine.sh make prove SUITE=containers
#
# The engine has folders of its own, and ends with us however we end. Without iptables it works in narrow places.
set -euo pipefail
here=$(mktemp -d)
daemon=
stop() {
  if [ -n "$daemon" ]; then
    # Only where a test was ended in its middle is there anything.
    timeout 60 sh -c 'docker ps -aq | xargs -r docker rm -f -v; docker network prune -f' >/dev/null 2>&1 || true
    kill "$daemon" 2>/dev/null || true
    timeout 60 tail --pid="$daemon" -f /dev/null || kill -9 "$daemon" 2>/dev/null || true
    umount "$here"/exec/netns/* 2>/dev/null || true
  fi
  rm -rf "$here" || true
}
trap stop EXIT
trap 'exit 130' INT TERM

export DOCKER_HOST="unix://$here/docker.sock" TESTCONTAINERS_RYUK_DISABLED=true
setpriv --pdeathsig TERM dockerd --bridge=none --iptables=false --ip6tables=false --ip-forward=false --ip-masq=false \
  --data-root "$here/data" --exec-root "$here/exec" -p "$here/pid" -H "$DOCKER_HOST" >"$here/log" 2>&1 &
daemon=$!
for _ in $(seq 120); do
  docker version >/dev/null 2>&1 && break
  kill -0 "$daemon" 2>/dev/null || break
  sleep 0.5
done
docker version >/dev/null || { tail -n 5 "$here/log" >&2; exit 4; }
"$@"
