#!/bin/sh
# As the official image does with a command that it does not know: run it, with an init that reaps.
exec tini -s -- "$@"
