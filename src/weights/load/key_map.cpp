#include "weights/load/key_map.h"

#include <ATen/ops/block_diag.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "base/match_pattern.h"
#include "base/text.h"
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

// Whether the sizes of the matrix that such groups make can be computed.
bool fits_int64(const std::vector<int64_t>& groups) {
  const int64_t most = std::numeric_limits<int64_t>::max() / groups[0];
  return groups[1] <= most && groups[2] <= most;
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
    case KeySource::Change::Ungroup:
      if (changed.size() != 3 || changed[2] != 1 || changed[0] % source.first() != 0 ||
          changed[1] > std::numeric_limits<int64_t>::max() / source.first()) {
        return std::nullopt;
      }
      changed = {changed[0], changed[1] * source.first()};
      break;
    case KeySource::Change::BlockDiagonal:
      if (changed.size() != 3 || changed[0] == 0 || !fits_int64(changed)) return std::nullopt;
      changed = {changed[0] * changed[2], changed[0] * changed[1]};
      break;
    case KeySource::Change::HeadsToParts:
      if (changed.empty() || changed[0] % source.first() != 0 ||
          changed[0] / source.first() % source.second() != 0) {
        return std::nullopt;
      }
      break;
    case KeySource::Change::HeadsToRows:
    case KeySource::Change::HeadsToColumns:
      if (changed.size() != 3 || changed[1] != source.first() ||
          changed[2] > std::numeric_limits<int64_t>::max() / source.first()) {
        return std::nullopt;
      }
      changed = source.change() == KeySource::Change::HeadsToRows
                    ? std::vector<int64_t>{changed[1] * changed[2], changed[0]}
                    : std::vector<int64_t>{changed[0], changed[1] * changed[2]};
      break;
    case KeySource::Change::SwapHalves:
      if (changed.empty() || changed[0] % 2 != 0) return std::nullopt;
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
    case KeySource::Change::Ungroup:
      return "must be the weight (out, in / groups, 1) of a convolution with " + axis0 +
             " groups, which divide out";
    case KeySource::Change::BlockDiagonal:
      return "must be the matrices (groups, in / groups, out / groups) of a linear layer in groups";
    case KeySource::Change::HeadsToParts:
      return "must have " + axis0 + " * " + std::to_string(source.second()) +
             " * Dh rows, the parts of one head after another";
    case KeySource::Change::HeadsToRows:
    case KeySource::Change::HeadsToColumns:
      return "must have three axes, the second of them of " + axis0 + " heads";
    case KeySource::Change::SwapHalves:
      return "must have an even number of rows for their halves to be swapped";
  }
  return "";
}

at::Tensor as_in_file(const KeySource& source, const at::Tensor& changed) {
  switch (source.change()) {
    case KeySource::Change::None:
    case KeySource::Change::AdjacentToHalves:
    case KeySource::Change::HalvesToAdjacent:
    case KeySource::Change::SwapHalves:
    case KeySource::Change::HeadsToParts:
    case KeySource::Change::BlockDiagonal:
    case KeySource::Change::Ungroup: break;
    case KeySource::Change::HeadsToRows:
      return changed.unflatten(0, {source.first(), -1}).permute({2, 0, 1});
    case KeySource::Change::HeadsToColumns: return changed.unflatten(1, {source.first(), -1});
    case KeySource::Change::Transpose: return changed.transpose(source.first(), source.second());
    case KeySource::Change::Squeeze: return changed.unsqueeze(source.first());
    case KeySource::Change::Unsqueeze: return changed.squeeze(source.first());
  }
  return changed;
}

namespace {

bool reorders_heads(const KeySource& source) {
  return source.change() == KeySource::Change::AdjacentToHalves ||
         source.change() == KeySource::Change::HalvesToAdjacent;
}

}  // namespace

bool reorders_rows(const KeySource& source) {
  return reorders_heads(source) || source.change() == KeySource::Change::SwapHalves ||
         source.change() == KeySource::Change::Ungroup ||
         source.change() == KeySource::Change::HeadsToParts ||
         source.change() == KeySource::Change::BlockDiagonal;
}

at::Tensor reordered(const KeySource& source, const at::Tensor& in_file) {
  if (source.change() == KeySource::Change::Ungroup) {
    return at::block_diag(in_file.squeeze(2).chunk(source.first(), 0));
  }
  if (source.change() == KeySource::Change::BlockDiagonal) {
    return at::block_diag(in_file.transpose(1, 2).unbind(0));
  }
  if (source.change() == KeySource::Change::HeadsToParts) {
    return in_file.unflatten(0, {source.first(), source.second(), -1})
        .transpose(0, 1)
        .reshape(in_file.sizes());
  }
  if (source.change() == KeySource::Change::SwapHalves) return in_file.roll(in_file.size(0) / 2, 0);
  const int64_t width = in_file.size(0) / source.first();
  const bool to_halves = source.change() == KeySource::Change::AdjacentToHalves;
  return reorder_head_channels(in_file, source.first(), rotary_dim_of(source, width),
                               to_halves ? PairOrder::Halves : PairOrder::Adjacent);
}

