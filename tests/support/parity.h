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
/// bit if this machine's Python made it, otherwise within the stated bound); then the fixture as a
/// golden file, whose gradients must be equal bit for bit for a live one if `forward` is
/// Op::Forward.
/// Matrix products are only compared within rounding: their order of summation depends on the
/// library, the processor, the number of threads and memory alignment.
void expect_parity(const Fixture& fixture, torch::nn::Module& module,
                   const std::function<torch::Tensor(const Golden&)>& call,
                   const ParityOptions& options = {});

}  // namespace posenc::testing
