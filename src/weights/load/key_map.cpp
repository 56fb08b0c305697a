#include "weights/load/key_map.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/match_pattern.h"
#include "base/text.h"

namespace posenc::io {
namespace {

std::ptrdiff_t stars(std::string_view text) { return std::count(text.begin(), text.end(), '*'); }

// Whether the map turns each of the names, without prefix, into `name`.
bool become(const std::vector<std::string>& names, std::string_view name, const KeyMap& map) {
  return std::all_of(names.begin(), names.end(), [&](const std::string& own) {
    const auto found = find_rule(own, map);
    return found && fill_pattern(map[found->rule].name, found->runs) == name;
  });
}

bool counts_heads(const KeySource& source) {
  using Change = KeySource::Change;
  const Change change = source.change();
  return change == Change::AdjacentToHalves || change == Change::HalvesToAdjacent ||
         change == Change::HeadsToRows || change == Change::HeadsToColumns;
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

bool has_parts(const KeySource& source) {
  const KeySource::Change change = source.change();
  return change == KeySource::Change::HeadsToParts || change == KeySource::Change::GroupsToParts ||
         change == KeySource::Change::BlocksToParts;
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
    const bool has_count = counts_heads(source) || source.change() == KeySource::Change::Ungroup;
    if (has_parts(source)) {
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
