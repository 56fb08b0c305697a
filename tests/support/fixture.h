#pragma once

#include <torch/types.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "posenc/weights/golden.h"

namespace posenc::testing {

/// A file exported by Python: inputs, parameters, outputs, gradients.
struct Fixture {
  std::string name;  ///< `committed/token_embedding/plain`
  bool live;         ///< made by Python on this machine: bits are comparable
  nlohmann::json options;
  int64_t seed;
  StateDict tensors;  ///< `in.ids`, `param.<key>`, `out.output`, `grad.<key>`, ...

  bool has(const std::string& key) const { return tensors.contains(key); }
  const torch::Tensor& operator[](const std::string& key) const { return tensors[key]; }
  /// The same as a golden file, whose only output is `output`.
  Golden golden() const;
  /// The tensors whose names start with `prefix`, which is removed.
  StateDict under(const std::string& prefix) const;
  /// An option, or `otherwise` if the fixture does not have it.
  template <typename T>
  T option(const std::string& key, const T& otherwise) const {
    return options.contains(key) && !options[key].is_null() ? options[key].get<T>() : otherwise;
  }
};

/// All fixtures of a stem, both committed ones and those that Python made for this run. Fails the
/// test if there are none, so that no parity test passes on an empty list.
std::vector<Fixture> fixtures(const std::string& stem);

/// The fixtures whose case begins with `start`, live and committed.
std::vector<Fixture> fixtures(const std::string& stem, const std::string& start);

}  // namespace posenc::testing
