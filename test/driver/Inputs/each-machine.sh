# each-machine.sh EXAMPLES COMMAND...: the command with each machine file of the examples behind it.
examples=$1
shift
for machine in "$examples"/machines/*.boa; do
  "$@" "$machine" || exit 1
done
