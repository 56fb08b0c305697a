# Sourced by the steps of the demo: where things are, how a step begins, and how it fails.
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. "${POSENC_SETUP:-build/setup.env}" # PYTHON
bin=${POSENC_BUILD:-build/release}
out=${POSENC_DEMO_OUT:-build/demo}
export PYTHONDONTWRITEBYTECODE=1
mkdir -p "$out"

step() { # NUMBER TITLE; standard input: what the step proves
  printf '\n== %s. %s\n\n' "$1" "$2"
  cat
  echo
}
fail() {
  printf 'demo: %s\n' "$*" | fold -s -w 80 >&2
  exit 1
}
