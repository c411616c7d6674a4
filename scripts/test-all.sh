#!/usr/bin/env bash
# Runs every test once: the slow ones, then the quick ones, each with servers of their own. Temporal keeps metrics for
# each namespace that it has ever had and visits all of them each second, so two servers take less than one for both.
set -uo pipefail

# As the slow ones: with more files at a time, each waits for longer.
export TEST_JOBS=4
code=0
npm run test:slow -- "$@" || code=$?
npm test -- "$@" || code=$?
exit "$code"
