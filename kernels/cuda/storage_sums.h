// SPDX-License-Identifier: Apache-2.0
// What the writers of kernels for one bit matrix (storage_source.h) share: growing text, the
// functions that every kernel begins with, and the sums.
#ifndef WEFT_KERNELS_CUDA_STORAGE_SUMS_H
#define WEFT_KERNELS_CUDA_STORAGE_SUMS_H

#include "kernels/cuda/storage_source.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

namespace weft_made {

class Text {
public:
  explicit Text(const weft_allocator *allocator)
      : allocator_(allocator), text_(nullptr), used_(0), room_(0), failed_(false) {}
  ~Text() {
    if (text_)
      allocator_->free(allocator_->user, text_);
  }
  Text(const Text &) = delete;
  Text &operator=(const Text &) = delete;

  __attribute__((format(printf, 2, 3))) void add(const char *format, ...) {
    char line[1024];
    va_list list;
    va_start(list, format);
    const int length = vsnprintf(line, sizeof line, format, list);
    va_end(list);
    if (length < 0 || static_cast<size_t>(length) >= sizeof line)
      failed_ = true;
    else
      put(line, static_cast<size_t>(length));
  }
  void put(const char *bytes, size_t count) {
    if (used_ + count + 1 > room_ && !grow(used_ + count + 1))
      return;
    memcpy(text_ + used_, bytes, count + 1);
    used_ += count;
  }
  weft_status take(char **out) {
    *out = nullptr;
    if (failed_)
      return WEFT_E_NOMEM;
    *out = text_;
    text_ = nullptr;
    return WEFT_OK;
  }

private:
  bool grow(size_t wanted) {
    size_t room = room_ ? 2 * room_ : 16384;
    while (room < wanted)
      room *= 2;
    char *more =
        failed_ ? nullptr : static_cast<char *>(allocator_->alloc(allocator_->user, room, 16));
    if (!more) {
      failed_ = true;
      return false;
    }
    if (text_) {
      memcpy(more, text_, used_);
      allocator_->free(allocator_->user, text_);
    }
    text_ = more;
    room_ = room;
    return true;
  }

  const weft_allocator *allocator_;
  char *text_;
  size_t used_, room_;
  bool failed_;
};

// The functions and the arguments that every kernel begins with.
extern const char prelude[];

// Input packets that are added together.
struct Packets {
  enum { Most = 8 };
  size_t column[Most]; // of the bit matrix
  size_t count, batch;
};

// Makes packet `column` of the bit matrix, which the text knows by the expression `value`, the next
// one; when there are enough, or it is the `last`, adds them to all outputs, y0 and so on.
void add_packet(Text &text, const weft_program_shape &shape, Packets &packets, size_t column,
                const char *value, bool last);

// Shards on their way to a thread: `ahead` places, of which the last one taken has one. Outputs of
// bytes go by way of the same places.
class Ring {
public:
  Ring(Text &text, const weft_program_shape &shape, const weft_program_plan &plan);
  void begin();
  // Waits for shard j, which then is in place(j), and asks for one more.
  void next(size_t j);
  size_t place(size_t j) const { return j % plan_.ahead; }
  // The place for output i. When it is there, kept() is called; and in the end leave().
  size_t place_for_output(size_t i);
  void kept();
  void leave();

private:
  void define_packets();
  void ask(size_t group);

  Text &text_;
  const weft_program_shape &shape_;
  const weft_program_plan &plan_;
  bool bytes_;            // each thread copies what it takes, some shards at a time
  size_t slice_, groups_; // shards that are asked for together; as many there is room for
  size_t taken_;          // shards
  size_t first_, kept_;   // outputs in places
};

// The body of a kernel by steps of factors, behind the place in the rows.
void add_steps(Text &text, const weft_program_shape &shape, const weft_program_plan &plan);

} // namespace weft_made
#endif
