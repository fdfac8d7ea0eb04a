#!/bin/bash
# The entry point of the container: what the simulator's base image asks for, then hvq in the role that the runner wants.
set -e

# Routes and waits for the simulator; part of the base image.
/setup.sh

if [ "$ROLE" = client ]; then
    /wait-for-it.sh sim:57832 -s -t 30
    # shellcheck disable=SC2086 # several words
    exec hvq-endpoint $CLIENT_PARAMS
fi
if [ "$TESTCASE" = connectionmigration ]; then
    # Other ports of the same host; the simulator gives the server these addresses.
    export LISTEN='[::]:443,[::]:4443'
    export PREFERRED_ADDRESS='193.167.100.100:4443,[fd00:cafe:cafe:100::100]:4443'
fi
# shellcheck disable=SC2086 # several words
exec hvq-endpoint $SERVER_PARAMS
