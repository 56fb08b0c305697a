#pragma once

#include <iosfwd>
#include <memory>
#include <vector>

#include "posenc/models/generate.h"
#include "posenc/models/transformer.h"
#include "posenc/nn/transformer/transformer_encoder.h"

namespace posenc {

/// Matrix-multiply backend of a frozen model.
enum class Multiplier {
  /// freeze() times both of the others for a slice of each weight, for one, a few and many rows.
  /// The clock decides, so another freeze of the same model may give other bits.
  Measured,
  Own,   ///< posenc's kernels: the same bits with any number of threads, in each freeze and run
  ATen,  ///< at::linear
};

struct FreezeOptions {
  TORCH_ARG(Multiplier, multiplier) = Multiplier::Own;
};

/// What a frozen model keeps alive, in bytes.
struct FrozenBytes {
  int64_t shared;  ///< weights that the source's tensors hold as well, as long as they live
  int64_t own;     ///< weights that nothing else holds (any longer)
};

/// A TransformerEncoder for inference: forward() in eval mode, without gradients, in float32 on the
/// CPU, within 1e-5 of its largest value. No weight is copied: its kernels read torch's layout.
///
/// One object may serve several threads at a time; copies are the same object. It keeps the weights
/// alive, not the modules. Once the source has changed while it lives, each call throws c10::Error
/// that asks for another freeze(). Noticed are operations that write to a parameter or buffer in
/// place (loading, an optimiser's step: each operation moves the tensor's version), to() and
/// set_data(), and a replaced module or parameter whose tensor nobody else holds. Not noticed are
/// writes that go around a tensor's version (by pointer, through `.data()`, as torch::optim::SGD
/// steps), any write to a model that was made in InferenceMode, whose tensors have no version, and
/// a replaced tensor that the program still holds.
class FrozenEncoder {
 public:
  /// x: (B, L, D)  ->  (B, L, D); (L, B, D) with batch_first(false). Keys that `mask` leaves out by
  /// key_padding() or padding(), and by nothing else, are not computed: their rows are zeros.
  /// Errors: those of the module; c10::TypeError for another dtype than float32.
  torch::Tensor forward(const torch::Tensor& x, const AttentionMask& mask = {}) const;

  const TransformerEncoderOptions& options() const;
  FrozenBytes bytes() const;

  struct Impl;
  explicit FrozenEncoder(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

 private:
  std::shared_ptr<const Impl> impl_;
};

/// A Transformer for inference; see FrozenEncoder.
class FrozenTransformer {
 public:
  /// The memory (B, S, D) of src (B, S); zeros where padding was left out.
  torch::Tensor encode(const torch::Tensor& src, const AttentionMask& src_mask = {}) const;
  /// Logits (B, L, tgt_vocab) of all places of tgt (B, L).
  torch::Tensor decode(const torch::Tensor& tgt, const torch::Tensor& memory,
                       const AttentionMask& tgt_mask = {},
                       const AttentionMask& memory_mask = {}) const;

  const TransformerOptions& options() const;
  FrozenBytes bytes() const;

  struct Impl;
  explicit FrozenTransformer(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  const Impl& impl() const { return *impl_; }

 private:
  std::shared_ptr<const Impl> impl_;
};

/// Freezes a model, in either mode: the result computes what it computes in eval mode.
/// Errors: c10::TypeError for parameters that are not float32, c10::ValueError for a device that is
/// not the CPU and for an embedding without a table of positions.
FrozenEncoder freeze(const TransformerEncoder& model, const FreezeOptions& options = {});
FrozenTransformer freeze(const Transformer& model, const FreezeOptions& options = {});

/// generate() of the plain model, with its results: encodes without padding, keeps keys and values
/// once for all beams of a source, and reads each weight once a token.
std::vector<std::vector<Hypothesis>> generate(const FrozenTransformer& model,
                                              const torch::Tensor& src,
                                              const AttentionMask& src_mask,
                                              const GenerateOptions& options);

std::ostream& operator<<(std::ostream& stream, const FrozenEncoder& model);
std::ostream& operator<<(std::ostream& stream, const FrozenTransformer& model);

}  // namespace posenc
