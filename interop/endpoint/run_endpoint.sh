#!/usr/bin/env bash
# Entry point of the container: sets up the simulator's routes, waits for it, and becomes the endpoint that ROLE and
# TESTCASE ask for. Exit code 127 says that a test case is not supported. Outside a container nothing is set up.
set -euo pipefail

plait="${PLAIT:-plait}"

if [ -x /setup.sh ]; then
    /setup.sh
fi
if [ "${ROLE:-}" = client ] && [ -x /wait-for-it.sh ]; then
    /wait-for-it.sh sim:57832 -s -t 30
fi
exec "$plait" interop
