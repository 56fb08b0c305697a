#pragma once

#include <nlohmann/json.hpp>

#include <utility>

namespace posenc::io {

/// Parses `input`, a text or a stream, as JSON, for small settings files. The result is discarded
/// if it is not JSON, or if it is nested deeper than settings are: copies and dump() of nlohmann's
/// values recurse, and would overflow the stack. `Json` is one of nlohmann's types.
template <typename Json, typename Input>
Json json_tree(Input&& input) {
  constexpr int kDeepest = 64;
  bool is_deep = false;
  const auto keep = [&](int depth, typename Json::parse_event_t, Json&) {
    is_deep = is_deep || depth > kDeepest;
    return !is_deep;
  };
  Json tree = Json::parse(std::forward<Input>(input), keep, /*allow_exceptions=*/false);
  return is_deep ? Json(Json::value_t::discarded) : tree;
}

}  // namespace posenc::io
