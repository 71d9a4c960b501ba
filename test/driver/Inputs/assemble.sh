# assemble.sh PTXAS SPEC [FLAGS]: the spec's device code is taken for each generation of
# devices, and no function of it spills registers or has a stack frame. Where it multiplies on tensor
# cores, 16 bytes of a thread may be there: ptxas keeps them outside of loops, so that one more
# block has room.
set -eu
ptxas=$1
shift
code=$(mktemp)
trap 'rm -f "$code" "$code.cubin"' EXIT
boa compile "$@" --target cuda --emit=ptx > "$code"
for chip in sm_80 sm_90 sm_120; do
  report=$("$ptxas" -v -arch=$chip -o "$code.cubin" "$code" 2>&1)
  narrow=$(sed -n 's/^\.visible \.entry \(.*\)(/name \1/p; /mma\.sync/s/.*/mma/p' "$code" |
    awk '$1 == "name" { name = $2 } $1 == "mma" { print name }' | sort -u)
  if echo "$report" | awk -v narrow="$narrow" '
      BEGIN { count = split(narrow, names, "\n"); for (i = 1; i <= count; ++i) most[names[i]] = 16 }
      /Function properties for/ { name = $NF }
      /bytes stack frame/ && ($1 > most[name] + 0 || $5 > most[name] + 0) { print name ": " $0 }' | grep .; then
    echo "$report"
    exit 1
  fi
  frames=$(echo "$report" | grep -c 'stack frame') kernels=$(echo "$report" | grep -c 'Used [0-9]* registers')
  [ "$frames" = "$kernels" ] # so each of them was looked at
  updates=$(echo "$report" | grep -c "Compiling entry function '\(update\|norm\)_" || true)
  echo "$chip: $kernels kernels, $updates of the optimizer"
done
