#pragma once

#include <functional>

#include "inference/projection.h"
#include "posenc/nn/transformer/layer_norm.h"
#include "posenc/nn/transformer/transformer_layer_options.h"

namespace posenc::inference {

/// A layer norm; without a weight none.
struct Norm {
  Norm() = default;
  explicit Norm(const LayerNorm& norm);

  explicit operator bool() const { return weight.defined(); }
  at::Tensor weight, bias;
  float eps = 0.0F;
};

struct FeedForward {
  Projection wide, narrow;
  Activation activation = Activation::ReLU;
};

/// Rows of the residual stream, and what the next block reads: their norm in a stack that
/// normalises first, else the same memory.
struct Stream {
  float* x;
  float* input;
  int64_t rows;
  int64_t width;
  Rows of;  ///< the whole call

  /// The rows begin .. end - 1.
  Stream part(int64_t begin, int64_t end) const {
    return {x + begin * width, input + begin * width, end - begin, width, of};
  }
  bool norm_first() const { return x != input; }
};

/// input = norm(x), nothing where there is no norm.
void normalise(const Stream& stream, const Norm& norm);
/// x += y, and input = norm(x); in a stack that normalises after its blocks x = norm(x + y).
void add(const Stream& stream, const float* y, const Norm& norm);
/// The two linear maps and their residual.
void feed_forward(const Stream& stream, const FeedForward& layer, const Norm& after);
/// projection(y), of rows that are `stride` apart, and its residual.
void add_projected(const Stream& stream, const Projection& projection, const float* y,
                   int64_t stride, const Norm& after);

/// f for all rows: where they are many, in parts, between threads, so that what a part's operations
/// hand on stays in a cache; else at once, and each operation may use all threads.
void by_rows(int64_t rows, const std::function<void(int64_t begin, int64_t end)>& f);

}  // namespace posenc::inference
