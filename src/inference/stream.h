#pragma once

#include <functional>

#include "inference/projection.h"
#include "posenc/nn/transformer/transformer_layer_options.h"
#include "posenc/nn/transformer/transformer_norm.h"

namespace posenc::inference {

/// A layer norm; no norm if the weight is undefined.
struct Norm {
  Norm() = default;
  explicit Norm(const TransformerNorm& norm);

  explicit operator bool() const { return weight.defined(); }
  at::Tensor weight, bias;
  float eps = 0.0F;
};

struct FeedForward {
  Projection wide, narrow;
  Activation activation = Activation::ReLU;
};

/// Rows of the residual stream, and the input of the next block: their norm in a pre-norm stack,
/// otherwise the same memory.
struct Stream {
  float* x;
  float* input;
  int64_t rows;
  int64_t width;
  RowRegime regime;  ///< of the whole call

  /// Rows [begin, end).
  Stream part(int64_t begin, int64_t end) const {
    return {x + begin * width, input + begin * width, end - begin, width, regime};
  }
  bool norm_first() const { return x != input; }
};

/// input = norm(x); does nothing without a norm.
void normalise(const Stream& stream, const Norm& norm);
/// x += y and input = norm(x); in a post-norm stack, x = norm(x + y).
void add(const Stream& stream, const float* y, const Norm& norm);
/// The feed-forward block with its residual connection.
void feed_forward(const Stream& stream, const FeedForward& layer, const Norm& after);
/// Adds projection(y) to the residual stream; the rows of y are `stride` apart.
void add_projected(const Stream& stream, const Projection& projection, const float* y,
                   int64_t stride, const Norm& after);

/// Calls f for all rows. If there are many, f runs on parts of them in parallel, so that the
/// intermediates of a part stay in the cache; otherwise it is called once, and each operation may
/// use all threads.
void by_rows(int64_t rows, const std::function<void(int64_t begin, int64_t end)>& f);

}  // namespace posenc::inference
