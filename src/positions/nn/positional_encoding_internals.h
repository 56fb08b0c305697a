#pragma once

#include <c10/util/FunctionRef.h>

#include <mutex>
#include <shared_mutex>

#include "posenc/positions/functional/positional_encoding.h"
#include "posenc/positions/nn/positional_encoding.h"

namespace posenc {

/// Tokens, or vectors, whose positions are asked for.
struct PositionRequest {
  PositionRequest(torch::IntArrayRef sizes_, bool batch_first, int64_t offset_,
                  const torch::Tensor& position_ids_)
      : sizes(sizes_),
        length(sizes.empty() || sizes.size() > 2  ? 0
               : sizes.size() == 2 && batch_first ? sizes[1]
                                                  : sizes[0]),
        offset(offset_),
        position_ids(position_ids_) {}

  torch::IntArrayRef sizes;  ///< (B, L), (L, B) or (L); others are refused later
  int64_t length;            ///< L; 0 for other sizes
  int64_t offset;
  const torch::Tensor& position_ids;  ///< may be undefined
};

/// How the rows are added: RoundsOnce if the whole sum is rounded to half precision at its end.
enum class Summing { RoundsEachStep, RoundsOnce };

/// Rows of positions, and which of them belong to which token.
struct PositionRows {
  std::shared_lock<std::shared_mutex> held;  ///< while it is, a table that may grow does not
  /// The table (1, rows, D); or where there is none, the computed rows (L, D), or one for each
  /// token, laid out as the tokens are, if positions were given for each.
  c10::MaybeOwned<torch::Tensor> rows;
  functional::PositionalEncodingFuncOptions which;
};

/// Functions of PositionalEncoding that only modules that embed tokens call.
struct PositionalEncodingAccess {
  /// The rows that are asked for, computed and sent to `device`, or those of the table, which is
  /// extended first if it is too short and may grow; `before_growth`, which may throw, is called
  /// before. For Summing::RoundsOnce they are the float32 rows that a half-precision table of
  /// Precision::Exact was rounded from, unless it was modified. Throws the errors of forward().
  static PositionRows rows_for(PositionalEncodingImpl& module, const PositionRequest& request,
                               torch::Device device, Summing summing,
                               c10::function_ref<void()> before_growth);

 private:
  static const torch::Tensor& rows_to_add(PositionalEncodingImpl& module);
};

}  // namespace posenc
