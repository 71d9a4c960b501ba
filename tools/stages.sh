# Sourced by tools/demo and tools/check: stages with their times.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
started=$SECONDS

# stage WORDS...: begins a stage and says so; the one before it ends.
stage_name=
stage() {
  end_stage
  stage_name="$*"
  stage_started=$SECONDS
  printf '\n== %s\n' "$stage_name"
}

# Says how long the stage took.
end_stage() {
  if [[ -n $stage_name ]]; then
    printf -- '-- %s: %d s\n' "$stage_name" $((SECONDS - stage_started))
  fi
  stage_name=
}

# Parallel compilations: a core each, and 2 GiB of memory, which MLIR's headers
# take. BOA_JOBS overrides.
compile_jobs() {
  local by_memory cores
  by_memory=$(awk '/^MemAvailable/ { print int($2 / 2097152) }' /proc/meminfo)
  cores=$(nproc)
  local n=$((by_memory < cores ? by_memory : cores))
  echo "${BOA_JOBS:-$((n > 1 ? n : 1))}"
}

# build PRESET [TARGETS...]: configures and builds into build/PRESET, all or these targets. Prints the output of
# cmake and ninja only if they fail.
build() {
  local preset=$1 log=build/$1.log
  shift
  mkdir -p build
  if cmake --preset "$preset" >"$log" 2>&1 &&
    cmake --build --preset "$preset" -j "$(compile_jobs)" ${1:+--target "$@"} >>"$log" 2>&1; then
    echo "built build/$preset"
  else
    grep -E -A 20 'error|Error|FAILED' "$log" | head -60 || tail -40 "$log"
    echo "the build failed; all of its output is in $log"
    return 1
  fi
}
