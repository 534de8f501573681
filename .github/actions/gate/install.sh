#!/usr/bin/env bash
# Installs the locked environment into a folder of the job's own; every file of it is checked by its hash.
set -euo pipefail

home=$(cd "$(dirname "$0")/../../.." && pwd)
environment="$RUNNER_TEMP/causeway"
python -m venv "$environment"
"$environment/bin/pip" install --quiet --require-hashes -r "$home/requirements-base.lock"
