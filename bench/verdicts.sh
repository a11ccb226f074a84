#!/bin/bash
# What `occlc import` says of every XML file in a folder, at depths 1, 2 and 8: a table for docs/interchange.md.
#   bench/verdicts.sh <occlc> <folder>
set -u
[ $# -eq 2 ] || { echo "usage: bench/verdicts.sh <occlc> <folder>" >&2; exit 2; }
occlc=$1

# One word for what the importer said, at one depth.
verdict() {
  local said
  if said=$("$occlc" import "$2" --depth "$1" -o /dev/null 2>&1); then
    [[ $said == *"except for the result"* ]] && echo "ok, no promise" || echo ok
  elif [[ $said == *deadlocks* ]]; then
    echo deadlock
  elif [[ $said == *"[E218]"* ]]; then
    echo wrong
  else
    grep -o '\[E2[0-9][0-9]\]' <<<"$said" | head -1
  fi
}

echo "| file | 1 | 2 | 8 |"
echo "|---|---|---|---|"
for file in "$2"/*.xml; do
  echo "| $(basename "$file" .xml) | $(verdict 1 "$file") | $(verdict 2 "$file") | $(verdict 8 "$file") |"
done
