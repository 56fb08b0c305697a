#pragma once

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "base/nearest.h"

namespace posenc::detail {

/// The name of a table's row: its member `name` or `model_type`, or the row itself.
template <typename Row>
std::string_view name_of(const Row& row) {
  if constexpr (requires { row.name; }) {
    return row.name;
  } else if constexpr (requires { row.model_type; }) {
    return row.model_type;
  } else {
    return row;
  }
}

/// The row of that name, or of that former name; null if there is none.
template <typename Rows>
const auto* find_named(const Rows& rows, std::string_view name) {
  const auto found = std::find_if(std::begin(rows), std::end(rows), [&](const auto& row) {
    if constexpr (requires { row.former_name; }) {
      if (!name.empty() && row.former_name == name) return true;
    }
    return name_of(row) == name;
  });
  return found == std::end(rows) ? nullptr : &*found;
}

/// Throws c10::ValueError: `where`, then `rule`, in which {0} is the name, which the table lacks,
/// and {1} are the names in it that are nearest.
template <typename Rows>
[[noreturn]] void refuse_name(const Rows& rows, std::string_view name, std::string_view where,
                              fmt::format_string<std::string_view, std::string> rule) {
  std::vector<std::string> names;
  for (const auto& row : rows) names.emplace_back(name_of(row));
  TORCH_CHECK_VALUE(false, where,
                    fmt::format<std::string_view, std::string>(rule, std::string_view(name),
                                                               nearest_text(name, names)));
  std::abort();  // not reached
}

/// The row of that name, or of that former name. If there is none, refuse_name().
template <typename Rows>
const auto& find_named(const Rows& rows, std::string_view name, std::string_view where,
                       fmt::format_string<std::string_view, std::string> rule) {
  const auto* found = find_named(rows, name);
  if (found == nullptr) refuse_name(rows, name, where, rule);
  return *found;
}

}  // namespace posenc::detail
