#!/bin/sh
# One night: the new patients are released by the recoding that was learned once, from PostgreSQL to PostgreSQL.
#   CLINIC=postgresql://reader:…@host/clinic RELEASES=postgresql://writer:…@host/research nightly.sh /var/lib/nightly
# Exit status: 0 done; 1 a demand is not met (too many rows to withhold, or the audit disagrees); 2 the request is wrong, or a
# database cannot be reached. In each case but 0 the released table is as it was the night before.
set -eu
: "${CLINIC:?is the address of the database with the patients}" "${RELEASES:?is the address of the database for releases}"
folder="${1:?name the folder for releases and their evidence}"
spec="$(cd "$(dirname "$0")" && pwd)/spec.toml"
cd "$folder"

if [ ! -d learned ]; then
  anonfit run "$spec" --out learned
fi
anonfit apply learned env:CLINIC#tonight --out night --replace --to env:RELEASES#patients_released
anonfit audit night --source env:CLINIC#tonight
anonfit audit env:RELEASES#patients_released --quasi-identifiers age,town,admitted --k 10
