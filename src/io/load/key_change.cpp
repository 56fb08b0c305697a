#include "io/load/key_change.h"

#include <algorithm>

#include "core/head_channels.h"

namespace posenc::io {
namespace {

// The channels that are reordered in a head of `width`; all of them unless the source specifies a
// number.
int64_t rotary_dim_of(const KeySource& source, int64_t width) {
  return source.second() == 0 ? width : source.second();
}

bool has_heads(const KeySource& source, at::IntArrayRef sizes) {
  if ((sizes.size() != 1 && sizes.size() != 2) || sizes[0] % source.first() != 0) return false;
  const int64_t width = sizes[0] / source.first(), rotating = rotary_dim_of(source, width);
  return rotating <= width && rotating % 2 == 0;
}

}  // namespace

std::optional<std::vector<int64_t>> changed_sizes(const KeySource& source, at::IntArrayRef sizes) {
  std::vector<int64_t> changed = sizes.vec();
  const auto axis0 = static_cast<std::size_t>(source.first());
  const auto axis1 = static_cast<std::size_t>(source.second());
  const auto begin = changed.begin();
  switch (source.change()) {
    case KeySource::Change::None: break;
    case KeySource::Change::Transpose:
      if (axis0 >= changed.size() || axis1 >= changed.size()) return std::nullopt;
      std::swap(changed[axis0], changed[axis1]);
      break;
    case KeySource::Change::Squeeze:
      if (axis0 >= changed.size() || changed[axis0] != 1) return std::nullopt;
      changed.erase(begin + source.first());
      break;
    case KeySource::Change::Unsqueeze:
      if (axis0 > changed.size()) return std::nullopt;
      changed.insert(begin + source.first(), 1);
      break;
    case KeySource::Change::AdjacentToHalves:
    case KeySource::Change::HalvesToAdjacent:
      if (!has_heads(source, sizes)) return std::nullopt;
      break;
  }
  return changed;
}

std::string change_rule(const KeySource& source) {
  const std::string axis0 = std::to_string(source.first());
  switch (source.change()) {
    case KeySource::Change::None: break;
    case KeySource::Change::Transpose:
      return "must have axes " + axis0 + " and " + std::to_string(source.second()) +
             " to be transposed";
    case KeySource::Change::Squeeze: return "must have length 1 along axis " + axis0;
    case KeySource::Change::Unsqueeze:
      return "must have at least " + axis0 + " axes to get one at " + axis0;
    case KeySource::Change::AdjacentToHalves:
    case KeySource::Change::HalvesToAdjacent: {
      const std::string rows = std::to_string(source.first()) + " * Dh";
      return "must be (" + rows + ", in) or (" + rows + ") with " +
             (source.second() == 0 ? "an even Dh"
                                   : "a Dh of at least " + std::to_string(source.second())) +
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
    case KeySource::Change::Transpose: return changed.transpose(source.first(), source.second());
    case KeySource::Change::Squeeze: return changed.unsqueeze(source.first());
    case KeySource::Change::Unsqueeze: return changed.squeeze(source.first());
  }
  return changed;
}

bool reorders_rows(const KeySource& source) {
  return source.change() == KeySource::Change::AdjacentToHalves ||
         source.change() == KeySource::Change::HalvesToAdjacent;
}

at::Tensor reordered(const KeySource& source, const at::Tensor& in_file) {
  const int64_t width = in_file.size(0) / source.first();
  const bool to_halves = source.change() == KeySource::Change::AdjacentToHalves;
  return reorder_head_channels(in_file, source.first(), rotary_dim_of(source, width),
                               to_halves ? PairOrder::Halves : PairOrder::Adjacent);
}

}  // namespace posenc::io