namespace {

std::ptrdiff_t stars(std::string_view text) { return std::count(text.begin(), text.end(), '*'); }

// Whether the map turns each of the names, without prefix, into `name`.
bool become(const std::vector<std::string>& names, std::string_view name, const KeyMap& map) {
  return std::all_of(names.begin(), names.end(), [&](const std::string& own) {
    const auto found = find_rule(own, map);
    return found && fill_pattern(map[found->rule].name, found->runs) == name;
  });
}

void check_heads(const KeySource& source) {
  TORCH_CHECK_VALUE(source.first() > 0, "[LoadOptions] ",
                    source.change() == KeySource::Change::Ungroup ? "groups" : "heads",
                    " in key_map must be positive. Got ", source.first(), " for ",
                    in_quotes(source.pattern()));
  TORCH_CHECK_VALUE(source.second() >= 0 && source.second() % 2 == 0,
                    "[LoadOptions] rotary_dim in key_map must be even and not negative. Got ",
                    source.second(), " for ", in_quotes(source.pattern()));
}

void check_parts(const KeySource& source) {
  TORCH_CHECK_VALUE(source.first() > 0 && source.second() > 0,
                    "[LoadOptions] heads and parts in key_map must be positive. Got ",
                    source.first(), " and ", source.second(), " for ", in_quotes(source.pattern()));
}

void check_axes(const KeySource& source) {
  for (const int64_t axis : {source.first(), source.second()}) {
    TORCH_CHECK_VALUE(axis >= 0, "[LoadOptions] an axis in key_map must not be negative. Got ",
                      axis, " for ", in_quotes(source.pattern()));
  }
}

void check_rule(const KeyRule& rule) {
  const auto& sources = rule.sources.items;
  TORCH_CHECK_VALUE(!sources.empty(), "[LoadOptions] a rule of key_map must have a pattern for ",
                    in_quotes(rule.name));
  const std::string& first = sources.front().pattern();
  TORCH_CHECK_VALUE(
      stars(rule.name) <= stars(first),
      "[LoadOptions] a new name of key_map must have no more asterisks than its pattern ",
      in_quotes(first), ". Got ", in_quotes(rule.name));
  std::set<std::string_view> patterns;
  for (const auto& source : sources) {
    const bool joins_heads = source.change() == KeySource::Change::HeadsToRows ||
                             source.change() == KeySource::Change::HeadsToColumns;
    const bool has_count =
        reorders_heads(source) || joins_heads || source.change() == KeySource::Change::Ungroup;
    if (source.change() == KeySource::Change::HeadsToParts) {
      check_parts(source);
    } else {
      has_count ? check_heads(source) : check_axes(source);
    }
    TORCH_CHECK_VALUE(stars(source.pattern()) == stars(first),
                      "[LoadOptions] the patterns of a pack in key_map must have the same number "
                      "of asterisks. Got ",
                      in_quotes(first), " and ", in_quotes(source.pattern()));
    TORCH_CHECK_VALUE(patterns.insert(source.pattern()).second,
                      "[LoadOptions] the patterns of a pack in key_map must differ. Got ",
                      in_quotes(source.pattern()), " twice");
  }
}

}  // namespace

std::optional<KeyMatch> find_rule(std::string_view name, const KeyMap& map) {
  for (std::size_t rule = 0; rule < map.size(); ++rule) {
    const auto& sources = map[rule].sources.items;
    for (std::size_t source = 0; source < sources.size(); ++source) {
      auto runs = match_pattern(sources[source].pattern(), name);
      if (runs) return KeyMatch{rule, source, std::move(*runs)};
    }
  }
  return std::nullopt;
}

std::string fill_pattern(std::string_view pattern, const PatternRuns& runs) {
  const auto parts = parts_between_stars(pattern);
  TORCH_INTERNAL_ASSERT(runs.size() + 1 >= parts.size(), "[fill_pattern] ", runs.size(),
                        " runs for the asterisks of ", pattern);
  std::string name(parts.front());
  for (std::size_t i = 1; i < parts.size(); ++i) {
    name += runs[i - 1];
    name += parts[i];
  }
  return name;
}

std::vector<std::string> names_in_file(std::string_view name, const LoadOptions& options) {
  for (const auto& rule : options.key_map()) {
    const auto& sources = rule.sources.items;
    const auto runs = match_pattern(rule.name, name);
    if (!runs || stars(rule.name) != stars(sources.front().pattern())) continue;
    std::vector<std::string> names;
    for (const auto& source : sources) names.push_back(fill_pattern(source.pattern(), *runs));
    if (!become(names, name, options.key_map())) continue;
    for (auto& own : names) own.insert(0, options.prefix());
    return names;
  }
  return {};
}

void check_key_map(const KeyMap& map) {
  for (const auto& rule : map) check_rule(rule);
}

}  // namespace posenc::io
