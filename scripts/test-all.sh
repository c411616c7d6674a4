#!/usr/bin/env bash
# Runs every test once: the slow ones, then the quick ones, each with servers of their own. Temporal keeps metrics for
# each namespace that a test makes and visits all of them each second, so one server for both takes a core in the end.
set -uo pipefail

# Two files more at a time save a tenth of the time of the quick tests, and make each wait for longer.
export TEST_JOBS=4
code=0
npm run test:slow -- "$@" || code=$?
npm test -- "$@" || code=$?
exit "$code"
