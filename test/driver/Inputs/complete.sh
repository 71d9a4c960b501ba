# complete.sh WORD...: what bash would offer for the last of the words, which stand
# as bash takes them apart.
source <(boa completion bash)
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_boa
printf '%s\n' "${COMPREPLY[@]}"
