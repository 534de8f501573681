#!/usr/bin/env bash
# Runs the gate; its verdict goes to the job's summary, whatever it is, and its exit code is the step's.
set -euo pipefail

home=$(cd "$(dirname "$0")/../../.." && pwd)
export PYTHONPATH="$home/scripts"

arguments=()
# add OPTION TEXT: gives each line of a text that is not empty as an option; `read` takes spaces off its ends.
add() {
  local line
  while read -r line; do
    [ -z "$line" ] || arguments+=("$1" "$line")
  done <<< "${2//$'\r'/}"
}
add --limit "${LIMITS:-}"
add --set "${SETTINGS:-}"

# each line of GITHUB_OUTPUT is an output of its own
if [[ "$OUT" == *[$'\n\r']* ]]; then
  echo "out: a folder's name in one line was expected" >&2
  exit 2
fi
markdown="$OUT/gate.md"
badge="$OUT/gate.svg"
printf '%s\n' "markdown=$markdown" "badge=$badge" >> "$GITHUB_OUTPUT"

code=0
"$RUNNER_TEMP/causeway/bin/python" -m causeway.command_line gate --out "$OUT" --markdown "$markdown" --badge "$badge" \
  "${arguments[@]}" -- "$BASELINE" "$CANDIDATE" || code=$?
[ ! -f "$markdown" ] || cat "$markdown" >> "$GITHUB_STEP_SUMMARY"
exit "$code"
