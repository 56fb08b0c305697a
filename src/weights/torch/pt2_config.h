#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weights/common/budget.h"

namespace posenc::io {

/// One weight as listed in the JSON of an exported program, unchecked.
struct Pt2Weight {
  std::string name;
  std::string record;  ///< its storage, in data/weights
  bool is_parameter = false;
  bool pickled = false;  ///< a tensor of another class
  bool requires_grad = false;
  std::optional<int64_t> dtype, layout, offset;  ///< in the numbering of torch.export's schema
  std::vector<int64_t> sizes, strides;
};

/// Parses `{"config": {name: {"path_name": ..., "tensor_meta": {...}}}}`; unknown fields are
/// skipped. Throws WeightsError.
std::vector<Pt2Weight> parse_pt2_config(std::string_view json, Budget& budget);

}  // namespace posenc::io
