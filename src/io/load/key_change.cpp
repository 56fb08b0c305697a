#include "io/load/key_change.h"

#include <algorithm>

#include "core/head_channels.h"

namespace posenc::io {
namespace {

// The channels that are reordered in a head of `width`; all of them unless the source specifies a
// number.
int64_t rotary_dim_of(const KeySource& source, int64_t width) {
  return source.rotary_dim() == 0 ? width : source.rotary_dim();
}

bool has_heads(const KeySource& source, at::IntArrayRef sizes) {
  if ((sizes.size() != 1 && sizes.size() != 2) || sizes[0] % source.heads() != 0) return false;
  const int64_t width = sizes[0] / source.heads(), rotating = rotary_dim_of(source, width);
  return rotating <= width && rotating % 2 == 0;
}

}  // namespace

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
    case KeySource::Change::AdjacentToHalves:
    case KeySource::Change::HalvesToAdjacent:
      if (!has_heads(source, sizes)) return std::nullopt;
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
    case KeySource::Change::AdjacentToHalves:
    case KeySource::Change::HalvesToAdjacent: {
      const std::string rows = std::to_string(source.heads()) + " * Dh";
      return "must be (" + rows + ", in) or (" + rows + ") with " +
             (source.rotary_dim() == 0
                  ? "an even Dh"
                  : "a Dh of at least " + std::to_string(source.rotary_dim())) +
             " for its rows to be reordered";
    }
  }
  return "";
}

at::Tensor as_in_file(const KeySource& source, const at::Tensor& changed) {
  switch (source.change()) {
    case KeySource::Change::None:
    case KeySource::Change::AdjacentToHalves:
    case KeySource::Change::HalvesToAdjacent: break;
    case KeySource::Change::Transpose: return changed.transpose(source.axis0(), source.axis1());
    case KeySource::Change::Squeeze: return changed.unsqueeze(source.axis0());
    case KeySource::Change::Unsqueeze: return changed.squeeze(source.axis0());
  }
  return changed;
}

bool reorders_rows(const KeySource& source) {
  return source.change() == KeySource::Change::AdjacentToHalves ||
         source.change() == KeySource::Change::HalvesToAdjacent;
}

at::Tensor reordered(const KeySource& source, const at::Tensor& in_file) {
  const int64_t width = in_file.size(0) / source.heads();
  const bool to_halves = source.change() == KeySource::Change::AdjacentToHalves;
  return reorder_head_channels(in_file, source.heads(), rotary_dim_of(source, width),
                               to_halves ? PairOrder::Halves : PairOrder::Adjacent);
}

}  // namespace posenc::io
