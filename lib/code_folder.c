// SPDX-License-Identifier: Apache-2.0
// One file per kernel, named by the hash of the machine and the source it was compiled for. Files
// appear atomically (a temporary file, then rename), so several programs may share the folder.
// Anyone who can write to it can run code on the GPU.
#define _POSIX_C_SOURCE 200809L
#include "lib/code_folder.h"

#include <sodium.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HASH_BYTES = 32, NAME_BYTES = 2 * HASH_BYTES, TAIL_BYTES = 32, FILE_MOST = 64 << 20 };

struct weft_code_folder {
  const weft_allocator *allocator;
  size_t path_bytes;
  char path[];
};

weft_status weft_code_folder_new(weft_code_folder **out, const char *path,
                                 const weft_allocator *allocator) {
  const size_t bytes = strlen(path) + 1;
  weft_code_folder *folder =
      allocator->alloc(allocator->user, sizeof *folder + bytes, _Alignof(weft_code_folder));
  *out = folder;
  if (!folder)
    return WEFT_E_NOMEM;
  folder->allocator = allocator;
  folder->path_bytes = bytes;
  memcpy(folder->path, path, bytes);
  return WEFT_OK;
}

void weft_code_folder_free(weft_code_folder *folder) {
  if (folder)
    folder->allocator->free(folder->allocator->user, folder);
}

static char *file_name(const weft_code_folder *folder, const char *machine, const char *source) {
  crypto_generichash_state state;
  uint8_t hash[HASH_BYTES];
  crypto_generichash_init(&state, NULL, 0, sizeof hash);
  crypto_generichash_update(&state, (const uint8_t *)machine, strlen(machine) + 1);
  crypto_generichash_update(&state, (const uint8_t *)source, strlen(source) + 1);
  crypto_generichash_final(&state, hash, sizeof hash);
  const weft_allocator *allocator = folder->allocator;
  char *name = allocator->alloc(allocator->user, folder->path_bytes + NAME_BYTES + TAIL_BYTES, 16);
  if (!name)
    return NULL;
  memcpy(name, folder->path, folder->path_bytes - 1);
  name[folder->path_bytes - 1] = '/';
  sodium_bin2hex(name + folder->path_bytes, NAME_BYTES + 1, hash, sizeof hash);
  return name;
}

static weft_status read_code(FILE *file, const weft_allocator *allocator, void **code,
                             size_t *code_bytes) {
  struct stat about;
  if (fstat(fileno(file), &about) != 0 || !S_ISREG(about.st_mode) || about.st_size <= 0 ||
      about.st_size > FILE_MOST)
    return WEFT_E_IO;
  const size_t bytes = (size_t)about.st_size;
  void *memory = allocator->alloc(allocator->user, bytes, 16);
  if (!memory)
    return WEFT_E_NOMEM;
  if (fread(memory, 1, bytes, file) != bytes) {
    allocator->free(allocator->user, memory);
    return WEFT_E_IO;
  }
  *code = memory;
  *code_bytes = bytes;
  return WEFT_OK;
}

static weft_status load(void *user, const weft_allocator *allocator, const char *machine,
                        const char *source, void **code, size_t *code_bytes) {
  const weft_code_folder *folder = user;
  *code = NULL;
  *code_bytes = 0;
  char *name = file_name(folder, machine, source);
  if (!name)
    return WEFT_E_NOMEM;
  FILE *file = fopen(name, "rbe");
  folder->allocator->free(folder->allocator->user, name);
  if (!file)
    return WEFT_OK;
  const weft_status status = read_code(file, allocator, code, code_bytes);
  fclose(file);
  return status == WEFT_E_NOMEM ? status : WEFT_OK; // an unreadable file counts as missing
}

// Failures are ignored: they only cost another compilation later.
static void save(void *user, const char *machine, const char *source, const void *code,
                 size_t code_bytes) {
  const weft_code_folder *folder = user;
  char *name = file_name(folder, machine, source), *temporary = file_name(folder, machine, source);
  if (name && temporary) {
    snprintf(temporary + folder->path_bytes + NAME_BYTES, TAIL_BYTES, ".%08x%08x",
             (unsigned)getpid(), randombytes_random());
    FILE *file = fopen(temporary, "wbxe");
    if (file) {
      const bool written = fwrite(code, 1, code_bytes, file) == code_bytes && fflush(file) == 0;
      if (fclose(file) != 0 || !written || rename(temporary, name) != 0)
        (void)unlink(temporary);
    }
  }
  if (name)
    folder->allocator->free(folder->allocator->user, name);
  if (temporary)
    folder->allocator->free(folder->allocator->user, temporary);
}

weft_code_store weft_code_folder_store(weft_code_folder *folder) {
  return (weft_code_store){.user = folder, .load = load, .save = save};
}
