# SPDX-License-Identifier: Apache-2.0
# Reads `objdump -d --no-show-raw-insn` and prints, for every innermost loop that contains the
# wanted instruction on the wanted register: function, instructions in the loop, bytes that the wanted
# instruction processes in one pass.
#
#   awk -v wanted=vgf2p8affineqb -v register=zmm -v bytes=64 -f inner_loops.awk

function report(    i, j, first, length_, processed, inner) {
  for (i = 1; i <= count; i++) {
    if (!(target[i] in at) || at[target[i]] > i)
      continue
    first = at[target[i]]
    inner = 1
    for (j = first; j < i; j++)
      if (target[j] in at && at[target[j]] <= j && at[target[j]] >= first)
        inner = 0
    length_ = i - first + 1
    processed = 0
    for (j = first; inner && j <= i; j++)
      if (operation[j] == wanted && text[j] ~ register)
        processed += bytes
    if (processed > 0)
      print name, length_, processed
  }
}

function forget(    i) {
  for (i in at)
    delete at[i]
  for (i in target)
    delete target[i]
  count = 0
}

/^[0-9a-f]+ <.*>:$/ {
  report()
  forget()
  name = $2
  next
}

/^ *[0-9a-f]+:/ {
  count++
  address = $1
  sub(/:$/, "", address)
  at[address] = count
  operation[count] = $2
  text[count] = $0
  target[count] = $2 ~ /^j/ ? $3 : "none"
}

END {
  report()
}
