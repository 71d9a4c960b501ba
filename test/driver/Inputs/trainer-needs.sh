# trainer-needs.sh TRAINER: what the shell of a stand-alone trainer, and the program behind it
# (tools/Payload.h), need of the machine; its size in MiB, rounded up.
set -eu
trainer=$1
shell=$(command -v boa-trainer)
program=$(mktemp)
trap 'rm -f "$program" "$program".*' EXIT
size=$(stat -c %s "$shell")
cmp --bytes="$size" "$shell" "$trainer"
tail -c +$((size + 1)) "$trainer" | head -c -16 > "$program"

needs() {
  llvm-readelf --needed-libs "$1" | grep -v '^File:\|NeededLibraries\|^]\|^$' | tr -d ' ' | sort | paste -sd ' ' -
}
newest() {
  llvm-readelf --version-info "$1" | grep -o 'GLIBC_[A-Z0-9_.]*' | sort -uV | tail -1
}
echo "shell needs: $(needs "$shell")"
echo "of glibc: $(newest "$shell")"
# A program without libraries has no versions either: what it takes is the shell's or libc's own.
echo "program needs: $(needs "$program")"
echo "of glibc: $(newest "$program")"
llvm-nm -D --defined-only "$shell" | awk '{print $3}' | sort > "$program.shell"
llvm-nm -D --undefined-only "$program" | awk '{print $2}' | sort > "$program.undefined"
grep -q '^boa_rt_' "$program.undefined"
echo "program takes of others: $(comm -23 "$program.undefined" "$program.shell" | paste -sd ' ' -)"
echo "$((($(stat -c %s "$trainer") + 1048575) / 1048576)) MiB"
