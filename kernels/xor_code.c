// SPDX-License-Identifier: Apache-2.0
// Pages of machine code: written first, then made executable and no longer writable. Systems may
// forbid that (SELinux's execmem, systemd's MemoryDenyWriteExecute).
#define _DEFAULT_SOURCE // MAP_ANONYMOUS
#include "kernels/xor_code.h"

#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096 };

// Turns a pointer to data into one to a function, which C has no conversion for.
static weft_xor_loop *as_loop(void *pages) {
  weft_xor_loop *loop;
  _Static_assert(sizeof loop == sizeof pages, "one address space");
  memcpy(&loop, &pages, sizeof loop);
  return loop;
}

weft_status weft_xor_code_new(weft_xor_code **out, const uint8_t *machine_code, size_t bytes,
                              size_t scratch_bytes, const weft_allocator *allocator) {
  const size_t page_bytes = (bytes + PAGE - 1) / PAGE * PAGE;
  weft_xor_code *code = allocator->alloc(allocator->user, sizeof *code, _Alignof(weft_xor_code));
  if (!code)
    return WEFT_E_NOMEM;
  void *pages = mmap(NULL, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages != MAP_FAILED)
    memcpy(pages, machine_code, bytes);
  if (pages == MAP_FAILED || mprotect(pages, page_bytes, PROT_READ | PROT_EXEC) != 0) {
    if (pages != MAP_FAILED)
      munmap(pages, page_bytes);
    allocator->free(allocator->user, code);
    return WEFT_E_UNSUPPORTED;
  }
  *code = (weft_xor_code){.run = as_loop(pages),
                          .scratch_bytes = scratch_bytes,
                          .pages = pages,
                          .page_bytes = page_bytes,
                          .allocator = allocator};
  *out = code;
  return WEFT_OK;
}

void weft_xor_code_free(weft_xor_code *code) {
  if (!code)
    return;
  munmap(code->pages, code->page_bytes);
  code->allocator->free(code->allocator->user, code);
}
