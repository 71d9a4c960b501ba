# assemble.sh PTXAS SPEC [FLAGS]: the spec's device code is taken for each generation of
# devices, and no function of it spills registers or has a stack frame.
set -eu
ptxas=$1
shift
code=$(mktemp)
trap 'rm -f "$code" "$code.cubin"' EXIT
boa compile "$@" --target cuda --emit=ptx > "$code"
for chip in sm_80 sm_90 sm_120; do
  report=$("$ptxas" -v -arch=$chip -o "$code.cubin" "$code" 2>&1)
  if echo "$report" | grep 'spill\|stack frame' |
    grep -v '^ *0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads$'; then
    echo "$report"
    exit 1
  fi
  frames=$(echo "$report" | grep -c 'stack frame') kernels=$(echo "$report" | grep -c 'Used [0-9]* registers')
  [ "$frames" = "$kernels" ] # so each of them was looked at
  updates=$(echo "$report" | grep -c "Compiling entry function '\(update\|norm\)_" || true)
  echo "$chip: $kernels kernels, $updates of the optimizer"
done
