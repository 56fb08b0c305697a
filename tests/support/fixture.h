#pragma once

#include <torch/types.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "posenc/io/state_dict.h"

namespace posenc::testing {

/// A file that a notebook exported: what went in, the parameters, what came out, the gradients.
struct Fixture {
  std::string name;  ///< `committed/token_embedding/plain`
  bool live;         ///< made by this machine's Python: bits are comparable
  nlohmann::json options;
  int64_t seed;
  StateDict tensors;  ///< `in.ids`, `param.<key>`, `out.output`, `grad.<key>`, ...

  bool has(const std::string& key) const { return tensors.contains(key); }
  const torch::Tensor& operator[](const std::string& key) const { return tensors[key]; }
  /// The tensors whose names start with `prefix`, without it.
  StateDict under(const std::string& prefix) const;
  /// An option, or `otherwise` where the fixture does not have it.
  template <typename T>
  T option(const std::string& key, const T& otherwise) const {
    return options.contains(key) && !options[key].is_null() ? options[key].get<T>() : otherwise;
  }
};

/// All fixtures of a stem, the committed ones and those that Python made live for this run. Fails
/// the test when there is none, so that no parity test passes over an empty list.
std::vector<Fixture> fixtures(const std::string& stem);

/// The fixtures whose case begins with `start` (live and committed).
std::vector<Fixture> fixtures(const std::string& stem, const std::string& start);

}  // namespace posenc::testing
