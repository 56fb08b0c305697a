#pragma once

// A recipe with parameters that may have made a table, and its distance from that table.

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "catalogue/identify/table_view.h"
#include "posenc/positions/sinusoid/preset.h"

namespace posenc::identification {

/// A preset with parameters, and edits of its options.
struct Candidate {
  const Preset* preset = nullptr;
  PresetParams params;
  /// A change of the options, as C++ and as words: {".start(2)", "start", "2"}.
  struct Edit {
    std::string code, name, value;
  };
  std::vector<Edit> edits;
  SinusoidOptions options{2};
  int64_t length = 0;  ///< nominal
};

struct Distance {
  bool equal = false;  ///< every bit
  double max_abs = 0.0;
  int64_t max_ulp = 0;
  double dot = 0, left = 0, right = 0;  ///< sums of products, for the correlation
  double correlation() const;
  void join(const Distance& other);
};

/// The distance between two tensors of the same shape and floating-point dtype.
Distance distance(const at::Tensor& a, const at::Tensor& b);

/// The rows `index` of the candidate's table.
at::Tensor rows_of(const Candidate& candidate, const at::Tensor& index, at::ScalarType dtype);

/// The distance over all rows of the view. `only_equality`: stops at the first difference and fills
/// in `equal` only.
Distance full_distance(const Candidate& candidate, const TableView& view, bool only_equality);

/// Whether a row depends on more than its position.
bool needs_whole_table(const SinusoidOptions& options);

/// Calls `visit` with every candidate whose shape fits, the preset's own parameters first.
/// `edited`: also with changes that are not parameters of the preset: the other layout, rows of
/// zeros, another base.
void for_each_candidate(const Preset& preset, const TableView& view, bool edited,
                        const std::function<void(const Candidate&)>& visit);

}  // namespace posenc::identification
