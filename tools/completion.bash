# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Completes weft's commands, calls, options and some values, using the program's own help.
# tools/install puts it where bash-completion finds it; otherwise: source tools/completion.bash

# Prints the words that begin the lines of a help text: commands, or calls of a command.
_weft_words() {
  "$1" help "${@:2}" 2>/dev/null | sed -n 's/^  \([a-z]*\)  *[^ ].*/\1/p' | grep -vx weft
}

_weft_options() {
  "$1" "${@:2}" --help 2>/dev/null | grep -o -- '--[a-z][a-z0-9-]*' | sort -u
}

_weft() {
  local program=$1 current=$2 before=$3 words=() word i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do # the command and its call
    word=${COMP_WORDS[i]}
    [[ $word == [a-z]* && ${COMP_WORDS[i - 1]} != -* && ${COMP_WORDS[i - 1]} != = ]] && words+=("$word")
  done
  [ "$before" = = ] && before=${COMP_WORDS[COMP_CWORD - 2]} # bash splits --option=VALUE
  [ "$current" = = ] && before=${COMP_WORDS[COMP_CWORD - 1]} && current=''
  case $before in
    -b | --backend | --rows) word=$("$program" backends 2>/dev/null | awk 'NR > 1 { print $1 }') ;;
    --show) word=$("$program" sim --list 2>/dev/null | cut -d ' ' -f 1) ;;
    --scheme) [ "${words[0]}" = sim ] && word='push pull source-only rarest' || word='push pull' ;;
    *) word= ;;
  esac
  if [ -n "$word" ]; then
    :
  elif [[ $current == -* ]]; then
    word=$(_weft_options "$program" "${words[@]:0:2}")
  elif [ ${#words[@]} -eq 0 ]; then
    word="$(_weft_words "$program") help"
  elif [ "${words[0]}" = help ]; then
    case ${words[1]-} in '' | store | bench) word=$(_weft_words "$program" "${words[@]:1}") ;; esac
  elif [ ${#words[@]} -eq 1 ] && [ "${words[0]}" = sim ]; then
    word=$("$program" sim --list 2>/dev/null | cut -d ' ' -f 1)
  elif [ ${#words[@]} -eq 1 ]; then
    case ${words[0]} in store | peer | bench) word=$(_weft_words "$program" "${words[0]}") ;; esac
  fi
  mapfile -t COMPREPLY < <(compgen -W "$word" -- "$current")
}
complete -o default -F _weft weft
