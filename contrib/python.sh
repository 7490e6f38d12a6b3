# Sets $python to an interpreter that can make the environment: 3.11 or newer, with venv and pip.
# Meant to be sourced (POSIX sh). PYTHON names another one to try first.

fit() {
    command -v "$1" >/dev/null 2>&1 &&
        "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

python=
for candidate in ${PYTHON:+"$PYTHON"} python3 python3.14 python3.13 python3.12 python3.11 python; do
    if fit "$candidate"; then
        python=$candidate
        break
    fi
done

if [ -z "$python" ]; then
    echo "agentbus needs Python 3.11 or newer with its venv module, and found none." >&2
    echo "Install it (Debian, Ubuntu: apt install python3-venv; Fedora: dnf install python3;" >&2
    echo "macOS: brew install python), or name one: PYTHON=/path/to/python3 $0" >&2
    exit 1
fi
