#pragma once

#include <ATen/ops/full.h>
#include <c10/core/ScalarType.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "models/config/settings.h"
#include "posenc/inference/generate.h"
#include "posenc/weights/state_dict.h"

namespace posenc::cli {

using Tokens = std::vector<int64_t>;

/// A tensor (B, L) of the input: integers, of as many rows unless that is negative.
at::Tensor ids_in(const StateDict& given, const char* name, int64_t rows);
/// The mask of `ids`, which the input calls `of`; ones unless it is given.
at::Tensor mask_in(const StateDict& given, const char* name, const at::Tensor& ids, const char* of);

/// Throws CommandError for more columns than a model has positions, and for ids that are not in its
/// vocabulary, but for those where `mask` is 0; the mask may be undefined.
void check_ids(const at::Tensor& ids, const at::Tensor& mask, const char* name, int64_t vocab,
               int64_t most);

/// The longest of lists.
template <typename T>
std::size_t longest(const std::vector<std::vector<T>>& rows) {
  std::size_t most = 0;
  for (const auto& row : rows) most = std::max(most, row.size());
  return most;
}
/// Lists as a tensor (rows, longest) with `fill` at the end of shorter ones.
template <typename T>
at::Tensor padded(const std::vector<std::vector<T>>& rows, T fill) {
  const std::size_t length = longest(rows);
  const at::Tensor result =
      at::full({static_cast<int64_t>(rows.size()), static_cast<int64_t>(length)}, fill,
               c10::CppTypeToScalarType<T>::value);
  for (std::size_t i = 0; i < rows.size(); ++i)
    std::copy(rows[i].begin(), rows[i].end(), result.mutable_data_ptr<T>() + i * length);
  return result;
}
/// The ids of a row.
Tokens row_of(const at::Tensor& ids, int64_t row);

/// A row that is returned.
struct ReturnedRow {
  std::size_t prompt;
  const Hypothesis* hypothesis;
  float score;
};

/// Those of each prompt together, as many as the options return. A search may find fewer;
/// transformers then returns beams that never lived.
std::vector<ReturnedRow> returned_rows(const std::vector<std::vector<Hypothesis>>& found,
                                       const GenerateOptions& options);

/// `sequences`: the columns that began each prompt's rows, and the tokens of each row; and
/// `sequences_scores` of beams. `settings` are those of the options.
StateDict sequences_of(const std::vector<ReturnedRow>& rows, const std::vector<Tokens>& columns,
                       const GenerateOptions& options, const Settings& settings);

}  // namespace posenc::cli
