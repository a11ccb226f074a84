# To be sourced: python_venv NAME PACKAGE... makes the virtual environment NAME, with packages from PyPI, in the
# caches, if it is not there, and sets `venv` to its folder. PYTHON is the interpreter; default python3.

python_venv() {
  local name=$1 python=${PYTHON:-python3} version cache
  shift
  version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])') || exit 1
  case $version in
  3.1[1-9] | 3.[2-9][0-9]) ;;
  *)
    echo "$python is Python $version, and the package occl is for 3.11 and later; PYTHON=... names another one" >&2
    exit 1
    ;;
  esac
  cache=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/occl-python
  venv=$cache/$name-$version
  [ -f "$venv/complete" ] && [ "$(cat "$venv/complete")" = "$*" ] && return
  mkdir -p "$cache"
  rm -rf "$venv"
  "$python" -m venv "$venv" || exit 1
  if ! "$venv/bin/pip" -q --disable-pip-version-check install "$@"; then
    echo "PyPI has not given: $*. These take a package index that pip can reach (PIP_INDEX_URL)" >&2
    exit 1
  fi
  echo "$*" >"$venv/complete"
}
