// What the examples of README, docs and headers are run with (tools/snippets.py).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <iterator>
#include <vector>

#include "posenc/train/pair_loader.h"

namespace posenc::testing {

/// Serves the declarations of an example: its own value in the run "as it is", and in the others
/// the value of the same name in a batch of ours.
class Given {
 public:
  virtual ~Given() = default;
  virtual at::Tensor tensor(const char* name, const at::Tensor& as_it_is) = 0;
  /// (B, L, D) of the width and type of `as_it_is`, each vector its first one.
  virtual at::Tensor vectors(const char* name, const at::Tensor& as_it_is) = 0;
  virtual std::vector<at::Tensor> sequences(const char* name,
                                            const std::vector<at::Tensor>& as_it_is) = 0;
  virtual std::vector<TokenPair> pairs(const char* name,
                                       const std::vector<TokenPair>& as_it_is) = 0;
  /// `value` has the shape that the example states: `(B, L, 512)`. A letter stands for one length
  /// throughout the example.
  virtual void shape(const char* name, const at::Tensor& value, const char* stated) = 0;
};

struct Example {
  const char* source;
  int line;
  bool has_inputs;
  void (*run)(Given&);
};

/// Makes each of them a test, and three where there are inputs.
bool add_examples(const Example* examples, std::size_t count);

}  // namespace posenc::testing
