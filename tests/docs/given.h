// Inputs for running the examples in README, docs and headers (tools/snippets.py).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <iterator>
#include <vector>

#include "posenc/train/pair_loader.h"

namespace posenc::testing {

/// Supplies the values that an example declares: its own value in the run "as it is"; in the other
/// runs, a value with the same name from one of our batches.
class Given {
 public:
  virtual ~Given() = default;
  virtual at::Tensor tensor(const char* name, const at::Tensor& as_it_is) = 0;
  /// (B, L, D) with the width and dtype of `as_it_is`; every vector is its first one.
  virtual at::Tensor vectors(const char* name, const at::Tensor& as_it_is) = 0;
  virtual std::vector<at::Tensor> sequences(const char* name,
                                            const std::vector<at::Tensor>& as_it_is) = 0;
  virtual std::vector<TokenPair> pairs(const char* name,
                                       const std::vector<TokenPair>& as_it_is) = 0;
  /// Checks that `value` has the shape stated in the example: `(B, L, 512)`. A letter stands for
  /// one length throughout the example.
  virtual void shape(const char* name, const at::Tensor& value, const char* stated) = 0;
};

struct Example {
  const char* source;
  int line;
  bool has_inputs;
  void (*run)(Given&);
};

/// Registers each as one test, or as three if it has inputs.
bool add_examples(const Example* examples, std::size_t count);

}  // namespace posenc::testing
