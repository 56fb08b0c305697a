#include "io/load/key_change.h"

#include <algorithm>

namespace posenc::io {

std::optional<std::vector<int64_t>> changed_sizes(const KeySource& source, at::IntArrayRef sizes) {
  std::vector<int64_t> changed = sizes.vec();
  const auto axis0 = static_cast<std::size_t>(source.axis0());
  const auto axis1 = static_cast<std::size_t>(source.axis1());
  const auto begin = changed.begin();
  switch (source.change()) {
    case KeySource::Change::None: break;
    case KeySource::Change::Transpose:
      if (axis0 >= changed.size() || axis1 >= changed.size()) return std::nullopt;
      std::swap(changed[axis0], changed[axis1]);
      break;
    case KeySource::Change::Squeeze:
      if (axis0 >= changed.size() || changed[axis0] != 1) return std::nullopt;
      changed.erase(begin + source.axis0());
      break;
    case KeySource::Change::Unsqueeze:
      if (axis0 > changed.size()) return std::nullopt;
      changed.insert(begin + source.axis0(), 1);
      break;
  }
  return changed;
}

std::string change_rule(const KeySource& source) {
  const std::string axis0 = std::to_string(source.axis0());
  switch (source.change()) {
    case KeySource::Change::None: break;
    case KeySource::Change::Transpose:
      return "must have axes " + axis0 + " and " + std::to_string(source.axis1()) +
             " to be transposed";
    case KeySource::Change::Squeeze: return "must have length 1 along axis " + axis0;
    case KeySource::Change::Unsqueeze:
      return "must have at least " + axis0 + " axes to get one at " + axis0;
  }
  return "";
}

at::Tensor as_in_file(const KeySource& source, const at::Tensor& changed) {
  switch (source.change()) {
    case KeySource::Change::None: break;
    case KeySource::Change::Transpose: return changed.transpose(source.axis0(), source.axis1());
    case KeySource::Change::Squeeze: return changed.unsqueeze(source.axis0());
    case KeySource::Change::Unsqueeze: return changed.squeeze(source.axis0());
  }
  return changed;
}

}  // namespace posenc::io
