#include "weights/load/mapped_source.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "weights/common/tensor.h"
#include "weights/load/key_change.h"
#include "weights/load/key_map.h"
#include "weights/load/mismatch.h"

namespace posenc::io {
namespace {

using Sizes = std::vector<int64_t>;

// The sizes in a file can be arbitrarily large if one of them is zero, so the sum may overflow.
int64_t sum_of_rows(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<int64_t>::max() : sum;
}

Sizes with_rows(at::IntArrayRef sizes, int64_t rows) {
  Sizes result = sizes.vec();
  result.front() = rows;
  return result;
}

}  // namespace

MappedSource::MappedSource(const TensorSource& source, const LoadOptions& options)
    : source_(source), map_(options.key_map()) {
  check_key_map(map_);
  const std::size_t prefix = options.prefix().size();
  std::map<std::pair<std::size_t, PatternRuns>, std::size_t> packs;  // entry by rule and runs
  for (std::size_t i = 0; i < source.entries().size(); ++i) {
    const std::string& name = source.entries()[i].name;
    if (!name.starts_with(options.prefix())) continue;
    const std::string_view own = std::string_view(name).substr(prefix);
    const auto found = find_rule(own, map_);
    Part part{i, name, nullptr, source.entries()[i].sizes};
    if (!found) {
      entries_.push_back({std::string(own), {std::move(part)}});
      continue;
    }
    const KeyRule& rule = map_[found->rule];
    const auto& sources = rule.sources.items;
    part.key_source = &sources[found->source];
    if (rule.name.empty()) {
      entries_.push_back({std::nullopt, {std::move(part)}});
      continue;
    }
    const auto [pack, is_new] = packs.try_emplace({found->rule, found->runs}, entries_.size());
    // If two tensors match the same part, the second starts another entry, which match_names()
    // reports as a duplicate.
    if (is_new || entries_[pack->second].parts[found->source].index != kAbsent) {
      Entry entry{fill_pattern(rule.name, found->runs), {}};
      for (const auto& other : sources) {
        entry.parts.push_back(
            {kAbsent, options.prefix() + fill_pattern(other.pattern(), found->runs), &other});
      }
      pack->second = entries_.size();
      entries_.push_back(std::move(entry));
    }
    entries_[pack->second].parts[found->source] = std::move(part);
  }
  for (auto& entry : entries_) finish(entry);
}

void MappedSource::finish(Entry& entry) {
  for (auto& part : entry.parts) {
    if (part.key_source == nullptr) continue;
    const KeyChange& change = change_of(*part.key_source);
    if (auto sizes = change.sizes(*part.key_source, part.sizes)) part.sizes = std::move(*sizes);
  }
  entry.sizes = entry.parts.front().sizes;
  if (entry.sizes.empty()) return;
  for (std::size_t i = 1; i < entry.parts.size(); ++i) {
    const Sizes& sizes = entry.parts[i].sizes;
    if (!sizes.empty()) entry.sizes[0] = sum_of_rows(entry.sizes[0], sizes[0]);
  }
}

std::vector<std::string> MappedSource::unused_patterns() const {
  std::set<const KeySource*> used;
  for (const Entry& entry : entries_) {
    for (const Part& part : entry.parts)
      if (part.index != kAbsent) used.insert(part.key_source);
  }
  std::vector<std::string> patterns;
  for (const KeyRule& rule : map_) {
    for (const KeySource& source : rule.sources.items)
      if (used.count(&source) == 0) patterns.push_back(source.pattern());
  }
  return patterns;
}

std::string MappedSource::label(std::size_t index) const {
  std::vector<std::string> names;
  for (const auto& part : entries_[index].parts) names.push_back(part.name);
  return in_quotes_each(names);
}

const TensorSource::Entry& MappedSource::entry_of(const Part& part) const {
  return source_.entries()[part.index];
}

std::optional<Fault> MappedSource::fault(const Part& part, std::size_t index,
                                         const std::string& target, at::IntArrayRef sizes) const {
  const bool is_packed = entries_[index].parts.size() > 1;
  const std::string name = in_quotes(part.name);
  if (part.index == kAbsent) {
    return Fault{WeightsErrorCode::MissingKeys,
                 name + " is missing, and " + in_quotes(target) + " is packed from " + label(index),
                 ""};
  }
  const auto& entry = entry_of(part);
  if (!entry.fault.empty()) {
    return Fault{WeightsErrorCode::Unsupported,
                 (is_packed ? name : in_quotes(target)) + " " + entry.fault, ""};
  }
  const KeyChange* const change =
      part.key_source == nullptr ? nullptr : &change_of(*part.key_source);
  if (change != nullptr && !change->sizes(*part.key_source, entry.sizes)) {
    return Fault{
        WeightsErrorCode::ShapeMismatch,
        name + " " + change->rule(*part.key_source) + ". Got shape " + shape_text(entry.sizes), ""};
  }
  if (!is_packed) return std::nullopt;
  const auto mismatch = [&](const std::string& rule, const std::string& more = "") {
    return Fault{WeightsErrorCode::ShapeMismatch,
                 name + (change == nullptr ? "" : change->done) + " must have " + rule +
                     " to become rows of " + in_quotes(target) + more + ". Got " +
                     shape_text(part.sizes),
                 ""};
  };
  if (part.sizes.empty() || sizes.empty()) {
    return mismatch("rows", ", which has shape " + shape_text(sizes));
  }
  const Sizes expected = with_rows(sizes, part.sizes[0]);
  if (part.sizes != expected) return mismatch("shape " + shape_text(expected));
  return std::nullopt;
}

std::vector<Fault> MappedSource::faults(std::size_t index, const std::string& target,
                                        at::IntArrayRef sizes) const {
  std::vector<Fault> all;
  for (const auto& part : entries_[index].parts) {
    if (auto found = fault(part, index, target, sizes)) all.push_back(std::move(*found));
  }
  return all;
}

bool MappedSource::is_as_in_source(const Entry& entry) {
  const KeySource* key_source = entry.parts.front().key_source;
  return entry.parts.size() == 1 &&
         (key_source == nullptr || key_source->change() == KeySource::Change::None);
}

at::Tensor MappedSource::tensor(std::size_t index, at::ScalarType type) const {
  const Entry& entry = entries_[index];
  if (is_as_in_source(entry)) return source_.tensor(entry.parts.front().index).to(type);
  const at::NoGradGuard no_grad;
  auto result = at::empty(entry.sizes, at::TensorOptions(type));
  copy_to(index, result);
  return result;
}

at::Tensor MappedSource::head(std::size_t index, int64_t axis, int64_t count) const {
  const Entry& entry = entries_[index];
  const Part& part = entry.parts.front();
  if (is_as_in_source(entry)) return source_.head(part.index, axis, count).cpu();
  if (entry.parts.size() > 1 || count == entry.sizes[axis] ||
      change_of(*part.key_source).apply != nullptr) {
    return tensor(index, at::kDouble).narrow(axis, 0, count);
  }
  // Reads only the rows that are needed, because a file may claim any number of them.
  auto sizes = entry.sizes;
  sizes[axis] = count;
  const at::NoGradGuard no_grad;
  auto result = at::empty(sizes, at::TensorOptions(at::kDouble));
  const at::Tensor view = change_of(*part.key_source).undo(*part.key_source, result);
  const auto& in_file = entry_of(part).sizes;
  int64_t cut = 0;
  while (view.size(cut) == in_file[cut]) ++cut;
  view.copy_(source_.head(part.index, cut, count));
  return result;
}

void MappedSource::copy_to(std::size_t index, const at::Tensor& target) const {
  const auto& parts = entries_[index].parts;
  int64_t row = 0;
  for (const auto& part : parts) {
    at::Tensor into = parts.size() == 1 ? target : target.narrow(0, row, part.sizes[0]);
    const KeyChange* const change =
        part.key_source == nullptr ? nullptr : &change_of(*part.key_source);
    if (change != nullptr && change->apply != nullptr) {
      into.copy_(change->apply(*part.key_source, source_.tensor(part.index)));
    } else {
      source_.copy_to(part.index, change == nullptr ? into : change->undo(*part.key_source, into));
    }
    if (parts.size() > 1) row += part.sizes[0];
  }
}

bool MappedSource::equal(std::size_t a, std::size_t b, at::ScalarType type) const {
  const auto& parts = entries_[a].parts;
  const auto& others = entries_[b].parts;
  const auto change = [](const Part& part) {
    const KeySource* key_source = part.key_source;
    return key_source == nullptr
               ? std::tuple(KeySource::Change::None, int64_t{0}, int64_t{0})
               : std::tuple(key_source->change(), key_source->first(), key_source->second());
  };
  const auto alike = [&](const Part& part, const Part& other) {
    return entry_of(part).dtype == entry_of(other).dtype && change(part) == change(other) &&
           entry_of(part).sizes == entry_of(other).sizes;
  };
  if (std::equal(parts.begin(), parts.end(), others.begin(), others.end(), alike)) {
    return std::equal(parts.begin(), parts.end(), others.begin(), [&](auto& part, auto& other) {
      return source_.equal(part.index, other.index);
    });
  }
  return same_bytes(tensor(a, type), tensor(b, type));
}

void MappedSource::check_values(std::size_t index) const {
  for (const auto& part : entries_[index].parts) source_.check_values(part.index);
}

}  // namespace posenc::io
