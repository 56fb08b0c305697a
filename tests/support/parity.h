#pragma once

#include <torch/nn/module.h>

#include <functional>
#include <map>
#include <string>

#include "support/compare.h"
#include "support/fixture.h"

namespace posenc::testing {

using Inputs = std::map<std::string, torch::Tensor>;  ///< `ids`, `x`, `t`, ... as leaves

struct ParityOptions {
  Op forward = Op::Forward;
  Op gradient = Op::Gradient;
  /// The module's key of its sinusoidal table; "" for none.
  std::string table;
  /// A key of the fixture that the module knows under another name: {"weight", "embedding.weight"}.
  std::map<std::string, std::string> renamed;
};

/// Holds `module`, freshly constructed, against a fixture: its own table against Python's (bit for
/// bit where this machine's Python made it, within the stated bound where another did), then, with
/// the fixture's parameters loaded strictly, `call`'s output and every gradient of
/// (output * cotangent).sum(): those of live fixtures bit for bit where `forward` is Op::Forward.
/// Matrix products are within their rounding only: their order of summation is that of the library
/// for this processor, this number of threads and these places in memory.
void expect_parity(const Fixture& fixture, torch::nn::Module& module,
                   const std::function<torch::Tensor(const Inputs&)>& call,
                   const ParityOptions& options = {});

/// `float32` and so on, as torch names them.
torch::Dtype dtype_of(const Fixture& fixture);

}  // namespace posenc::testing
