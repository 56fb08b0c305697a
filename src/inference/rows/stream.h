#pragma once

#include <functional>

#include "inference/linear/projection.h"
#include "inference/rows/packing.h"
#include "kernels/inference.h"
#include "posenc/positions/nn/transformer_norm.h"
#include "posenc/transformer/layers/layer_scale.h"
#include "posenc/transformer/layers/transformer_layer_options.h"

namespace posenc::inference {

/// A norm; none if the weight is undefined.
struct Norm {
  Norm() = default;
  /// That of a module, whose result is multiplied by `scale`; both may be null.
  explicit Norm(const TransformerNormImpl* norm, const LayerScaleImpl* scale = nullptr);
  /// The same of a holder, which may be empty.
  explicit Norm(const TransformerNorm& norm) : Norm(norm ? norm.get() : nullptr) {}

  /// Multiplies its results by factors (D), or by one.
  void multiply(const at::Tensor& factors);
  explicit operator bool() const { return weight.defined(); }
  /// The request for rows of this width, without the rows.
  kernels::inference::AddNormRequest request(int64_t width) const;

  at::Tensor weight, bias;
  float eps = 0.0F;
  kernels::inference::NormKind kind = kernels::inference::NormKind::Layer;
};

struct FeedForward {
  Projection wide, narrow;
  Activation activation = Activation::ReLU;
  bool is_gated = false;  ///< the second half of wide's result is multiplied by the activated first
};

/// Rows of the residual stream, and the input of the next block: their norm in a pre-norm stack,
/// otherwise the same memory.
struct Stream {
  float* x;
  float* input;
  int64_t rows;
  int64_t width;
  RowRegime regime;                    ///< of the whole call
  ConvertedRows input_converted = {};  ///< the next block's input as its projections read it

  /// Rows [begin, end).
  Stream part(int64_t begin, int64_t end) const {
    return {x + begin * width,          input + begin * width, end - begin, width, regime,
            input_converted.from(begin)};
  }
  bool norm_first() const { return x != input; }
};

/// Adds memory for the input in this format to a stream, which points to it; none for Float32.
at::Tensor add_converted(Stream& stream, RowFormat format);
/// out (rows, .) = projection(the next block's input), whose rows are `out_stride` apart. `input`:
/// x or input, whichever that is.
void project(const Stream& stream, const Projection& projection, const float* input, float* out,
             int64_t out_stride);
/// Rows that several projections read, which are converted once: for the first of them that reads
/// them so.
class SharedRows {
 public:
  /// `buffer` has ConvertedRows::floats() of them.
  SharedRows(const float* x, int64_t rows, int64_t width, RowRegime regime, float* buffer)
      : x_(x), rows_(rows), width_(width), regime_(regime), buffer_(buffer) {}

  /// out (rows, .) = projection(x), whose rows are `out_stride` apart.
  void project(const Projection& projection, float* out, int64_t out_stride);

 private:
  const float* x_;
  int64_t rows_, width_;
  RowRegime regime_;
  float* buffer_;
  ConvertedRows converted_;
};

/// input = norm(x); without a norm, only writes the converted input.
void normalise(const Stream& stream, const Norm& norm);
/// x += y and input = norm(x); in a post-norm stack, x = norm(x + y).
void add(const Stream& stream, const float* y, const Norm& norm);
/// x = activation(x), n numbers.
void activate(Activation activation, float* x, int64_t n);
/// The feed-forward block with its residual connection. `input`: x or input, whichever it reads;
/// `post` normalises what is added.
void feed_forward(const Stream& stream, const FeedForward& layer, const float* input,
                  const Norm& post, const Norm& after);
/// Adds projection(y), normalised by `post`, to the residual stream; the rows of y are `stride`
/// apart.
void add_projected(const Stream& stream, const Projection& projection, const float* y,
                   int64_t stride, const Norm& post, const Norm& after);

/// Calls f for parts of the rows, in parallel if all their floats are enough work.
void split_rows(int64_t rows, int64_t width,
                const std::function<void(int64_t begin, int64_t end)>& f);

/// Calls f for all rows. If there are many, f runs on parts of them in parallel, so that the
/// intermediates of a part stay in the cache; otherwise it is called once, and each operation may
/// use all threads.
void by_rows(int64_t rows, const std::function<void(int64_t begin, int64_t end)>& f);
/// The same for the rows of some sequences.
void by_rows(const SequenceRange& sequences,
             const std::function<void(int64_t begin, int64_t end)>& f);

}  // namespace posenc::inference
