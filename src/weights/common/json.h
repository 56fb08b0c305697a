#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "base/text.h"
#include "posenc/weights/error.h"

// base/json.h with the errors of files of weights.
namespace posenc::io {

using base::JsonHandler;
using base::JsonNumbers;
using base::JsonTree;

/// Runs `work`, and throws WeightsError for a JSON text that it refuses.
template <typename Work>
auto with_weights_errors(Work&& work) {
  try {
    return work();
  } catch (const base::JsonError& error) {
    throw WeightsError(error.kind() == base::JsonError::Kind::Corrupt
                           ? WeightsErrorCode::Corrupt
                           : WeightsErrorCode::LimitExceeded,
                       error.what());
  }
}

/// base::parse_json(), which throws WeightsError here.
inline void parse_json(std::string_view text, const std::string& what, JsonHandler& handler,
                       JsonNumbers numbers = JsonNumbers::Finite) {
  with_weights_errors([&] { base::parse_json(text, what, handler, numbers); });
}

/// base::json_tree(), which throws WeightsError here.
template <typename Json>
Json json_tree(std::string_view text, const std::string& what) {
  return with_weights_errors([&] { return base::json_tree<Json>(text, what); });
}

/// `text` as a JSON string, in quotes. Throws WeightsError where it is not UTF-8.
std::string json_string(const std::string& text);

}  // namespace posenc::io
