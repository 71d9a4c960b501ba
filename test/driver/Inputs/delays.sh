# delays.sh TRAINER COUNT FLAG...: trained so often with other delays of the fake driver, it ends with the same
# weights, bit for bit.
set -euo pipefail
rm -rf delays
for seed in $(seq "$2"); do
  BOA_FAKE_CUDA="seed=$seed delay_us=$((seed % 5 * 100))" "$1" "${@:3}" --state "delays/$seed" --quiet
  cmp delays/1/model.safetensors "delays/$seed/model.safetensors"
  [[ $seed == 1 ]] || rm -r "delays/$seed"
done
echo "$2 times the same"
