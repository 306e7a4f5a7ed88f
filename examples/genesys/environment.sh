#!/bin/sh
# Makes an environment in which GeneSys compiles: sh environment.sh VENV CODELETS POLYMATH [PYTHON]
#
# VENV      the folder to make the environment in
# CODELETS  a checkout of https://github.com/he-actlab/codelets.src
# POLYMATH  a checkout of https://github.com/he-actlab/polymath
# PYTHON    a Python 3.11 (default: python3.11)
#
# The checkouts stay where they are, and VENV refers to them.
set -eu

if [ $# -lt 3 ]; then
    sed -n 's/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
venv=$1
codelets=$(cd "$2" && pwd)
polymath=$(cd "$3" && pwd)
python=${4:-python3.11}
[ -d "$codelets/codelets" ] || { echo "$2 holds no package codelets" >&2; exit 2; }
[ -d "$polymath/polymath" ] || { echo "$3 holds no package polymath" >&2; exit 2; }

"$python" -m venv "$venv"
# PolyMath's generated code needs protobuf 3; with that, onnx is 1.14 at most. The sources use
# np.int, which NumPy 1.24 has not; these wheels ask for 1.24 and work with 1.23.5. NetworkX 3.5
# returns something else from single_target_shortest_path_length.
"$venv/bin/pip" install --quiet onnx==1.14.1 protobuf==3.20.3 onnxruntime==1.15.1 numpy==1.24.4 \
    sympy graphviz jsonschema dill pytools indexed tqdm fxpmath gitpython numproto onnxoptimizer \
    networkx==3.1
"$venv/bin/pip" install --quiet --no-deps numpy==1.23.5 protobuf==3.20.3

site=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
printf '%s\n%s\n' "$polymath" "$codelets" > "$site/genesys.pth"
echo "$venv: GeneSys from $codelets and $polymath"
