#pragma once

#include <torch/nn/module.h>

#include <functional>
#include <string>

#include "support/compare.h"
#include "support/fixture.h"

namespace posenc::testing {

struct ParityOptions {
  Op forward = Op::Forward;
  Op gradient = Op::Gradient;
  /// The module's key of its sinusoidal table; "" if none.
  std::string table;
  /// Keys of the fixture that have another name in the module: {{"weight", "embedding.weight"}}.
  KeyMap renamed = {};
};

/// Compares a newly constructed `module` with a fixture: first its own table with Python's (bit for
/// bit if this machine's Python made it, otherwise within the stated bound); then, with the
/// fixture's parameters loaded strictly, `call`'s output and all gradients of (output *
/// cotangent).sum(), which for live fixtures must be equal bit for bit if `forward` is Op::Forward.
/// Matrix products are only compared within rounding: their order of summation depends on the
/// library, the processor, the number of threads and memory alignment.
void expect_parity(const Fixture& fixture, torch::nn::Module& module,
                   const std::function<torch::Tensor(const Golden&)>& call,
                   const ParityOptions& options = {});

/// `float32`, etc., the names in torch.
torch::Dtype dtype_of(const Fixture& fixture);

}  // namespace posenc::testing
