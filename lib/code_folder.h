// SPDX-License-Identifier: Apache-2.0
// A weft_code_store that keeps compiled GPU kernels as files in a folder, as they are: code_seal.h
// finds damaged ones.
#ifndef WEFT_LIB_CODE_FOLDER_H
#define WEFT_LIB_CODE_FOLDER_H

#include "weft/code_store.h"

typedef struct weft_code_folder weft_code_folder;

weft_status weft_code_folder_new(weft_code_folder **out, const char *path,
                                 const weft_allocator *allocator);
void weft_code_folder_free(weft_code_folder *folder); // accepts NULL
weft_code_store weft_code_folder_store(weft_code_folder *folder);

#endif
