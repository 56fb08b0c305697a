#include "base/nearest.h"

#include <algorithm>
#include <numeric>

namespace posenc::detail {
namespace {

// Levenshtein distance, one row at a time.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

}  // namespace

std::vector<std::string> nearest(std::string_view given, const std::vector<std::string>& names,
                                 size_t most, size_t farthest) {
  std::vector<std::pair<size_t, std::string>> ranked;
  for (const std::string& name : names) {
    if (const size_t edits = distance(given, name); edits <= farthest) {
      ranked.emplace_back(edits, name);
    }
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> result;
  for (size_t i = 0; i < std::min(most, ranked.size()); ++i) result.push_back(ranked[i].second);
  return result;
}

std::string nearest_text(std::string_view given, const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : nearest(given, names)) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace posenc::detail
