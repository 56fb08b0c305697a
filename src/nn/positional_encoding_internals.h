#pragma once

#include <mutex>
#include <shared_mutex>

#include "posenc/nn/positional_encoding.h"

namespace posenc {

/// Functions of PositionalEncoding that only modules that embed tokens call.
struct PositionalEncodingAccess {
  /// Extends the table to `rows` if it is shorter and may grow. `pe` does not change while the
  /// returned lock is held. Without grow(true) nothing is locked.
  static std::shared_lock<std::shared_mutex> hold(PositionalEncodingImpl& module, int64_t rows);

  /// The rows for a sum that is rounded once: the float32 rows that `pe` was rounded from, if it is
  /// a half-precision table of Precision::Exact on the CPU and unmodified; otherwise `pe`. Call it
  /// only while the lock of hold() is held.
  static const torch::Tensor& rows_to_add(PositionalEncodingImpl& module);

  /// Without TableSource::Buffer: the rows for ids of shape `sizes`, (length, D), or (..., D) if
  /// position_ids have the shape of the ids. Throws the errors of forward().
  static torch::Tensor computed_rows(const PositionalEncodingImpl& module, torch::IntArrayRef sizes,
                                     int64_t length, int64_t offset,
                                     const torch::Tensor& position_ids);
};

}  // namespace posenc
